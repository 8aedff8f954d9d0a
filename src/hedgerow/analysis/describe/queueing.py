"""Does an endpoint queue on itself, so that a backup would join the queue it flees from? None: the log cannot tell.

With start times: within short stretches of the log, do calls take longer for their length the more others are in flight
(policy.md, Readings 9)? Short ones, since by day the provider may be slow for everybody while we are busy, too. And do they take
longer after more calls have begun? Slow weather alone puts more calls in flight, but makes nobody send more of them.
Without: does lateness climb with the position in waves of equal length through the order of the file?
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.analysis.calls import Calls, Column
from hedgerow.analysis.lengths import slowdowns

__all__ = ["Queueing", "queueing_of"]

CLIMBS_BY = 1.3
SMALLEST_HALF = 20
# Of the stretches that calls in order of time are cut into: calls in one, how many at least and at most.
STRETCH, SHORTEST, FEWEST, MOST = 40, 8, 8, 500
# Median rank correlation in a stretch; how many standard errors more of them are positive than half, for calls in flight and for
# calls begun; how much slower the busier half of a stretch is. All together are met by none of 660 logs of eleven kinds where
# nothing queues, and, of 3,000 calls each, by 474 of 480 logs of eight kinds of queues (the tests' queueing_kinds.py).
CORRELATES, SURELY, ALSO_BEGUN, WITHIN_BY = 0.25, 2.5, 1.5, 1.1
LONGEST_WAVE, LEAST_WAVES = 64, 8
MOST_LOOKED_AT = 20_000
# Correlation of place in the wave and rank of the time, × √n. About 2,000 waves are tried: in a shuffled log one reaches 5
# once in a thousand logs. Where the wave is known, only where it begins is tried.
CLEARLY, CLEARLY_AGAIN = 5.0, 2.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Queueing:
    """queues: None = unknown. seen_by: "calls in flight", "waves of 5 in the order of the log", or None. climbs_by: median
    lateness of the busy half ÷ that of the other. wave: calls in a wave, where waves showed it."""

    queues: bool | None
    seen_by: str | None
    climbs_by: float | None
    wave: int | None = None


UNKNOWN = Queueing(queues=None, seen_by=None, climbs_by=None)


def queueing_of(calls: Calls, wave: int | None = None) -> Queueing:
    """Of one key's calls. Late is by the first token for the length of the input where the log has it, else by the whole response
    for its length.

    wave: the wave seen at another model of the same provider: this one alone is looked for then, so less makes it sure.
    """
    if not calls.ok.any():
        return UNKNOWN
    has_first = bool(np.isfinite(calls.ttft_s[calls.ok]).mean() > 0.5)
    took, length = (calls.ttft_s, calls.input_tokens) if has_first else (calls.total_s, calls.output_tokens)
    late = slowdowns(took, length, calls.ok & np.isfinite(took))
    return _by_flight(calls, took, late) if calls.timed else _by_waves(late[:MOST_LOOKED_AT], wave)


def _by_flight(calls: Calls, took: Column, late: Column) -> Queueing:
    """Stretch by stretch, so that neither the hour of the day nor the weather stands for a queue."""
    ends = calls.t_start + np.where(np.isnan(calls.total_s), took, calls.total_s)
    usable = np.isfinite(late) & (late > 0) & np.isfinite(ends)
    start, late = calls.t_start[usable], late[usable]
    if len(start) < 2 * SMALLEST_HALF:
        return UNKNOWN
    begun = np.arange(len(start))
    in_flight = begun - np.searchsorted(np.sort(ends[usable]), start, side="right")
    lately = begun - np.searchsorted(start, start - float(np.median(ends[usable] - start)))
    stretch = int(np.clip(len(start) // FEWEST, SHORTEST, STRETCH))
    rows = _stretches(len(start), stretch)
    by_flight = _correlations(in_flight[rows], late[rows])
    if len(by_flight) < FEWEST:
        return UNKNOWN
    busy = in_flight > np.median(in_flight)
    queues = (
        float(np.median(by_flight)) >= CORRELATES
        and _sureness(by_flight) >= SURELY
        and _sureness(_correlations(lately[rows], late[rows])) >= ALSO_BEGUN
        and _climbs_within(in_flight[rows], late[rows]) >= WITHIN_BY
    )
    climbs = float(np.median(late[busy]) / np.median(late[~busy])) if busy.any() and not busy.all() else None
    return Queueing(queues=queues, seen_by="calls in flight", climbs_by=climbs)


def _stretches(n: int, stretch: int) -> NDArray[np.intp]:
    """Places of n calls, a stretch of neighbours in each row; of a long log some, evenly spread."""
    rows = np.arange(n // stretch * stretch).reshape(-1, stretch)
    return rows if len(rows) <= MOST else rows[np.linspace(0, len(rows) - 1, MOST).astype(int)]


def _correlations(x: NDArray[np.intp], y: Column) -> Column:
    """Spearman's, of each row in which both vary."""
    x_rank, y_rank = _ranks(x), _ranks(y)
    spread = np.sqrt((x_rank**2).sum(axis=1) * (y_rank**2).sum(axis=1))
    varies = spread > 0
    return (x_rank * y_rank).sum(axis=1)[varies] / spread[varies]


def _ranks(values: NDArray[np.intp] | Column) -> Column:
    """Within each row, about their mean; equal ones share theirs."""
    below = (values[:, :, None] > values[:, None, :]).sum(axis=2)
    above = (values[:, :, None] < values[:, None, :]).sum(axis=2)
    return (below - above) / 2.0


def _sureness(correlations: Column) -> float:
    """Standard errors by which the positive ones are more than half: a few stretches of another kind do not sway it."""
    return float((correlations > 0).mean() * 2 - 1) * float(np.sqrt(len(correlations))) if len(correlations) else 0.0


def _climbs_within(in_flight: NDArray[np.intp], late: Column) -> float:
    """The median over stretches: of calls that met more in flight than their stretch's median, against the others."""
    busy = in_flight > np.median(in_flight, axis=1, keepdims=True)
    ratios = [
        float(np.median(row[more]) / np.median(row[~more]))
        for row, more in zip(late, busy, strict=True)
        if more.any() and not more.all()
    ]
    return float(np.median(ratios)) if ratios else 1.0


def _by_waves(waited: Column, wave: int | None) -> Queueing:
    """The clearest climb within waves. A log whose order shows none may still come from an endpoint that queues."""
    place = np.flatnonzero(np.isfinite(waited))
    waited = waited[place]
    lengths = (wave,) if wave else range(2, min(LONGEST_WAVE, len(waited) // LEAST_WAVES) + 1)
    if len(waited) < 2 * SMALLEST_HALF or not lengths:
        return UNKNOWN
    clearest, length, first = max(_clearest(place, waited, length) for length in lengths)
    late = (place - first) % length >= (length + 1) // 2
    early = (place - first) % length < length // 2
    climbs = float(np.median(waited[late]) / np.median(waited[early]))
    if clearest < (CLEARLY_AGAIN if wave else CLEARLY) or climbs < CLIMBS_BY:
        return UNKNOWN
    seen_by = f"waves of {length} in the order of the log"
    return Queueing(queues=True, seen_by=seen_by, climbs_by=climbs, wave=length)


def _clearest(place: NDArray[np.intp], waited: Column, length: int) -> tuple[float, int, int]:
    """(how clear, length, where the waves begin): the clearest climb in waves of this length."""
    ranks = np.argsort(np.argsort(waited)).astype(float)
    ranks = (ranks - ranks.mean()) / ranks.std()
    within = place % length
    sums, counts = np.bincount(within, ranks, minlength=length), np.bincount(within, minlength=length)
    # Row f: the places in the wave if waves begin at f.
    positions = (np.arange(length)[None, :] - np.arange(length)[:, None]) % length
    mean = positions @ counts / len(waited)
    variance = (positions**2) @ counts / len(waited) - mean**2
    clear = (positions @ sums) / np.sqrt(len(waited) * np.maximum(variance, 1e-12))
    first = int(np.argmax(clear))
    return float(clear[first]), length, first
