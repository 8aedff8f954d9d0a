"""Logs with a known truth: every call is drawn with the copies it would have had. Shares nothing with the estimator.

The weather of an endpoint comes in spells: in a bad spell half of all attempts are slow, in between few. The two chances
are set so that 5 % of attempts are slow and P(a copy is slow | the original was slow) is the dependence asked for.
"""

from dataclasses import dataclass

import numpy as np

SLOW, SLOW_IN_BAD_SPELL, SPELL_CALLS = 0.05, 0.5, 30


@dataclass(frozen=True)
class Kind:
    """first_s, token_s: medians; tokens: median and sigma of the log; stall: Pareto scale, exponent and longest."""

    first_s: float
    token_s: float
    tokens: float
    tokens_spread: float
    input_tokens: float
    stall: tuple[float, float, float]
    per_second: float = 5.0


# Short uniform answers, long variable ones, searches with rare and very long stalls.
KINDS = {
    "O": Kind(0.58, 0.0115, 60, 0.28, 800, (1.0, 1.05, 25.0)),
    "G": Kind(0.55, 0.005, 230, 0.6, 1500, (1.0, 1.05, 30.0)),
    "S": Kind(0.7, 0.011, 300, 0.28, 1200, (6.0, 0.8, 100.0)),
}


@dataclass(frozen=True)
class Drawn:
    """Columns of shape (calls, attempts); attempt 0 is what the log has."""

    start_s: np.ndarray
    input_tokens: np.ndarray
    tokens: np.ndarray
    first_s: np.ndarray
    token_s: np.ndarray
    stall_after: np.ndarray
    stall_s: np.ndarray

    def total_s(self, attempt: int) -> np.ndarray:
        column = (slice(None), attempt)
        return self.first_s[column] + self.tokens[column] * self.token_s[column] + self.stall_s[column]


def spells(n: int, dependence: float, rng: np.random.Generator) -> np.ndarray:
    """Each call's chance that an attempt made then is slow."""
    if dependence <= SLOW:
        return np.full(n, SLOW)
    bad = SLOW_IN_BAD_SPELL
    # share·bad + (1−share)·good = SLOW and share·bad² + (1−share)·good² = SLOW·dependence, solved for the share.
    share = (SLOW * dependence - SLOW**2) / (bad**2 - 2 * bad * SLOW + SLOW * dependence)
    good = (SLOW - share * bad) / (1 - share)
    chance, place, is_bad = np.empty(n), 0, bool(rng.random() < share)
    while place < n:
        mean = SPELL_CALLS if is_bad else SPELL_CALLS * (1 - share) / share
        length = 1 + int(rng.exponential(mean))
        chance[place : place + length] = bad if is_bad else good
        place, is_bad = place + length, not is_bad
    return chance


def draw(kind: Kind, n: int, dependence: float, seed: int, attempts: int = 3) -> Drawn:
    rng = np.random.default_rng(seed)
    shape, each = (n, attempts), (n, 1)
    normal = rng.standard_normal
    tokens = kind.tokens * np.exp(kind.tokens_spread * normal(each) + 0.05 * normal(shape))
    scale, exponent, longest = kind.stall
    least = (longest / scale) ** -exponent
    slow = rng.random(shape) < spells(n, dependence, rng)[:, None]
    stall = slow * scale * (least + (1 - least) * rng.random(shape)) ** (-1 / exponent)
    tokens = np.maximum(1, np.round(tokens))
    where = rng.random(shape)  # a stall is a late first token, a slow pace, or a silence in the answer
    return Drawn(
        start_s=np.cumsum(rng.exponential(1 / kind.per_second, n)),
        input_tokens=np.maximum(1, np.round(kind.input_tokens * np.exp(0.7 * normal(n)))),
        tokens=tokens,
        first_s=kind.first_s * np.exp(0.07 * normal(each) + 0.14 * normal(shape)) + np.where(where < 0.45, stall, 0),
        token_s=kind.token_s * np.exp(0.166 * normal(shape))
        + np.where((where >= 0.45) & (where < 0.6), stall / tokens, 0),
        stall_after=np.floor(rng.random(shape) * tokens).astype(int) + 1,
        stall_s=np.where(where >= 0.6, stall, 0),
    )
