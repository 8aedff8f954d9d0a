"""Time of a script: it stands still until a step moves it, for clients in any thread."""

import asyncio
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

__all__ = ["ScriptClock"]

BEGAN_AT = datetime(2026, 1, 1, tzinfo=UTC)


class _Timer:
    def __init__(self, at_s: float, callback: Callable[[], object], loop: asyncio.AbstractEventLoop) -> None:
        self.at_s, self.callback, self.loop = at_s, callback, loop
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True

    def fire(self) -> None:
        if not self.cancelled:
            self.cancelled = True
            self.callback()


class ScriptClock:
    """A hedgerow Clock. `advance` may be called from any thread; timers run in the loops that set them."""

    def __init__(self) -> None:
        self._now_s, self._lock = 0.0, threading.Lock()
        self._timers: list[_Timer] = []

    def now(self) -> float:
        return self._now_s

    def utc(self) -> datetime:
        return BEGAN_AT + timedelta(seconds=self._now_s)

    def call_later(self, delay_s: float, callback: Callable[[], object]) -> _Timer:
        loop = asyncio.get_running_loop()
        timer = _Timer(self._now_s + max(0.0, delay_s), callback, loop)
        if delay_s <= 0:
            loop.call_soon(timer.fire)
        else:
            with self._lock:
                self._timers.append(timer)
        return timer

    def advance(self, seconds: float) -> None:
        """Move on, and run what falls due."""
        with self._lock:
            self._now_s += seconds
            due = sorted((timer for timer in self._timers if timer.at_s <= self._now_s), key=lambda timer: timer.at_s)
            self._timers = [timer for timer in self._timers if timer.at_s > self._now_s and not timer.cancelled]
        for timer in due:
            if not timer.loop.is_closed():
                timer.loop.call_soon_threadsafe(timer.fire)
