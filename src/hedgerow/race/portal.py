"""Lets synchronous callers use the asynchronous engine: one event loop in a thread of its own, for the whole process.

A blocked socket cannot be shut from outside by closing its client; a task that waits for one can be cancelled. So sync calls
run as tasks here, and a loser's connection really ends. A forked child gets a portal of its own, since threads do not survive.
"""

import asyncio
import os
import sys
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import Any, TypeVar

__all__ = ["Portal", "portal"]

SETTLING_TURNS, SETTLING_S = 10, 1.0

Result = TypeVar("Result")


class Portal:
    """Runs coroutines for threads that have no loop. May be used from any number of threads at once."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._kept = set[asyncio.Task[object]]()

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """What the coroutine returns or raises, in the calling thread's context variables. If the caller is interrupted
        meanwhile (Ctrl-C), the coroutine is cancelled and unwinds before the interruption goes on.

        Raises RuntimeError in the portal's own thread, which would wait for itself.
        """
        try:
            loop = self._ready_loop()
        except BaseException:
            work.close()
            raise
        future = asyncio.run_coroutine_threadsafe(work, loop)
        try:
            return future.result()
        except BaseException:
            if not future.done():
                future.cancel()
                self._settle()
            raise

    async def wait(self, work: Coroutine[Any, Any, Result]) -> Result:
        """What `run` gives, for a task of any other loop, which it does not block. If the task is cancelled, so is the
        coroutine."""
        try:
            loop = self._ready_loop()
        except BaseException:
            work.close()
            raise
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))

    def call(self, function: Callable[[], Result]) -> Result:
        """What a function returns or raises that is run in the portal's thread; straight away if this is that thread."""
        if threading.current_thread() is self._thread:
            return function()

        async def called() -> Result:
            return function()

        return self.run(called())

    def conclude(self, make: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Run a coroutine that closes something, and wait for it where that can be: not in the portal's own thread, where the
        collector may have found it, and not when the interpreter ends, whose daemon threads run no more."""
        if sys.is_finalizing():
            return
        if threading.current_thread() is self._thread:
            self.soon(make)
        else:
            self.run(make())

    def finish(self, function: Callable[[], object]) -> None:
        """Run a function in the portal's thread and wait for it, at most a second: for the end of a client or of the
        interpreter, where nobody may be kept waiting."""
        loop = self._loop
        if loop is None or threading.current_thread() is self._thread:
            function()
            return
        done = threading.Event()

        def run() -> None:
            try:
                function()
            finally:
                done.set()

        loop.call_soon_threadsafe(run)
        done.wait(SETTLING_S)

    def soon(self, make: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Start a coroutine and don't wait for it; from any thread, and from the garbage collector. Nothing if no call ever
        started the loop."""
        loop = self._loop
        if loop is not None:
            loop.call_soon_threadsafe(self._keep, make)

    def _keep(self, make: Callable[[], Coroutine[Any, Any, object]]) -> None:
        assert self._loop is not None
        task = self._loop.create_task(make())
        self._kept.add(task)
        task.add_done_callback(self._kept.discard)

    def _settle(self) -> None:
        """Give what was cancelled a few turns of the loop, so that its connections are closed."""
        assert self._loop is not None
        turned = threading.Event()

        def turn(left: int) -> None:
            if left and self._loop is not None:
                self._loop.call_soon(turn, left - 1)
            else:
                turned.set()

        self._loop.call_soon_threadsafe(turn, SETTLING_TURNS)
        turned.wait(SETTLING_S)

    def _ready_loop(self) -> asyncio.AbstractEventLoop:
        if threading.current_thread() is self._thread:
            raise RuntimeError(
                "a sync hedged client was used inside hedgerow's own thread (a hook, or an event hook of the client?), which "
                "would wait for itself for ever: use an async client there, or hand the work to another thread"
            )
        if self._loop is None:
            with self._starting:
                if self._loop is None:
                    self._start()
        assert self._loop is not None
        return self._loop

    def _start(self) -> None:
        loop = asyncio.new_event_loop()
        loop.set_default_executor(_DaemonThreads())
        self._thread = threading.Thread(target=loop.run_forever, name="hedgerow", daemon=True)
        self._thread.start()
        self._loop = loop


class _DaemonThreads(ThreadPoolExecutor):
    """A thread for each piece of work (a name to be looked up). Python shuts its own pools when the main thread ends, though
    other threads may go on to call."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Starts it at once."""
        done: Future[Any] = Future()

        def work() -> None:
            try:
                done.set_result(fn(*args, **kwargs))
            except BaseException as error:
                done.set_exception(error)

        threading.Thread(target=work, name="hedgerow-work", daemon=True).start()
        return done


def portal() -> Portal:
    """This process's portal."""
    return _portal_of(os.getpid())


@cache
def _portal_of(pid: int) -> Portal:  # noqa: ARG001 -- the key of the cache: a forked child has another one
    return Portal()
