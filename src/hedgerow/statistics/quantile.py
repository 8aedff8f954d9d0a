"""Quantiles by linear interpolation: rank q·(n - 1), as numpy does by default."""

from collections.abc import Sequence

__all__ = ["quantile"]


def quantile(ordered: Sequence[float], share: float) -> float:
    """The value at `share` (0..1) of at least one value in rising order."""
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])
