"""How sure the figures are: a moving view of the log is resampled in whole blocks of time, all policies together.

Blocks keep what belongs together in time (Künsch 1989, the block bootstrap). A resample is a number of copies of each
block, so a percentile is found by walking down the slowest calls once, without sorting again.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.analysis.calls import Column
from hedgerow.analysis.p99 import Interval, few_blocks_widen, slow_together_for

__all__ = ["Resamples"]

RESAMPLES = 400
MOST_BLOCKS, FEWEST_BLOCKS, BLOCK_CALLS = 200, 8, 25
DEPTH = 3.0  # the slowest so many times (1 − share) hold the percentile of all but freak resamples
CONFIDENCE = (0.025, 0.975)


@dataclass(frozen=True, slots=True)
class Resamples:
    """counts: copies of each block in each resample, shape (resamples, blocks); block: of each call."""

    counts: NDArray[np.float64]
    block: NDArray[np.intp]

    @classmethod
    def of(cls, seconds: Column, rng: np.random.Generator) -> "Resamples":
        """Of calls in order of time; seconds: how long each took, from which is learnt for how long slow ones come together."""
        n = len(seconds)
        calls = max(BLOCK_CALLS, slow_together_for(seconds))
        blocks = int(np.clip(n // calls, FEWEST_BLOCKS, MOST_BLOCKS))
        drawn = rng.multinomial(blocks, np.full(blocks, 1 / blocks), size=RESAMPLES)
        return cls(drawn.astype(float), np.arange(n) * blocks // n)

    def interval(self, estimates: Column) -> Interval | None:
        """The middle 95 % of what the resamples came to, wider where the blocks are few; None if half of them came to nothing."""
        good = estimates[np.isfinite(estimates)]
        if len(good) < 0.5 * len(estimates) or not len(good):
            return None
        low, middle, high = (float(each) for each in np.quantile(good, (CONFIDENCE[0], 0.5, CONFIDENCE[1])))
        wider = few_blocks_widen(self.counts.shape[1])
        return middle - wider * (middle - low), middle + wider * (high - middle)

    def quantile(self, columns: Sequence[Column], share: float) -> Column:
        """That quantile of each resample, of all columns together (several looks at the same calls); NaN is left out."""
        values, block = np.concatenate(columns), np.concatenate([self.block] * len(columns))
        known = ~np.isnan(values)
        values, block = values[known], block[known]
        size = np.bincount(block, minlength=self.counts.shape[1])
        above = (1 - share) * (self.counts @ size)
        most = min(len(values), int(np.ceil(DEPTH * (1 - share) * len(values))) + 50)
        slowest = np.argpartition(values, len(values) - most)[len(values) - most :]
        slowest = slowest[np.argsort(-values[slowest], kind="stable")]
        passed = np.cumsum(self.counts[:, block[slowest]], axis=1)
        place = np.minimum((passed < above[:, None]).sum(axis=1), most - 1)
        return values[slowest][place]
