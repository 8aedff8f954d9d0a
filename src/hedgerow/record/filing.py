"""Writes down what is over: one turn of the event loop after its answer, since no answer should wait for that.

Whatever becomes of that loop, nothing is lost: what it did not come to is written in the next loop, when somebody asks for the
events, or at exit. The list of prices is loaded before the first event, by a thread of our own: a loop's own may be shut.
"""

import asyncio
import atexit
import logging
import os
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from weakref import finalize, ref

from hedgerow.race.referee import RaceSeen
from hedgerow.record.books import Books
from hedgerow.record.history import Circumstances, event_of
from hedgerow.record.recorder import Recorder

__all__ = ["Filing"]

log = logging.getLogger("hedgerow")


class Filing:
    """The races of one Hedger that are over and not written yet. Shared by all tasks and loops, one thread at a time.

    owner: dropped, what waits is written. written: told after each time.
    """

    def __init__(self, owner: object, books: Books, recorder: Recorder) -> None:
        self._books, self._recorder = books, recorder
        self._waiting: deque[tuple[RaceSeen, Circumstances]] = deque()
        self._loop: asyncio.AbstractEventLoop | None = None  # where the next turn is ordered
        self._loader: threading.Thread | None = None
        self._pid = os.getpid()
        self._at_exit = partial(_write_at_exit, ref(self))
        atexit.register(self._at_exit)
        finalize(owner, self._end).atexit = False

    def add(self, race: RaceSeen, seen: Circumstances, then: Callable[[], object]) -> None:
        """One more, to be written soon; `then` is called afterwards. To be called on an event loop."""
        self._after_fork()
        self._waiting.append((race, seen))
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop = loop
            loop.call_soon(self._turn, then)

    def forget(self, race: RaceSeen) -> None:
        """Nobody is to hear of this one."""
        self._waiting = deque(entry for entry in self._waiting if entry[0] is not race)

    def write(self) -> None:
        """Write all that waits, now."""
        self._after_fork()
        while self._waiting:
            race, seen = self._waiting.popleft()
            try:
                event = event_of(race, seen)
            except Exception:  # logged: this one is not written, those behind it are
                log.exception("a request could not be written down")
                continue
            self._books.price(event, seen.flight.usual, seen.said.set_aside)
            self._recorder.record(event)

    def _after_fork(self) -> None:
        """What waited at a fork is the parent's to write; its loop and its thread are not the child's."""
        if self._pid != os.getpid():
            self._waiting.clear()
            self._loop = self._loader = None
            self._pid = os.getpid()

    def _turn(self, then: Callable[[], object]) -> None:
        loop, self._loop = self._loop, None
        if self._books.ready:
            self.write()
            then()
        elif self._loader is None and loop is not None:
            self._loader = threading.Thread(target=self._load, args=(loop, then), name="hedgerow-prices", daemon=True)
            try:
                self._loader.start()
            except RuntimeError:  # the interpreter is ending and gives no thread any more
                self.write()

    def _load(self, loop: asyncio.AbstractEventLoop, then: Callable[[], object]) -> None:
        self._books.load()
        try:
            loop.call_soon_threadsafe(self._turn, then)
        except RuntimeError:  # it is closed by now: the next loop's turn writes
            pass

    def _end(self) -> None:
        atexit.unregister(self._at_exit)
        self.write()


def _write_at_exit(target: "ref[Filing]") -> None:
    filing = target()
    if filing is not None:
        filing.write()
