"""When the tail comes: each hour of the day with its percentiles, and the hours in which calls are slow more often than else."""

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from hedgerow.analysis.calls import Calls, Column, Flags
from hedgerow.analysis.lengths import slowdowns

__all__ = ["Hour", "hours_of"]

QUARTER_S = 900.0
SLOW_SHARE = 0.05
FEWEST_CALLS = 20
DEVIATIONS = 3.0  # 24 hours are looked at: one in twenty logs without tail hours shows one


@dataclass(frozen=True, slots=True, kw_only=True)
class Hour:
    """An hour of the day, local to the time zone asked for. slow_share: calls among the slowest 5 % for their length; tail:
    more of them than chance explains."""

    hour: int
    n: int
    p50: float
    p99: float
    slow_share: float
    tail: bool

    def as_dict(self) -> dict[str, object]:
        """JSON-ready."""
        return asdict(self)


def hours_of(calls: Calls, time_zone: str) -> list[Hour] | None:
    """Of one key's calls; None without start times. Hours with fewer than 20 answered calls are left out."""
    answered = calls.ok & np.isfinite(calls.total_s) & np.isfinite(calls.t_start)
    if not calls.timed or answered.sum() < FEWEST_CALLS:
        return None
    total = calls.total_s[answered]
    slowdown = slowdowns(calls.total_s, calls.output_tokens, answered)[answered]
    slow = slowdown > np.quantile(slowdown, 1 - SLOW_SHARE)
    hour = _hour_of_day(calls.t_start[answered], time_zone)
    usual = float(slow.mean())
    return [
        _hour(number, total[hour == number], slow[hour == number], usual)
        for number in range(24)
        if (hour == number).sum() >= FEWEST_CALLS
    ]


def _hour(number: int, total: Column, slow: Flags, usual: float) -> Hour:
    share, n = float(slow.mean()), len(total)
    p50, p99 = (float(value) for value in np.quantile(total, [0.5, 0.99]))
    chance = DEVIATIONS * float(np.sqrt(usual * (1 - usual) / n))
    return Hour(hour=number, n=n, p50=p50, p99=p99, slow_share=share, tail=share > usual + chance)


def _hour_of_day(t_start: Column, time_zone: str) -> NDArray[np.intp]:
    """Zones change by quarters of an hour, so one look-up per quarter is enough."""
    quarter = np.floor(t_start / QUARTER_S)
    distinct, inverse = np.unique(quarter, return_inverse=True)
    zone = ZoneInfo(time_zone)
    hours = np.array(
        [datetime.fromtimestamp(each * QUARTER_S, UTC).astimezone(zone).hour for each in distinct.tolist()]
    )
    return hours[inverse].astype(np.intp)
