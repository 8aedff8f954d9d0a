"""How sure a p99 is: an interval that holds the true one in 95 of 100 logs, or the word that it holds it less often.

Of n independent calls, how many exceed the true p99 is binomial, so the interval's ends are two of the slowest calls (Thompson
1936); binomial is taken for Poisson, whose limits are those of the gamma distribution, by Wilson and Hilferty (1931). Calls that
are slow together tell less than n calls do: by how much more blocks of the log differ in the number of exceedances than they
would if it were shuffled. How long these blocks have to be is learnt from the log (figures: docs/concepts/what-if.md).
"""

from dataclasses import dataclass

import numpy as np

from hedgerow.analysis.calls import Column

__all__ = ["FEWEST_CALLS", "Interval", "P99Interval", "few_blocks_widen", "p99_interval", "slow_together_for"]

Interval = tuple[float, float]
SHARE = 0.99
FEWEST_TO_TELL = 20
FEWEST_CALLS = 2_000  # of fewer, a spell that the log does not hold at all makes the truth another one too often
LEVELS = (0.95, 0.98, 0.99)  # slow weather shows in the p95, too, of which there are five times as many exceedances
SHUFFLES, MOST_BINS = 40, 2_000
BLOCK_GROWS, FEWEST_BLOCKS = 1.6, 6
# Independent exceedances: below the first there are too few in any case, below the second where the longest blocks still differ
# most, so that spells may be longer than the log can tell.
TOO_FEW, FEW = 6.0, 20.0
LONG_BLOCKS = 16
NORMAL = 1.96
GRID = 4_000
# Student's t, 97.5 %, by degrees of freedom.
STUDENT = {
    5: 2.571,
    6: 2.447,
    7: 2.365,
    8: 2.306,
    10: 2.228,
    12: 2.179,
    15: 2.131,
    20: 2.086,
    30: 2.042,
    60: 2.0,
    120: NORMAL,
}


@dataclass(frozen=True, slots=True)
class P99Interval:
    """low, high: seconds. together: the log shows that slow calls come together. covers_less: it holds the truth in fewer than 95
    of 100 logs, since there are too few calls, or too few slow spells."""

    low: float
    high: float
    together: bool = False
    covers_less: bool = False

    @property
    def ends(self) -> Interval:
        """As JSON has it."""
        return self.low, self.high


def p99_interval(seconds: Column) -> P99Interval | None:
    """Of calls in order of time, NaN left out; None with fewer than 20. An end beyond the slowest call seen is given as the
    slowest call: with fewer than about 400 calls the upper end is a lower bound of itself."""
    good = seconds[~np.isnan(seconds)]
    n = len(good)
    if n < FEWEST_TO_TELL:
        return None
    times, blocks, unresolved = _inflation(good)
    deviations = NORMAL if blocks is None else NORMAL * few_blocks_widen(blocks)
    exceed = n * (1 - SHARE) / times  # as many as independent ones
    fewest, most = _counts(exceed, deviations)
    low, high = np.interp([n - most * times, n - fewest * times - 1], np.arange(n), np.sort(good))
    together = blocks is not None
    less = n < FEWEST_CALLS or (together and (exceed < TOO_FEW or (unresolved and exceed < FEW)))
    return P99Interval(float(low), float(high), together, less)


def slow_together_for(seconds: Column) -> int:
    """For how many calls in a row slow ones come together, as far as a log in order of time shows it; 1 = they are independent.
    inf and NaN are left out."""
    good = seconds[np.isfinite(seconds)]
    _, blocks, _ = _inflation(good) if len(good) >= FEWEST_TO_TELL else (1.0, None, False)
    return 1 if blocks is None else len(good) // blocks


def few_blocks_widen(blocks: int) -> float:
    """By how much an interval from so many blocks is wider than the normal distribution has it (Student 1908)."""
    return STUDENT[max(freedom for freedom in STUDENT if freedom < max(blocks, FEWEST_BLOCKS))] / NORMAL


def _inflation(seconds: Column) -> tuple[float, int | None, bool]:
    """By how much the number of exceedances varies more than in a shuffled log; in how many blocks that was seen, None = not at
    all; whether it still grows with the length of the blocks."""
    over = (seconds[None, :] > np.quantile(seconds, LEVELS)[:, None]).astype(float)
    each = -(-over.shape[1] // MOST_BINS)
    counts = over[:, : over.shape[1] // each * each].reshape(len(LEVELS), -1, each).sum(axis=2)
    sizes, bins = [1, 2], counts.shape[1]
    while bins // (longer := int(sizes[-1] * BLOCK_GROWS) + 1) >= FEWEST_BLOCKS:
        sizes.append(longer)
    rng = np.random.default_rng(bins)
    shuffled = np.stack([_spread(_shuffled(counts, rng), each, sizes) for _ in range(SHUFFLES)])
    found, mean, deviation = _spread(counts, each, sizes), shuffled.mean(axis=0), shuffled.std(axis=0) + 1e-9
    chance = np.sort(((shuffled - mean) / deviation).max(axis=(1, 2)))[-2]  # 1 shuffled log in 40 has more
    if ((found - mean) / deviation).max() <= chance:
        return 1.0, None, False
    at = int(np.argmax(found[-1]))
    # Of calls whose odds change, the inflation less one is proportional to the level's share of exceedances.
    scaled = [1 + (1 - SHARE) / (1 - level) * (found[row].max() - 1) for row, level in enumerate(LEVELS)]
    return max(1.0, *map(float, scaled)), bins // sizes[at], sizes[at] * LONG_BLOCKS > bins


def _shuffled(counts: Column, rng: np.random.Generator) -> Column:
    """As many exceedances, each in any bin."""
    bins = counts.shape[1]
    drawn = [np.bincount(rng.integers(0, bins, int(n)), minlength=bins) for n in counts.sum(axis=1)]
    return np.stack(drawn).astype(float)


def _spread(counts: Column, calls: int, sizes: list[int]) -> Column:
    """Variance of the sums of so many neighbouring bins, overlapping, by what independent calls would have. counts: of
    exceedances, in bins of so many calls. Shape (levels, sizes)."""
    n = counts.shape[1]
    sums = np.concatenate([np.zeros((len(counts), 1)), np.cumsum(counts, axis=1)], axis=1)
    mean = counts.mean(axis=1, keepdims=True)
    variance = np.maximum(mean[:, 0] * (1 - mean[:, 0] / calls), 1e-12)
    found = [
        (((sums[:, size:] - sums[:, :-size]) - size * mean) ** 2).mean(axis=1) / (size * variance) / (1 - size / n)
        for size in sizes
    ]
    return np.stack(found, axis=1)


def _counts(mean: float, deviations: float) -> Interval:
    """The fewest and the most exceedances that are not too unlikely where so many are to be expected."""
    most = mean + 12 * deviations * (1 + float(np.sqrt(mean)))
    grid: Column = np.arange(1.0, GRID + 1) * (most / GRID)
    fewest = float(np.interp(mean, _gamma(grid, deviations), grid)) - 1
    return max(fewest, 0.0), float(np.interp(mean, _gamma(grid, -deviations), grid))


def _gamma(shape: Column, deviations: float) -> Column:
    return shape * (1 - 1 / (9 * shape) + deviations / (3 * np.sqrt(shape))) ** 3
