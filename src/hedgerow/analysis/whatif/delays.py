"""What a delay given as a quantile comes to at each call: that quantile of the calls before it, as a live policy would know it.

The window counts calls (the last 1000) or reaches back a time ("7d"); with fewer than 20 calls in it nothing is hedged.
"""

import numpy as np

from hedgerow.analysis.calls import Column
from hedgerow.statistics.quantile import quantile
from hedgerow.units import Window

__all__ = ["rolling_quantile"]

WARM_UP = 20
CHECKPOINTS = 5000  # how often the quantile is taken anew


def rolling_quantile(values: Column, share: float, window: Window, t_start: Column) -> Column:
    """Per call, seconds; inf while too little is known. values: in order of time, inf where a call failed (left out)."""
    n = len(values)
    found = np.full(n, np.inf)
    step = max(1, n // CHECKPOINTS)
    since = np.zeros(n, dtype=np.intp) if window.seconds is None else np.searchsorted(t_start, t_start - window.seconds)
    starts = np.maximum(since, np.arange(n) - window.requests).tolist()
    for first in range(0, n, step):
        before = values[starts[first] : first]
        seen = before[np.isfinite(before)]
        if len(seen) >= WARM_UP:
            found[first : first + step] = quantile(np.sort(seen).tolist(), share)
    return found
