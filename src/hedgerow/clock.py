"""The one source of time and timers.

Everything that decides, records or reports uses a Clock, in *provider seconds*; so a demo can run twenty times faster
than the provider it imitates, and a test can jump.
"""

import asyncio
import heapq
import itertools
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Protocol

from hedgerow.errors import SettingError

__all__ = ["Clock", "ManualClock", "ScaledClock", "SystemClock", "Timer"]


class Timer(Protocol):
    """A callback that has been asked for and can be called off."""

    def cancel(self) -> None:
        """Call it off; harmless when it has fired."""


class Clock(Protocol):
    """Monotonic seconds, wall time, and timers on the running event loop."""

    def now(self) -> float:
        """Monotonic seconds; only differences mean anything."""
        ...

    def utc(self) -> datetime:
        """Aware wall-clock time."""
        ...

    def call_later(self, delay_s: float, callback: Callable[[], object]) -> Timer:
        """Run `callback` on the running loop after `delay_s` (≤ 0: as soon as possible)."""
        ...


class SystemClock:
    """Real time. Stateless: may be shared by all tasks and threads."""

    now = staticmethod(time.monotonic)  # asked some twenty times a request

    def utc(self) -> datetime:
        return datetime.now(UTC)

    def call_later(self, delay_s: float, callback: Callable[[], object]) -> Timer:
        return asyncio.get_running_loop().call_later(max(0.0, delay_s), callback)


class ScaledClock:
    """Provider seconds that pass in `scale` real seconds each (0.05: twenty times faster than life).

    Pair it with a sandbox started with the same `--time-scale`. `scale` > 0, else SettingError.
    """

    def __init__(self, scale: float) -> None:
        if not scale > 0:
            raise SettingError("scale", scale, "> 0 real seconds per provider second")
        self.scale = scale
        self._began_at = datetime.now(UTC)
        self._began_at_s = time.monotonic()

    def now(self) -> float:
        return (time.monotonic() - self._began_at_s) / self.scale

    def utc(self) -> datetime:
        return self._began_at + timedelta(seconds=self.now())

    def call_later(self, delay_s: float, callback: Callable[[], object]) -> Timer:
        return asyncio.get_running_loop().call_later(max(0.0, delay_s * self.scale), callback)


class ManualClock:
    """Time that stands still until `advance` moves it: for tests. Not for sharing between threads."""

    def __init__(self, *, start_s: float = 0.0, start_at: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._now_s = start_s
        self._start_s, self._start_at = start_s, start_at
        self._order = itertools.count()
        self._timers: list[tuple[float, int, _ManualTimer]] = []

    def now(self) -> float:
        return self._now_s

    def utc(self) -> datetime:
        return self._start_at + timedelta(seconds=self._now_s - self._start_s)

    def call_later(self, delay_s: float, callback: Callable[[], object]) -> Timer:
        timer = _ManualTimer(callback)
        heapq.heappush(self._timers, (self._now_s + max(0.0, delay_s), next(self._order), timer))
        return timer

    @property
    def armed(self) -> int:
        """How many timers wait."""
        return sum(timer.callback is not None for _, _, timer in self._timers)

    def advance(self, seconds: float) -> None:
        """Move on by `seconds` ≥ 0 and run what falls due, in order of time."""
        end_s = self._now_s + seconds
        while self._timers and self._timers[0][0] <= end_s:
            self._now_s, _, timer = heapq.heappop(self._timers)
            timer.fire()
        self._now_s = end_s


class _ManualTimer:
    def __init__(self, callback: Callable[[], object]) -> None:
        self.callback: Callable[[], object] | None = callback

    def cancel(self) -> None:
        self.callback = None

    def fire(self) -> None:
        callback, self.callback = self.callback, None
        if callback is not None:
            callback()
