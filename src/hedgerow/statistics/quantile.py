"""Quantiles by linear interpolation: rank q·(n - 1), as numpy does by default."""

from collections.abc import Sequence

__all__ = ["quantile"]


def quantile(ordered: Sequence[float], share: float) -> float:
    """The value at `share` (0..1) of at least one value in rising order."""
    place = share * (len(ordered) - 1)
    low = int(place)
    beyond = place - low
    return ordered[low] + beyond * (ordered[low + 1] - ordered[low]) if beyond else ordered[low]
