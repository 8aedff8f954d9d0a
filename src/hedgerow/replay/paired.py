"""How sure a difference between two arms is: a percentile bootstrap over requests, the arms resampled together.

Pure. Pairs carry the request's luck on both sides, so the interval is narrower than that of two separate samples
(Efron & Tibshirani 1993, §13.3).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from hedgerow.statistics.quantile import quantile

__all__ = ["RESAMPLES", "Difference", "p99_differences"]

RESAMPLES = 2000
SHARE = 0.99
INTERVAL = (0.025, 0.975)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """p99 of `arm` minus p99 of `against`, in seconds: negative is better. None without an answer in both arms."""

    arm: str
    against: str
    p99_difference_s: float | None
    interval: tuple[float, float] | None

    def as_dict(self) -> dict[str, object]:
        """JSON-ready."""
        return {
            "arm": self.arm,
            "against": self.against,
            "p99_difference_s": self.p99_difference_s,
            "interval": None if self.interval is None else list(self.interval),
        }


def p99_differences(
    times: Mapping[str, Sequence[float | None]], against: str, *, seed: int, resamples: int = RESAMPLES
) -> tuple[Difference, ...]:
    """Each other arm's p99 less that of `against`, with its 95 % interval.

    times: per arm the seconds of request 0, 1, 2 …, None for one that failed (it is in no quantile, as in the table).
    resamples: ≥ 1000 for an interval worth printing.
    """
    tails = {arm: _Tail(seconds) for arm, seconds in times.items()}
    requests = len(times[against])
    luck, everyone = Random(seed), range(requests)
    seen = {arm: tail.p99(Counter(everyone)) for arm, tail in tails.items()}
    drawn: dict[str, list[float | None]] = {arm: [] for arm in times}
    for _ in range(resamples if requests else 0):
        copies = Counter(luck.choices(everyone, k=requests))
        for arm, tail in tails.items():
            drawn[arm].append(tail.p99(copies))
    return tuple(_difference(arm, against, seen, drawn) for arm in times if arm != against)


def _difference(
    arm: str, against: str, seen: Mapping[str, float | None], drawn: Mapping[str, Sequence[float | None]]
) -> Difference:
    mine, other = seen[arm], seen[against]
    if mine is None or other is None:
        return Difference(arm=arm, against=against, p99_difference_s=None, interval=None)
    pairs = zip(drawn[arm], drawn[against], strict=True)
    spread = sorted(a - b for a, b in pairs if a is not None and b is not None)
    low, high = (quantile(spread, share) for share in INTERVAL)
    return Difference(arm=arm, against=against, p99_difference_s=mine - other, interval=(low, high))


class _Tail:
    """One arm's times from the slowest down. A resample is a number of copies for each request, so its p99 is found by
    walking down one hundredth of them, without sorting."""

    def __init__(self, times: Sequence[float | None]) -> None:
        answered = [(seconds, request) for request, seconds in enumerate(times) if seconds is not None]
        self._slowest_first = sorted(answered, reverse=True)
        self._failed = [request for request, seconds in enumerate(times) if seconds is None]
        self._requests = len(times)

    def p99(self, copies: Counter[int]) -> float | None:
        """Of the resample in which request r is there copies[r] times."""
        n = self._requests - sum(copies[request] for request in self._failed)
        if n <= 0:
            return None
        place = SHARE * (n - 1)
        low = int(place)
        above, passed, higher = n - 1 - low, 0, None
        for seconds, request in self._slowest_first:
            passed += copies[request]
            if higher is None and passed >= above:
                higher = seconds
            if higher is not None and passed > above:
                return seconds + (place - low) * (higher - seconds)
        raise AssertionError("the copies of the answered requests are n")
