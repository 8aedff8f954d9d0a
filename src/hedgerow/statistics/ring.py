"""The last values of something, kept sorted, so that any quantile is at hand."""

from bisect import bisect_left, bisect_right, insort
from collections import deque

from hedgerow.statistics.quantile import quantile
from hedgerow.units import Window

__all__ = ["Ring"]


class Ring:
    """The values of a Window, oldest out first. Adding and reading take microseconds at 1,000 values. Not for threads."""

    def __init__(self, window: Window) -> None:
        self._most, self._seconds = window.requests, window.seconds
        self._in_order: deque[tuple[float, float]] = deque()
        self._sorted: list[float] = []
        self._quantiles: dict[float, float] = {}  # asked for since the last change: a few, again and again

    def __len__(self) -> int:
        return len(self._sorted)

    def timed(self) -> list[tuple[float, float]]:
        """(when, value) of each, oldest first."""
        return list(self._in_order)

    def add(self, value: float, at_s: float) -> None:
        """One more value, measured at `at_s`."""
        in_order, ordered = self._in_order, self._sorted
        if len(in_order) >= self._most:
            del ordered[bisect_left(ordered, in_order.popleft()[1])]
        in_order.append((at_s, value))
        insort(ordered, value)
        self._quantiles.clear()
        if self._seconds is not None:
            self._forget_before(at_s)

    def quantile(self, share: float, now_s: float | None = None) -> float | None:
        """The value at `share` (0..1), linearly interpolated (numpy's default); None when empty."""
        if now_s is not None and self._seconds is not None:
            self._forget_before(now_s)
        known = self._quantiles.get(share)
        if known is not None or not self._sorted:
            return known
        found = quantile(self._sorted, share)
        self._quantiles[share] = found
        return found

    def median_above(self, value: float) -> float:
        """The median of the values above `value` (of two, the upper); `value` itself if there are none."""
        first = bisect_right(self._sorted, value)
        return self._sorted[(first + len(self._sorted)) // 2] if first < len(self._sorted) else value

    def summary(self) -> dict[str, float | int] | None:
        """{"p50", "p90", "p95", "p99", "p999", "n"}; None when empty."""
        if not self._sorted:
            return None
        shares = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}
        return {**{name: self.quantile(share) or 0.0 for name, share in shares.items()}, "n": len(self)}

    def _forget_before(self, now_s: float) -> None:
        while self._in_order and self._seconds is not None and self._in_order[0][0] < now_s - self._seconds:
            del self._sorted[bisect_left(self._sorted, self._in_order.popleft()[1])]
            self._quantiles.clear()
