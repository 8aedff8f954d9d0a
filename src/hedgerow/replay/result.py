"""What a comparison of arms found: the JSON object of `demo` and `replay`, and how it is made from the measurements.

Seconds are provider seconds, money is USD, undefined values are None.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hedgerow.replay.bill import Attempt, Cost, Tariff, cost_of
from hedgerow.replay.calls import Measured
from hedgerow.replay.paired import Difference, p99_differences
from hedgerow.replay.proof import Proof, prove
from hedgerow.replay.runner import case_of
from hedgerow.statistics.quantile import quantile
from hedgerow.statistics.quantiles import Quantiles

__all__ = ["ArmResult", "Backups", "Comparison", "CostPerCall", "compare"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Backups:
    """How many backups an arm sent, and how many of them delivered the answer."""

    sent: int
    won: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CostPerCall:
    """USD, the high bound: what a call costs where a closed loser is charged in full."""

    mean: float | None
    p50: float | None
    p95: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmResult:
    """One arm. `extra` is its cost less that of the baseline on the same requests. Failed requests are in `errors`, in the
    cost, and in no quantile."""

    arm: str
    n: int
    errors: int
    first_token: Quantiles
    full_response: Quantiles
    backups: Backups
    cost: Cost
    extra: Cost
    cost_per_call: CostPerCall
    p99_seconds_saved_per_usd: float | None

    def as_dict(self) -> dict[str, object]:
        """JSON-ready, as the reference names it."""
        per_call = self.cost_per_call
        return {
            "arm": self.arm,
            "n": self.n,
            "errors": self.errors,
            "first_token": self.first_token.as_dict(),
            "full_response": self.full_response.as_dict(),
            "backups": self.backups.sent,
            "backup_wins": self.backups.won,
            "cost_usd": {"low": self.cost.low_usd, "high": self.cost.high_usd},
            "cost_per_call_usd": {"mean": per_call.mean, "p50": per_call.p50, "p95": per_call.p95},
            "p99_seconds_saved_per_usd": self.p99_seconds_saved_per_usd,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """All arms, their differences from the baseline, and the proof."""

    arms: tuple[ArmResult, ...]
    paired: tuple[Difference, ...]
    proof: Proof

    def as_dict(self) -> dict[str, object]:
        """JSON-ready, as the reference names it."""
        return {
            "arms": [arm.as_dict() for arm in self.arms],
            "paired": [difference.as_dict() for difference in self.paired],
            "proof": self.proof.as_dict(),
        }


def compare(
    calls: Mapping[str, Sequence[Measured]],
    cases: Mapping[str, Sequence[Attempt]],
    backups: Mapping[str, Backups],
    tariff: Tariff,
    *,
    against: str,
    seed: int,
) -> Comparison:
    """The comparison of what the callers measured and what the sandbox saw. seed: of the bootstrap behind the intervals."""
    costs = {
        arm: [cost_of(cases.get(case_of(arm, number), ()), tariff) for number in range(len(measured))]
        for arm, measured in calls.items()
    }
    base = sum(costs[against], Cost())
    base_p99_s = _full_response(calls[against]).p99
    times = {arm: [call.full_response_s for call in measured] for arm, measured in calls.items()}
    return Comparison(
        arms=tuple(
            _arm_result(arm, measured, backups[arm], costs[arm], base, base_p99_s) for arm, measured in calls.items()
        ),
        paired=p99_differences(times, against, seed=seed),
        proof=prove(calls, cases),
    )


def _arm_result(
    arm: str,
    calls: Sequence[Measured],
    backups: Backups,
    costs: Sequence[Cost],
    base: Cost,
    base_p99_s: float | None,
) -> ArmResult:
    cost, full_response = sum(costs, Cost()), _full_response(calls)
    extra = Cost(low_usd=cost.low_usd - base.low_usd, high_usd=cost.high_usd - base.high_usd)
    saved_s = None if base_p99_s is None or full_response.p99 is None else base_p99_s - full_response.p99
    answered = [call for call in calls if call.error is None]
    return ArmResult(
        arm=arm,
        n=len(calls),
        errors=len(calls) - len(answered),
        first_token=Quantiles.of([call.first_token_s for call in answered if call.first_token_s is not None]),
        full_response=full_response,
        backups=backups,
        cost=cost,
        extra=extra,
        cost_per_call=_cost_per_call(costs),
        p99_seconds_saved_per_usd=None if saved_s is None or extra.high_usd <= 0 else saved_s / extra.high_usd,
    )


def _full_response(calls: Sequence[Measured]) -> Quantiles:
    return Quantiles.of([call.full_response_s for call in calls if call.full_response_s is not None])


def _cost_per_call(costs: Sequence[Cost]) -> CostPerCall:
    if not costs:
        return CostPerCall(mean=None, p50=None, p95=None)
    ordered = sorted(cost.high_usd for cost in costs)
    return CostPerCall(mean=sum(ordered) / len(ordered), p50=quantile(ordered, 0.5), p95=quantile(ordered, 0.95))
