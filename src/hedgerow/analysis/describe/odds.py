"""How often a user meets a stall: per day, in n calls one after the other, in n calls at once."""

from dataclasses import dataclass

import numpy as np

from hedgerow.analysis.calls import Calls, Column, Flags

__all__ = ["STALL_TIMES_MEDIAN", "Odds", "Stalls", "stalls_of"]

STALL_TIMES_MEDIAN = 5.0
DAY_S = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Odds:
    """n: calls; threshold_s: from when on a response is a stall. chance: that at least one of n independent calls stalls.
    observed: the share of runs of n calls in the log, in its order, that have one; None with fewer than 20 such runs."""

    n: int
    threshold_s: float
    chance: float
    observed: float | None

    def as_dict(self) -> dict[str, object]:
        """JSON-ready."""
        return {"n": self.n, "threshold_s": self.threshold_s, "chance": self.chance, "chance_observed": self.observed}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stalls:
    """Responses longer than the threshold; failed calls that ran longer than it are some of them, `failed` of n. per_day: None
    where the log does not span an hour."""

    threshold_s: float
    n: int
    failed: int
    slowest_s: float
    per_day: float | None
    turns: Odds
    parallel: Odds


def stalls_of(calls: Calls, *, turns: int, parallel: int, stall_s: float | None) -> Stalls | None:
    """Of one key's calls; None if none was answered. stall_s: the threshold; None = 5 × the median response."""
    answered = calls.ok & np.isfinite(calls.total_s)
    if not answered.any():
        return None
    usual = float(np.median(calls.total_s[answered]))
    threshold = STALL_TIMES_MEDIAN * usual if stall_s is None else stall_s
    counted = answered | (calls.failed_s > threshold)
    total = np.where(answered, calls.total_s, calls.failed_s)[counted]
    stalled = total > threshold
    days = _days(calls.t_start[counted]) if calls.timed else None
    return Stalls(
        threshold_s=threshold,
        n=int(stalled.sum()),
        failed=int((stalled & ~calls.ok[counted]).sum()),
        slowest_s=float(total.max()),
        per_day=float(stalled.sum()) / days if days is not None and days * 24 >= 1 else None,
        turns=_odds(stalled, turns, threshold),
        parallel=_odds(stalled, parallel, threshold),
    )


def _odds(stalled: Flags, n: int, threshold_s: float) -> Odds:
    runs = len(stalled) // n
    observed = float(stalled[: runs * n].reshape(runs, n).any(axis=1).mean()) if runs >= 20 else None
    return Odds(n=n, threshold_s=threshold_s, chance=float(1 - (1 - stalled.mean()) ** n), observed=observed)


def _days(t_start: Column) -> float:
    known = t_start[np.isfinite(t_start)]
    return float(known.max() - known.min()) / DAY_S
