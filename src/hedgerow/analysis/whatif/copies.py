"""Which calls stand for the copies of a call: its neighbours in time, since what slows one call often slows the next one too.

Never drawn independently: on real traces that overstates the gain three- to fourfold (docs/concepts/what-if.md).
"""

import numpy as np
from numpy.typing import NDArray

from hedgerow.analysis.calls import Column

__all__ = ["Places", "elsewhere", "neighbours", "second_target"]

COPIES = 2  # backups a call can have
REACH, CHUNK = 64, 20_000
FAR_S = 1e12  # farther than any call of a group that fits
Places = NDArray[np.intp]


def neighbours(n: int, rng: np.random.Generator) -> Places:
    """Of n ≥ 3 calls in order of time: the one before and the one after, in random order. Shape (copies, n)."""
    here = np.arange(n)
    before, after = np.where(here > 0, here - 1, 2), np.where(here < n - 1, here + 1, n - 3)
    first_before = rng.random(n) < 0.5
    return np.stack([np.where(first_before, before, after), np.where(first_before, after, before)])


def elsewhere(t_start: Column, groups: NDArray[np.intp], *, same: bool) -> Places:
    """Of calls in order of time that belong to groups (providers): the nearest two in time of the same group, or of others.

    Where none is within 64 calls either way, the nearest call of any group stands in. Shape (copies, n).
    """
    n = len(t_start)
    chunks = [_nearest(t_start, groups, np.arange(first, min(first + CHUNK, n)), same) for first in range(0, n, CHUNK)]
    return np.concatenate(chunks, axis=1)


def _nearest(t_start: Column, groups: NDArray[np.intp], here: Places, same: bool) -> Places:
    around = np.arange(-REACH, REACH + 1)
    candidates = here[None, :] + around[:, None]
    inside = (candidates >= 0) & (candidates < len(t_start)) & (around[:, None] != 0)
    candidates = np.clip(candidates, 0, len(t_start) - 1)
    fits = (groups[candidates] == groups[here][None, :]) == same
    distance = np.where(inside, np.abs(t_start[candidates] - t_start[here][None, :]), np.inf)
    distance = np.where(fits | ~inside, distance, distance + FAR_S)
    nearest = np.argsort(distance, axis=0, kind="stable")[:COPIES]
    return np.take_along_axis(candidates, nearest, axis=0)


def second_target(t_start: Column, other: Column) -> Places:
    """Of calls in order of time: the nearest two in time among another target's calls, in order of time too, at least two.
    Shape (copies, n), places in `other`."""
    after = np.clip(np.searchsorted(other, t_start), 1, len(other) - 1)
    before = after - 1
    nearer_before = np.abs(t_start - other[before]) <= np.abs(other[after] - t_start)
    return np.stack([np.where(nearer_before, before, after), np.where(nearer_before, after, before)])
