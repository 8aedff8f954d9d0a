"""Logs of an endpoint that queues on itself, and of those that only look so. Each makes n calls with a given random generator."""

import heapq
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from tests.calls_by_hand import calls_of

from hedgerow.analysis.calls import Calls, Column, Flags

__all__ = ["NOTHING_QUEUES", "QUEUES", "Kind"]

Kind = Callable[[np.random.Generator, int], Calls]
PACE_S = 0.02
DAY_S = 86_400.0


@dataclass
class Log:
    """Of n calls: when they start, seconds to the first token, tokens, and seconds beyond an even pace."""

    start: Column
    first_s: Column
    tokens: Column
    extra_s: Column
    pace_s: Column | float = PACE_S

    def calls(self, *, first_token_known: bool = True) -> Calls:
        """In order of start."""
        total = self.first_s + self.tokens * self.pace_s + self.extra_s
        order = np.argsort(self.start, kind="stable")
        return calls_of(
            total[order],
            t_start=self.start[order],
            ttft_s=self.first_s[order] if first_token_known else None,
            output_tokens=self.tokens[order],
        )


def plain(rng: np.random.Generator, n: int, every_s: float = 3.0) -> Log:
    """Calls that come at random and take what they take; 2 % hang."""
    hangs = np.where(rng.random(n) < 0.02, rng.uniform(15, 50, n), 0.0)
    tokens = rng.integers(30, 400, n).astype(float)
    return Log(np.cumsum(rng.exponential(every_s, n)), rng.lognormal(np.log(0.5), 0.3, n), tokens, hangs)


def runs_of_long_answers(rng: np.random.Generator, n: int) -> Log:
    """A hundred long answers and a hundred short ones by turns."""
    log, long = plain(rng, n, 2.0), np.arange(n) // 100 % 2 == 0
    log.tokens = np.where(long, rng.integers(800, 1200, n), rng.integers(50, 150, n)).astype(float)
    return log


def busy_hours(rng: np.random.Generator, n: int) -> Log:
    """The provider is slower for everybody while we send four times as much."""
    log, busy = plain(rng, n), np.arange(n) // 400 % 2 == 0
    log.start = np.cumsum(rng.exponential(1.0, n) * np.where(busy, 1.0, 4.0))
    log.first_s = log.first_s * np.where(busy, 1.5, 1.0)
    return log


def days(rng: np.random.Generator, n: int) -> Log:
    """Load and slowness go up and down with the hour, over three days."""
    log = plain(rng, n)
    at = np.sort(rng.uniform(0, 3 * DAY_S, 4 * n))
    kept = at[rng.random(4 * n) < (1 + 0.9 * np.sin(2 * np.pi * at / DAY_S)) / 1.9][:n]
    log.start = np.sort(np.concatenate([kept, rng.uniform(0, 3 * DAY_S, n - len(kept))]))
    log.first_s = log.first_s * (1 + 0.5 * (1 + np.sin(2 * np.pi * log.start / DAY_S)))
    return log


def weather(rng: np.random.Generator, n: int, lasts: int = 30, every_s: float = 2.0) -> Log:
    """Spells of calls that are slow together: more of them are in flight then, but none for that reason."""
    log, bad = plain(rng, n, every_s), in_spells(rng, n, lasts)
    log.first_s, log.pace_s = log.first_s * np.where(bad, 4.0, 1.0), np.where(bad, 2.0, 1.0) * PACE_S
    return log


def in_spells(rng: np.random.Generator, n: int, lasts: int) -> Flags:
    bad, found = False, np.zeros(n, dtype=bool)
    for number in range(n):
        bad = bad != (rng.random() < (1 / lasts if bad else 1 / (6 * lasts)))
        found[number] = bad
    return found


def fan_outs(rng: np.random.Generator, n: int) -> Log:
    """Sixteen calls at once, every minute."""
    log = plain(rng, n)
    log.start = np.sort(np.repeat(np.cumsum(rng.exponential(60, n // 16 + 1)), 16)[:n] + rng.random(n) * 0.05)
    return log


def workers(rng: np.random.Generator, n: int) -> Log:
    """Eight workers that make one call after the other, in weather."""
    log = weather(rng, n, 60)
    total = log.first_s + log.tokens * log.pace_s + log.extra_s
    free = [0.0] * 8
    for number in range(n):
        log.start[number] = at = heapq.heappop(free)
        heapq.heappush(free, at + total[number] + rng.exponential(0.5))
    return log


def queue(
    rng: np.random.Generator, n: int, places: int = 4, every_s: tuple[float, float] = (1.0, 2.2), run: int = 300
) -> Log:
    """An endpoint of so many places, busier and calmer by turns of `run` calls."""
    log, free, at = plain(rng, n), [0.0] * places, 0.0
    log.tokens, log.extra_s = rng.integers(150, 250, n).astype(float), np.zeros(n)
    for number in range(n):
        at += rng.exponential(every_s[number // run % 2])
        ready = max(at, heapq.heappop(free))
        heapq.heappush(free, ready + 0.3 + log.tokens[number] * PACE_S)
        log.start[number], log.first_s[number] = at, ready - at + 0.3 * rng.lognormal(0, 0.1)
    return log


def queued_fan_outs(rng: np.random.Generator, n: int) -> Log:
    """Sixteen calls at once to four places."""
    log, free, at = fan_outs(rng, n), [0.0] * 4, 0.0
    log.extra_s = np.zeros(n)
    for number in range(n):
        at = at + rng.exponential(60) if number % 16 == 0 else at + 0.001
        ready = max(at, heapq.heappop(free))
        heapq.heappush(free, ready + 0.3 + log.tokens[number] * PACE_S)
        log.start[number], log.first_s[number] = at, ready - at + 0.3
    return log


def batching(rng: np.random.Generator, n: int) -> Log:
    """A server that batches: first token and pace grow with the calls in flight; bursts of fifty."""
    log, at = plain(rng, n), 0.0
    ends = list[float]()
    for number in range(n):
        at += rng.exponential(1.0 if number // 50 % 2 else 3.0)
        ends = [end for end in ends if end > at]
        slower = PACE_S * 0.06 * len(ends) * log.tokens[number]
        log.start[number], log.extra_s[number] = at, slower
        log.first_s[number] = 0.2 * (1 + 0.35 * len(ends)) * rng.lognormal(0, 0.2)
        ends.append(at + log.first_s[number] + log.tokens[number] * PACE_S + slower)
    return log


NOTHING_QUEUES: dict[str, Kind] = {
    "plain": lambda rng, n: plain(rng, n).calls(),
    "runs of long answers": lambda rng, n: runs_of_long_answers(rng, n).calls(first_token_known=False),
    "busy hours": lambda rng, n: busy_hours(rng, n).calls(),
    "busy hours, no first tokens": lambda rng, n: busy_hours(rng, n).calls(first_token_known=False),
    "days": lambda rng, n: days(rng, n).calls(),
    "days, no first tokens": lambda rng, n: days(rng, n).calls(first_token_known=False),
    "weather": lambda rng, n: weather(rng, n).calls(),
    "weather, no first tokens": lambda rng, n: weather(rng, n).calls(first_token_known=False),
    "long weather, many calls": lambda rng, n: weather(rng, n, 100, 0.5).calls(),
    "fan-outs": lambda rng, n: fan_outs(rng, n).calls(),
    "workers": lambda rng, n: workers(rng, n).calls(),
}
QUEUES: dict[str, Kind] = {
    "four places": lambda rng, n: queue(rng, n).calls(),
    "four places, no first tokens": lambda rng, n: queue(rng, n).calls(first_token_known=False),
    "four places, evenly busy": lambda rng, n: queue(rng, n, 4, (1.25, 1.25)).calls(),
    "four places, half busy": lambda rng, n: queue(rng, n, 4, (2.0, 2.0)).calls(),
    "eight places": lambda rng, n: queue(rng, n, 8, (0.6, 1.1)).calls(),
    "one place": lambda rng, n: queue(rng, n, 1, (6.0, 6.0)).calls(),
    "fan-outs": lambda rng, n: queued_fan_outs(rng, n).calls(),
    "batching": lambda rng, n: batching(rng, n).calls(),
}
