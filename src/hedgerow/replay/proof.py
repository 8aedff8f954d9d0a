"""Evidence that every request got one answer and that nothing was left running: the sandbox's books beside the caller's."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from hedgerow.replay.bill import Attempt
from hedgerow.replay.calls import Measured
from hedgerow.replay.runner import case_of

__all__ = ["Proof", "losers_open", "prove"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """`answers_per_request`: answers delivered per request; less than 1 where requests failed. `losers_closed`: attempts
    the sandbox saw cut off by us; `losers_open`: attempts it was still busy with after all callers had their answer."""

    answers_per_request: float | None
    losers_closed: int
    losers_open: int

    def as_dict(self) -> dict[str, float | int | None]:
        """JSON-ready."""
        return asdict(self)


def prove(calls: Mapping[str, Sequence[Measured]], cases: Mapping[str, Sequence[Attempt]]) -> Proof:
    """An answer counts if the caller read it to its end and the sandbox wrote one of the case's attempts to its end."""
    delivered = sum(
        call.answers
        for arm, measured in calls.items()
        for number, call in enumerate(measured)
        if any(attempt.outcome == "completed" for attempt in cases.get(case_of(arm, number), ()))
    )
    requests = sum(map(len, calls.values()))
    outcomes = [attempt.outcome for attempts in cases.values() for attempt in attempts]
    return Proof(
        answers_per_request=delivered / requests if requests else None,
        losers_closed=outcomes.count("disconnected"),
        losers_open=losers_open(cases),
    )


def losers_open(cases: Mapping[str, Sequence[Attempt]]) -> int:
    """Attempts in flight. Once every caller has its answer, each of them is a loser that nobody stopped."""
    return sum(attempt.outcome is None for attempts in cases.values() for attempt in attempts)
