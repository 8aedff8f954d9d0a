"""The quantile object of the machine-readable output, over columns, and how sure its p99 is.

The interval of p99 is Woodruff's (1952): the share of calls below the estimate is uncertain, by how much the blocks of the
log differ in it, and its limits are read back from the sample. Blocks of time make it right for calls that are slow together.
"""

import numpy as np

from hedgerow.analysis.calls import Column
from hedgerow.statistics.quantiles import SHARES, Quantiles

__all__ = ["Interval", "p99_interval", "quantiles_of"]

Interval = tuple[float, float]
MOST_BLOCKS, BLOCK_CALLS, FEWEST_BLOCKS = 100, 50, 4
DEVIATIONS = 1.96


def quantiles_of(seconds: Column, n: int | None = None) -> Quantiles:
    """Of the finite values: NaN and inf are calls that failed. n: what to call their number, if several looks are in."""
    good = seconds[np.isfinite(seconds)]
    if not len(good):
        return Quantiles.of(())
    return Quantiles.at([float(value) for value in np.quantile(good, SHARES)], len(good) if n is None else n)


def p99_interval(seconds: Column) -> Interval | None:
    """95 % interval of the p99 of calls in order of time, NaN left out; None with fewer than 20. An end beyond the slowest
    call seen is given as the slowest call: with fewer than about 400 calls the upper end is a lower bound of itself."""
    good = seconds[~np.isnan(seconds)]
    n = len(good)
    if n < 20:
        return None
    ordered = np.sort(good)
    p99 = float(np.quantile(ordered, 0.99))
    blocks = int(np.clip(n // BLOCK_CALLS, FEWEST_BLOCKS, MOST_BLOCKS))
    block = np.arange(n) * blocks // n
    size = np.bincount(block)
    above = np.bincount(block, weights=good > p99)
    share = above.sum() / n
    spread = float(np.sqrt(((above - share * size) ** 2).sum() * blocks / (blocks - 1))) / n
    # As many independent calls would be as sure; never more than there are: few blocks say little about their own spread.
    independent = n if spread == 0 else min(float(n), 0.99 * 0.01 / spread**2)
    low, high = np.quantile(ordered, _wilson(0.99, independent))
    return float(low), float(high)


def _wilson(share: float, n: float) -> Interval:
    """The interval of a share seen in n independent calls (Wilson 1927)."""
    weight = DEVIATIONS**2 / n
    middle = (share + weight / 2) / (1 + weight)
    half = DEVIATIONS / (1 + weight) * float(np.sqrt(share * (1 - share) / n + weight / (4 * n)))
    return middle - half, min(1.0, middle + half)
