"""A second reading of the default rule, which shares no code with the product: the reference in ../shared/bench/policy, which
is the rule of the first notes, with what has changed since."""

from dataclasses import replace
from math import inf
from typing import Any

from tests.shared_bench import shared_module

CHANGED: dict[str, float] = {
    "later_backup": 4.0,
    "slow_pace": 1.3,
    "eta_start": 0.04,
    "eta": 0.04,
    "lower_win_rate": 0.25,
    "eta_fast": 0.20,
    "surge_win_rate": 0.55,
    "hard_share": 0.45,
}


def second_reading(budget: float) -> Any:
    """The rule for a budget, as shared `reference.simulate` takes it."""
    reference, ring = shared_module("reference"), shared_module("ring")

    class Today(reference.Lag):  # type: ignore[misc, name-defined]
        def __init__(self, rule: Any) -> None:
            super().__init__(rule)
            self.pauses = ring.Ring(200)

        def answered(self, race: Any) -> None:
            winner = race.attempts[race.winner]
            in_the_middle = winner.stall_after < winner.output_tokens
            self.pauses.add(winner.token_s + (winner.stall_s if in_the_middle else 0.0))
            super().answered(race)

        def in_trouble_from(self, attempt: Any, age_s: float, usual: Any) -> float:
            first = replace(attempt, stall_after=0, output_tokens=0)  # nothing of it can be seen but its first token
            before = reference.in_trouble_from(first, age_s, usual)
            if before < attempt.ttft_s or attempt.status != 200:
                return before
            return min(self._silent(attempt, age_s, usual), _slow(attempt, age_s, usual))

        def _silent(self, attempt: Any, age_s: float, usual: Any) -> float:
            """When a silence is a stall; in the workloads only one gap of an attempt is long."""
            usual_pause_s = self.pauses.quantile(0.9) if len(self.pauses) else 0.0
            limit_s, j = usual.limit_s, attempt.stall_after
            least_s = max(0.15, 5 * usual.tau, min(max(usual_pause_s, limit_s / 4), limit_s))
            heard_s = attempt.ttft_s + (j - 1) * attempt.token_s
            late_s = usual.b + max(0.0, j * usual.tau - 2 * usual.b) + 1.2 * limit_s
            when_s, goes_on_s = max(age_s, heard_s + least_s, late_s), heard_s + attempt.token_s + attempt.stall_s
            return when_s if when_s < goes_on_s else inf

    return Today(replace(reference.Rule(), budget=budget, **CHANGED))


def _slow(attempt: Any, age_s: float, usual: Any) -> float:
    """When its pace is trouble: the reference's own question, asked of it at each token."""
    if attempt.token_s <= usual.slow_pace:
        return inf
    reference = shared_module("reference")
    for j in range(9, attempt.output_tokens + 1):
        shift_s = attempt.stall_s if j > attempt.stall_after else 0.0
        arrived_s = attempt.ttft_s + (j - 1) * attempt.token_s + shift_s
        goes_on_s = arrived_s + attempt.token_s + (attempt.stall_s if j == attempt.stall_after else 0.0)
        if goes_on_s > age_s and reference._will_end_late(j, arrived_s, attempt.token_s, usual):
            return max(age_s, arrived_s)
    return inf
