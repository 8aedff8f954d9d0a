"""Signs that a log does not measure single calls: each is a way in which its figures mislead."""

import numpy as np

from hedgerow.analysis.calls import Calls, Column
from hedgerow.analysis.censored import hung

__all__ = ["cautions_about"]

FEWEST_CALLS = 200
PILE_WIDTH, PILE_TIMES, LEAST_PILE, NEIGHBOURS = 0.01, 8.0, 8, 11
ROUND_TIMEOUTS_S = (30.0, 60.0, 90.0, 120.0, 180.0, 240.0, 300.0, 600.0, 900.0)
WITHIN_S = 0.5
LONG_MEDIAN_S = 600.0
LIKELY, UNLIKELY = 0.98, 0.9


def cautions_about(calls: Calls, errors: int) -> list[str]:
    """About one key's calls; sentences without the key's name. errors: of the same key."""
    total = calls.total_s[calls.ok & np.isfinite(calls.total_s)]
    found = [
        _milliseconds(total),
        _survivors(len(calls), errors),
        _cut_off(calls),
        _timeouts(total),
        _pile(total),
        _whole_seconds(calls),
        _end_stamps(calls),
    ]
    return [caution for caution in found if caution is not None]


def _milliseconds(total: Column) -> str | None:
    if len(total) and np.median(total) > LONG_MEDIAN_S:
        return (
            f"half of the calls took longer than {np.median(total):,.0f} s: are these milliseconds? "
            "Say so with --map total=FIELD:ms"
        )
    return None


def _survivors(n: int, errors: int) -> str | None:
    if n >= FEWEST_CALLS and not errors:
        return f"none of {n:,} calls failed: if failed calls were not logged, the worst of the tail is missing"
    return None


def _cut_off(calls: Calls) -> str | None:
    """Failed calls that ran long: the very tail that a backup is for."""
    cut = calls.failed_s[hung(calls, np.where(calls.ok, calls.total_s, np.nan))]
    if not len(cut):
        return None
    n = f"{len(cut):,} failed call{'s' if len(cut) > 1 else ''} ran for {cut.min():.1f} s or longer"
    limit_s = float(np.median(cut))
    if len(cut) >= 3 and (np.abs(cut - limit_s) < WITHIN_S).mean() > 0.5:
        n += f", most of them {limit_s:.0f} s, as a time-out makes it"
    return f"{n}: percentiles count that as the least they would have taken"


def _timeouts(total: Column) -> str | None:
    """Calls that end just after a round time-out, far out in the tail: cut by a client that then tried again."""
    if len(total) < FEWEST_CALLS:
        return None
    far = 3 * float(np.median(total))
    for limit_s in ROUND_TIMEOUTS_S:
        at_limit = int(((total >= limit_s) & (total < limit_s + WITHIN_S)).sum())
        around = int(((total >= limit_s - 5 * WITHIN_S) & (total < limit_s + 6 * WITHIN_S)).sum()) - at_limit
        if limit_s > far and at_limit >= 3 and at_limit > around:
            return f"{at_limit} calls took {limit_s:g} s and a little more: a client's time-out with a retry inside, not one call"
    return None


def _pile(total: Column) -> str | None:
    """A narrow pile of calls beyond the median, as a client's back-off makes it."""
    if len(total) < FEWEST_CALLS:
        return None
    logs = np.log(total[total > 1.5 * np.median(total)])
    if len(logs) < 4 * LEAST_PILE:
        return None
    edges = np.arange(logs.min() - NEIGHBOURS * PILE_WIDTH, logs.max() + NEIGHBOURS * PILE_WIDTH, PILE_WIDTH)
    counts, _ = np.histogram(logs, bins=edges)
    around = np.convolve(np.pad(counts, NEIGHBOURS), np.ones(2 * NEIGHBOURS + 1), mode="valid") - counts
    piled = (counts >= LEAST_PILE) & (counts > PILE_TIMES * np.maximum(around / (2 * NEIGHBOURS), 0.5))
    if not piled.any():
        return None
    at = int(np.argmax(np.where(piled, counts, 0)))
    return (
        f"{counts[at]} calls took {np.exp(edges[at]):.2f} s to within 1 %: a client's retry or back-off may be inside"
    )


def _whole_seconds(calls: Calls) -> str | None:
    known = calls.t_start[np.isfinite(calls.t_start)]
    if calls.timed and len(known) >= FEWEST_CALLS and bool(np.all(known == np.round(known))):
        return "moments are whole seconds: calls in flight, and neighbours in time, are known only roughly"
    return None


def _end_stamps(calls: Calls) -> str | None:
    """In a log of calls made one after the other, the next one begins after this one's end; if moments are ends, the next
    moment comes after the next call's own time."""
    if not calls.timed or len(calls) < FEWEST_CALLS:
        return None
    gap, total = np.diff(calls.t_start), calls.total_s
    known = np.isfinite(gap) & np.isfinite(total[1:]) & np.isfinite(total[:-1])
    if known.sum() < FEWEST_CALLS / 2:
        return None
    starts, ends = gap >= total[:-1], gap >= total[1:]
    if ends[known].mean() >= LIKELY and starts[known].mean() < UNLIKELY:
        return "moments look like the ends of calls, not their starts"
    return None
