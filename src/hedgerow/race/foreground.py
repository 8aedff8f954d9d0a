"""Runs the primary inside the caller's task, so that a call that is never late costs no task of its own.

When the race is decided elsewhere, the primary is interrupted: CancelledError is thrown into it, in the caller's task, as
asyncio.timeout() does. If it then insists on waiting for something, the rest of its clean-up goes on in a task of its own
and the caller does not wait for it.
"""

import asyncio
from collections.abc import Callable, Coroutine, Generator
from typing import Any

__all__ = ["Foreground"]

MOMENT_S = 0.02  # that a loser's clean-up may hold up the answer
MOST_TURNS = 100  # bare turns of the loop that a cancelled primary may take in place; closing a connection takes two


class Foreground:
    """Await it once. `on_leftover` is given the coroutine that finishes a stubborn primary; start it as a task."""

    def __init__(
        self, primary: Coroutine[Any, Any, None], on_leftover: Callable[[Coroutine[Any, Any, None]], None]
    ) -> None:
        self._primary, self._on_leftover = primary, on_leftover
        self._task: asyncio.Task[Any] | None = None
        self._let_go = False
        self.running = True

    def let_go(self) -> None:
        """Stop waiting for the primary and close it. Harmless when it has ended."""
        if not self.running or self._let_go:
            return
        self._let_go = True
        if self._task is not None:
            self._task.cancel()
        else:
            self._primary.close()

    def __await__(self) -> Generator[Any, Any, None]:
        if self._let_go:
            self.running = False
            return
        self._task = asyncio.current_task()
        if self._task is None:
            raise RuntimeError("a race runs in an asyncio task; there is none here")
        cancels_before = self._task.cancelling()
        try:
            yield from self._step_through(self._task, cancels_before)
        finally:
            self.running = False

    def _step_through(self, task: asyncio.Task[Any], cancels_before: int) -> Generator[Any, Any, None]:
        """Drive the primary; what it waits for, the caller's task waits for."""
        thrown: BaseException | None = None
        while True:
            try:
                waits_for = self._primary.send(None) if thrown is None else self._primary.throw(thrown)
            except StopIteration:
                return
            try:
                yield waits_for
                thrown = None
            except asyncio.CancelledError as error:
                if self._let_go and task.uncancel() <= cancels_before:
                    yield from self._close_primary(task, cancels_before)
                    return
                thrown = error  # the caller is leaving; the primary unwinds as it would without us
            except BaseException as error:
                thrown = error

    def _close_primary(self, task: asyncio.Task[Any], cancels_before: int) -> Generator[Any, Any, None]:
        """Throw CancelledError into it and follow it through bare turns of the loop and short waits, but no longer ones.

        A task group of anyio's waits a moment for its children when it is left, and cancels its host, this task, until then:
        such a cancellation is taken back when the group has ended, the caller's own is not.
        """
        thrown: BaseException | None = asyncio.CancelledError("lost the race")
        leaving: BaseException | None = None
        for turn in range(MOST_TURNS + 1):
            try:
                waits_for = self._primary.send(None) if thrown is None else self._primary.throw(thrown)
            except (
                StopIteration,
                asyncio.CancelledError,
                Exception,
            ):  # a loser's end, whichever; it has recorded its own
                break
            if turn == MOST_TURNS:
                self._on_leftover(_finish(self._primary, waits_for))
                break
            thrown = None
            try:
                if waits_for is None:
                    yield None
                elif not (yield from _short_wait(waits_for)):
                    self._on_leftover(_finish(self._primary, waits_for))
                    break
            except asyncio.CancelledError as error:
                leaving = thrown = error  # the caller leaves meanwhile, or a task group cancels its host
        if leaving is not None and task.cancelling() > cancels_before:
            raise leaving


def _short_wait(waits_for: Any) -> Generator[Any, Any, bool]:
    """Wait for what a coroutine waits for, at most a moment; whether it came."""
    if not asyncio.isfuture(waits_for):
        return False
    waited: Any = waits_for
    loop = asyncio.get_running_loop()
    moment: asyncio.Future[None] = loop.create_future()

    def settle(*_: object) -> None:
        if not moment.done():
            moment.set_result(None)

    waited._asyncio_future_blocking = False  # a task would do this when it begins to wait
    waited.add_done_callback(settle)
    timer = loop.call_later(MOMENT_S, settle)
    try:
        yield from moment
    finally:
        timer.cancel()
        waited.remove_done_callback(settle)
    if not waited.done():
        waited._asyncio_future_blocking = True
    return waited.done()


async def _finish(primary: Coroutine[Any, Any, None], waits_for: Any) -> None:
    await _Rest(primary, waits_for)


class _Rest:
    """The rest of a coroutine that has been started elsewhere and waits for something."""

    def __init__(self, primary: Coroutine[Any, Any, None], waits_for: Any) -> None:
        self._primary, self._waits_for = primary, waits_for

    def __await__(self) -> Generator[Any, Any, None]:
        waits_for = self._waits_for
        while True:
            thrown: BaseException | None = None
            try:
                yield waits_for
            except BaseException as error:
                thrown = error
            try:
                waits_for = self._primary.send(None) if thrown is None else self._primary.throw(thrown)
            except StopIteration:
                return
