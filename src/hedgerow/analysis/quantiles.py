"""The quantile object of the machine-readable output, over columns."""

import numpy as np

from hedgerow.analysis.calls import Column
from hedgerow.statistics.quantiles import SHARES, Quantiles

__all__ = ["quantiles_of"]


def quantiles_of(seconds: Column, n: int | None = None) -> Quantiles:
    """Of the finite values: NaN and inf are calls that failed. n: what to call their number, if several looks are in."""
    good = seconds[np.isfinite(seconds)]
    if not len(good):
        return Quantiles.of(())
    return Quantiles.at([float(value) for value in np.quantile(good, SHARES)], len(good) if n is None else n)
