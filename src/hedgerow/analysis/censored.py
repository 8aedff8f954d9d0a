"""Failed calls that ran long: how long they would have taken, nobody knows, but it was at least as long as they ran.

Percentiles count them as censored (Kaplan and Meier 1958). The mass of a censored call is spread over the calls that took longer
(Efron's redistribution to the right, 1967), so that without any of them the percentiles are those of linear interpolation.
"""

import numpy as np

from hedgerow.analysis.calls import Calls, Column, Flags

__all__ = ["HUNG_TIMES_MEDIAN", "censored_quantiles", "hung"]

HUNG_TIMES_MEDIAN = 5.0


def hung(calls: Calls, column: Column) -> Flags:
    """The failed calls that ran for 5 × the median of `column` (of answered calls) or longer: they count as slow ones."""
    answered = column[calls.ok & np.isfinite(column)]
    if not len(answered):
        return np.zeros(len(calls), dtype=bool)
    return ~calls.ok & (calls.failed_s >= HUNG_TIMES_MEDIAN * float(np.median(answered)))


def censored_quantiles(full: Column, cut: Column, shares: tuple[float, ...]) -> tuple[list[float | None], float | None]:
    """Quantiles of calls that took `full` seconds, or more than `cut`. One past the longest full call is None; the second value
    is what the first such is at least."""
    times = np.concatenate([full, cut])
    ends = np.concatenate([np.ones(len(full), dtype=bool), np.zeros(len(cut), dtype=bool)])
    order = np.lexsort((~ends, times))  # at equal times the full calls first, as is the custom
    times, ends = times[order], ends[order]
    n = len(times)
    at_risk = n - np.arange(n)
    survival = np.cumprod(np.where(ends, 1 - 1 / at_risk, 1.0))
    before = np.concatenate([[1.0], survival[:-1]])[ends]
    places = (1 - before) * n / max(1, n - 1)
    values = times[ends]
    if ends[-1]:  # nothing lies past it
        places[-1] = max(float(places[-1]), 1.0)
    found: list[float | None] = [
        float(np.interp(share, places, values)) if share <= places[-1] else None for share in shares
    ]
    past = [share for share, value in zip(shares, found, strict=True) if value is None]
    return found, float(np.quantile(times, past[0])) if past else None
