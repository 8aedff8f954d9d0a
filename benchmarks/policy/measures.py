"""What a row of the figures table measures on one run. Shares are 0..1, times seconds, loads backups per request."""

from collections.abc import Sequence
from heapq import heappop, heappush

import numpy as np
from workbench import Run

from hedgerow.analysis.foreseen import Outcome

__all__ = ["excess", "load_between", "next_load", "p95_between", "spend_error"]

WARM_UP, WINDOW, STEP = 1_000, 5_000, 250
AFTER_SHIFT = 300


def spend_error(run: Run, budget: float) -> tuple[float, float]:
    """The least and the most that extra cost (losers in full) was off the budget, over any 5,000 requests after 1,000."""
    alone = np.array([_alone(outcome) for outcome in run.outcomes])
    extra = np.array([_full(outcome) for outcome in run.outcomes]) - alone
    starts = range(WARM_UP, len(alone) - WINDOW + 1, STEP)
    errors = [extra[at : at + WINDOW].sum() / alone[at : at + WINDOW].sum() - budget for at in starts]
    return float(min(errors)), float(max(errors))


def next_load(run: Run) -> float:
    """Backups per request in the 300 requests after the middle, where the level shifts."""
    middle = len(run.outcomes) // 2
    return _load(run.outcomes[middle : middle + AFTER_SHIFT])


def load_between(run: Run, begins_s: float, ends_s: float) -> float:
    """Backups per request that came in this time."""
    return _load(_between(run, begins_s, ends_s))


def p95_between(run: Run, begins_s: float, ends_s: float, *, hedged: bool = True) -> float:
    """95th percentile of the whole response of the requests that came in this time; of their primaries if not hedged."""
    inside = _between(run, begins_s, ends_s)
    times = [outcome.response_s if hedged else outcome.sent.rows[0].ends_s for outcome in inside]
    return float(np.quantile([time for time in times if time is not None], 0.95))


def excess(run: Run, budget: float) -> float:
    """The most that losing backups ever were above budget · n; the promise is that it never passes 2."""
    worst, losing, undecided = 0.0, 0, list[tuple[float, int]]()
    for n, outcome in enumerate(run.outcomes, start=1):
        while undecided and undecided[0][0] <= outcome.sent.start_s:
            losing += heappop(undecided)[1]
            worst = max(worst, losing - budget * (n - 1))
        backups = len(outcome.launched_s) - 1
        if backups and outcome.decided_s is not None:
            heappush(undecided, (outcome.decided_s, backups - bool(outcome.winner)))
    return max(worst, losing + sum(lost for _, lost in undecided) - budget * len(run.outcomes))


def _between(run: Run, begins_s: float, ends_s: float) -> list[Outcome]:
    return [outcome for outcome in run.outcomes if begins_s <= outcome.sent.start_s < ends_s]


def _load(outcomes: Sequence[Outcome]) -> float:
    return sum(len(outcome.launched_s) - 1 for outcome in outcomes) / len(outcomes)


def _alone(outcome: Outcome) -> float:
    primary = outcome.sent.rows[0]
    return outcome.sent.cost(primary.output_tokens) if primary.status == 200 else 0.0


def _full(outcome: Outcome) -> float:
    sent = outcome.sent
    return sum(sent.cost(row.output_tokens) for row in sent.rows[: len(outcome.launched_s)] if row.status == 200)
