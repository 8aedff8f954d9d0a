"""How often the interval of a p99 holds the true one, by how slow calls come together: a table for docs/concepts/what-if.md.

python benchmarks/intervals.py [--logs 150] [--calls 3000 10000]

Each log is drawn from odds that are known, so its true p99 is that of a million calls of its kind.
"""

import argparse
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hedgerow.analysis.p99 import p99_interval

Column = NDArray[np.float64]
Odds = Callable[[np.random.Generator, int], Column]
HANGS, SWAY = -5.5, 2.0  # log-odds of a hang, and their standard deviation
SPELL, CLEAR = 0.2, 0.01  # odds within a slow spell, and outside


def independent(rng: np.random.Generator, n: int) -> Column:
    """Each call has odds of its own."""
    return _logistic(rng.normal(size=n))


def swaying(lasts: int) -> Odds:
    """Odds that go up and down, with a correlation over so many calls."""

    def odds(rng: np.random.Generator, n: int) -> Column:
        keep, shocks, now = float(np.exp(-1 / lasts)), rng.normal(size=n), float(rng.normal())
        found = np.empty(n)
        for number in range(n):
            found[number] = now = keep * now + float(np.sqrt(1 - keep * keep)) * shocks[number]
        return _logistic(found)

    return odds


def spells(lasts: int) -> Odds:
    """Two weathers: slow spells of so many calls on average, a seventh of the time."""

    def odds(rng: np.random.Generator, n: int) -> Column:
        slow, turns, found = rng.random() < 1 / 7, rng.random(n), np.empty(n)
        for number in range(n):
            slow = slow != (turns[number] < (1 / lasts if slow else 1 / (6 * lasts)))
            found[number] = SPELL if slow else CLEAR
        return found

    return odds


def _logistic(weather: Column) -> Column:
    return 1 / (1 + np.exp(-(HANGS + SWAY * weather)))


KINDS: dict[str, Odds] = {
    "independently": independent,
    "with odds that sway over 20 calls": swaying(20),
    "with odds that sway over 150 calls": swaying(150),
    "with odds that sway over 500 calls": swaying(500),
    "in spells of 8 calls": spells(8),
    "in spells of 60 calls": spells(60),
    "in spells of 200 calls": spells(200),
}


def seconds_of(rng: np.random.Generator, odds: Column) -> Column:
    """About two seconds a call; one that hangs takes 10 s more, and then some."""
    hangs = rng.random(len(odds)) < odds
    return rng.gamma(4, 0.5, len(odds)) + np.where(hangs, 10 + rng.exponential(15, len(odds)), 0.0)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=int, default=150, help="of each kind and length")
    parser.add_argument("--calls", type=int, nargs="+", default=[3_000, 10_000], help="in a log")
    asked = parser.parse_args()
    print("| slow calls come | calls | interval holds | marked | holds or is marked |\n|---|---|---|---|---|")
    for name, odds in KINDS.items():
        rng = np.random.default_rng(0)
        truth = float(np.quantile(np.concatenate([seconds_of(rng, odds(rng, 200_000)) for _ in range(5)]), 0.99))
        for n in asked.calls:
            holds, marked, either = 0, 0, 0
            for log in range(asked.logs):
                rng = np.random.default_rng(log)
                found = p99_interval(seconds_of(rng, odds(rng, n)))
                if found is None:
                    continue
                held = found.low <= truth <= found.high
                holds, marked, either = holds + held, marked + found.covers_less, either + (held or found.covers_less)
            shares = " | ".join(f"{each / asked.logs:.0%}" for each in (holds, marked, either))
            print(f"| {name} | {n:,} | {shares} |", flush=True)


if __name__ == "__main__":
    main()
