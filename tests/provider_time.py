"""The time of the hedgers under test: their timers wait for the provider, however slowly this machine gets on.

A policy counts 50 ms from when it sent a call; a script counts from when the call arrived. On a busy machine one may lie far
behind the other, and then a backup overtakes its primary and takes the primary's script, or an attempt runs out of a time-out
that its answer was well within. So a timer of a race fires no sooner than its delay after the arrival of everything that the
race has sent, and not while the sandbox is behind with an answer. Meanwhile the hedger's time stands still, so that what it
measures, too, is what was scripted: slower on a busy machine, never otherwise.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import pytest

from hedgerow.clock import SystemClock, Timer
from hedgerow.engine import Hedger
from hedgerow.errors import HedgerowError
from hedgerow.testing.process import SandboxProcess

__all__ = ["LOOK_AGAIN_S", "SENDING", "ProviderClock", "Sending", "Watched", "provider_time"]

# What was sent may never arrive: nobody is there, or another provider got it. Then the timer fires all the same.
PATIENCE_S = 5.0
LOOK_AGAIN_S = 0.01
# What the sandbox has written has come through httpcore, h11 and anyio to the race after some turns of its loop.
TURNS_TO_READ = 20


class Watched:
    """One test's sandboxes; and of each case, how many requests its hedgers have sent, and how many of those have come to their
    headers or to an error."""

    def __init__(self) -> None:
        self.sandboxes: list[SandboxProcess] = []
        self.sent: Counter[str] = Counter()
        self.heard_of: Counter[str] = Counter()
        self._read: dict[str, tuple[dict[str, Any], float]] = {}

    def seen(self, case: str) -> list[tuple[float, bool]]:
        """Of each request of a case that has arrived: how long ago, and whether its answer is overdue."""
        found: list[tuple[float, bool]] = []
        for sandbox in self.sandboxes:
            stats, old_s = self._stats_of(sandbox)
            now_s = stats["now_s"] + old_s / sandbox.time_scale
            for entry in stats["cases"].get(case, ()):
                found.append(
                    ((now_s - entry["arrived_s"]) * sandbox.time_scale, (entry["due_s"] or now_s + 1.0) <= now_s)
                )
        return found

    def _stats_of(self, sandbox: SandboxProcess) -> tuple[dict[str, Any], float]:
        """What a sandbox has told, and how old that is: many timers that wait at once must not keep it from its work."""
        stats, read_s = self._read.get(sandbox.url, ({}, 0.0))
        now_s = time.monotonic()
        if not stats or now_s - read_s > LOOK_AGAIN_S:
            try:
                stats = sandbox.stats()
            except (OSError, HedgerowError):  # the test has ended it
                stats = {"now_s": 0.0, "cases": {}}
            read_s = time.monotonic()
            self._read[sandbox.url] = stats, read_s
        return stats, time.monotonic() - read_s


class Sending:
    """A call of a hedger, as its timers want to know it."""

    def __init__(self, watched: Watched, case: str) -> None:
        self.watched, self.case = watched, case
        self.under_way = 0  # attempts that have a connection and no headers yet

    def wait_s(self, delay_s: float) -> float | None:
        """How long a timer of this delay has to wait still; None = it may fire."""
        seen = self.watched.seen(self.case)
        if self.under_way and len(seen) < self.watched.sent[self.case]:
            return LOOK_AGAIN_S
        if any(overdue for _, overdue in seen):
            return LOOK_AGAIN_S
        ago_s = min((ago_s for ago_s, _ in seen), default=delay_s)
        return max(LOOK_AGAIN_S, delay_s - ago_s) if ago_s < delay_s else None


SENDING: ContextVar[Sending | None] = ContextVar("sending", default=None)


class ProviderClock(SystemClock):
    """Real time, but timers that are set within a hedged call wait for what it has sent. For one event loop."""

    def __init__(self) -> None:
        self._behind_s = self._told_s = 0.0
        self._stands_at_s: float | None = None
        self._waiting: set[_Waiting] = set()

    def now(self) -> float:
        passing_s = super().now() - self._behind_s if self._stands_at_s is None else self._stands_at_s
        self._told_s = max(self._told_s, passing_s)
        return self._told_s

    def call_later(self, delay_s: float, callback: Callable[[], object]) -> Timer:
        sending = SENDING.get()
        if sending is None:
            return super().call_later(delay_s, callback)
        return _Waiting(self, sending, max(0.0, delay_s), callback)

    def set_forward(self, seconds: float) -> None:
        """While no timer waits."""
        self._behind_s -= seconds

    def stop(self, waiting: "_Waiting", due_s: float) -> None:
        """Time stands still from when a timer was due, or from the last time that was told, if that is later."""
        if not self._waiting:
            self._stands_at_s = max(due_s, self._told_s)
        self._waiting.add(waiting)

    def go_on(self, waiting: "_Waiting") -> None:
        """That timer waits no longer."""
        self._waiting.discard(waiting)
        if not self._waiting and self._stands_at_s is not None:
            self._behind_s, self._stands_at_s = super().now() - self._stands_at_s, None


class _Waiting:
    """A timer that looks before it fires."""

    def __init__(self, clock: ProviderClock, sending: Sending, delay_s: float, callback: Callable[[], object]) -> None:
        self._clock, self._sending, self._delay_s, self._callback = clock, sending, delay_s, callback
        self._loop = asyncio.get_running_loop()
        self._due_s = clock.now() + delay_s
        self._give_up_s: float | None = None
        self._handle: asyncio.Handle = self._loop.call_later(delay_s, self._look)

    def cancel(self) -> None:
        self._handle.cancel()
        self._clock.go_on(self)

    def _look(self) -> None:
        if self._give_up_s is None:
            if (early_s := self._due_s - self._clock.now()) > 0:  # time has stood still for another timer
                self._handle = self._loop.call_later(max(LOOK_AGAIN_S, early_s), self._look)
                return
            self._give_up_s = self._loop.time() + PATIENCE_S
            self._clock.stop(self, self._due_s)
        wait_s = self._sending.wait_s(self._delay_s)
        if wait_s is None or self._loop.time() >= self._give_up_s:
            self._fire(TURNS_TO_READ)
        else:
            self._handle = self._loop.call_later(wait_s, self._look)

    def _fire(self, turns: int) -> None:
        if turns:
            self._handle = self._loop.call_soon(self._fire, turns - 1)
            return
        self._clock.go_on(self)
        self._callback()


class _Noted:
    """Passes on what a carrier notes, and hears from it that the attempt has its connection."""

    def __init__(self, notes: Any, connected: Callable[[], None]) -> None:
        self._notes, self._connected = notes, connected

    def connected(self, **said: Any) -> None:
        self._connected()
        self._notes.connected(**said)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._notes, name)


class _Counted:
    """A call whose attempts are counted when they are sent."""

    def __init__(self, call: Any, sending: Sending) -> None:
        self._call, self._sending = call, sending

    async def open(self, target: int, notes: Any, *others: Any) -> Any:
        sending, counted = self._sending, False

        def connected() -> None:
            nonlocal counted
            if not counted:
                counted = True
                sending.under_way += 1
                sending.watched.sent[sending.case] += 1

        try:
            return await self._call.open(target, _Noted(notes, connected), *others)
        finally:
            sending.under_way -= counted
            sending.watched.heard_of[sending.case] += 1

    def __getattr__(self, name: str) -> Any:
        return getattr(self._call, name)


@contextmanager
def provider_time(patch: pytest.MonkeyPatch) -> Iterator[Watched]:
    """Hedgers that are given no clock have a ProviderClock until the block ends."""
    watched, send = Watched(), Hedger.send

    async def counted(hedger: Hedger, request: Any, call: Any, **others: Any) -> Any:
        case = request.header(b"x-sandbox-case")
        if case is None:
            return await send(hedger, request, call, **others)
        sending = Sending(watched, case)
        token = SENDING.set(sending)
        try:
            return await send(hedger, request, _Counted(call, sending), **others)
        finally:
            SENDING.reset(token)

    patch.setattr(Hedger, "send", counted)
    patch.setattr("hedgerow.engine.SystemClock", ProviderClock)
    yield watched
