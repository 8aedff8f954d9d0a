"""Does an endpoint queue on itself, so that a backup would join the queue it flees from? None: the log cannot tell.

With start times: do first tokens (or whole responses) take longer the more calls are in flight (policy.md, Readings 9)?
Without: does the time climb with the position in waves of equal length through the order of the file?
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.analysis.calls import Calls, Column

__all__ = ["Queueing", "queueing_of"]

CLIMBS_BY = 1.3
SMALLEST_HALF = 20
LONGEST_WAVE, LEAST_WAVES = 64, 8
MOST_LOOKED_AT = 20_000
# Correlation of place in the wave and rank of the time, × √n. About 2,000 waves are tried: in a shuffled log one reaches 5
# once in a thousand logs. Where the wave is known, only where it begins is tried.
CLEARLY, CLEARLY_AGAIN = 5.0, 2.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Queueing:
    """queues: None = unknown. seen_by: "calls in flight", "waves of 5 in the order of the log", or None. climbs_by: median
    wait of the busy half ÷ that of the other. wave: calls in a wave, where waves showed it."""

    queues: bool | None
    seen_by: str | None
    climbs_by: float | None
    wave: int | None = None


UNKNOWN = Queueing(queues=None, seen_by=None, climbs_by=None)


def queueing_of(calls: Calls, wave: int | None = None) -> Queueing:
    """Of one key's calls. Waits are times to the first token where the log has them, else whole responses.

    wave: the wave seen at another model of the same provider: this one alone is looked for then, so less makes it sure.
    """
    if not calls.ok.any():
        return UNKNOWN
    has_first = bool(np.isfinite(calls.ttft_s[calls.ok]).mean() > 0.5)
    waited = np.where(calls.ok, calls.ttft_s if has_first else calls.total_s, np.nan)
    return _by_flight(calls, waited) if calls.timed else _by_waves(waited[:MOST_LOOKED_AT], wave)


def _by_flight(calls: Calls, waited: Column) -> Queueing:
    """The median wait of calls that met more others in flight than the median, against the rest."""
    ends = calls.t_start + np.where(np.isnan(calls.total_s), waited, calls.total_s)
    usable = np.isfinite(waited) & np.isfinite(ends)
    start, waited = calls.t_start[usable], waited[usable]
    if len(start) < 2 * SMALLEST_HALF:
        return UNKNOWN
    in_flight = np.arange(len(start)) - np.searchsorted(np.sort(ends[usable]), start, side="right")
    busy = in_flight > np.median(in_flight)
    if min(busy.sum(), (~busy).sum()) < SMALLEST_HALF:
        return UNKNOWN
    climbs = float(np.median(waited[busy]) / np.median(waited[~busy]))
    return Queueing(queues=climbs >= CLIMBS_BY, seen_by="calls in flight", climbs_by=climbs)


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
