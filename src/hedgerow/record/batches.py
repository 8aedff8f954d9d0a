"""Keeps writing off the hot path: events wait in a queue, a thread of the store's own writes them in batches.

A batch that cannot be written (a full disk, a locked file) is kept and tried again; when too many wait, new events are dropped
and counted, and the log says so. No call ever waits, and none fails.
"""

import atexit
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, Generic, TypeVar
from weakref import ref

from hedgerow.values.event import Event

__all__ = ["BatchWriter", "BatchedStore"]

EVERY_S, MOST_AT_ONCE, MOST_WAITING = 0.5, 1000, 100_000
CLOSING_S = 10.0
log = logging.getLogger("hedgerow")


Item = TypeVar("Item")


class BatchWriter(Generic[Item]):
    """`write` is called with a batch in the writer's thread, `finish` at the end; both may raise OSError or the store's own
    errors. After a fork the child starts a thread of its own; what waited at the fork is the parent's to write."""

    def __init__(self, name: str, write: Callable[[Sequence[Item]], None], finish: Callable[[], None]) -> None:
        self.lost = 0
        self._name, self._write, self._finish = name, write, finish
        self._wakes = threading.Condition()
        self._waiting: deque[Item] = deque()
        self._thread: threading.Thread | None = None
        self._pid = os.getpid()
        self._starting = {self._pid: threading.Lock()}  # a child has its own: the parent's may be held at the fork
        self._busy = self._closed = self._failing = False

    def append(self, event: Item) -> None:
        """Queue one more."""
        if self._closed:
            return
        if self._thread is None or self._pid != os.getpid():
            with self._after_fork():
                if self._thread is None:
                    self._start()
        if len(self._waiting) >= MOST_WAITING:
            self.lost += 1
            return
        self._waiting.append(event)
        if len(self._waiting) >= MOST_AT_ONCE:
            with self._wakes:
                self._wakes.notify_all()

    def flush(self, patience_s: float = CLOSING_S) -> bool:
        """Wait until everything queued so far is written, or could not be; whether it was."""
        give_up_s = time.monotonic() + patience_s
        with self._after_fork():
            pass
        with self._wakes:
            self._wakes.notify_all()
            while (self._waiting or self._busy) and not self._failing and time.monotonic() < give_up_s:
                if self._thread is None or not self._thread.is_alive():
                    break
                self._wakes.notify_all()
                self._wakes.wait(0.05)
        return not self._waiting

    def close(self) -> None:
        """Write what waits, then end the thread. Idempotent."""
        if self._closed:
            return
        self.flush()
        self._closed = True
        with self._wakes:
            self._wakes.notify_all()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(CLOSING_S)
        if self._waiting:
            self._say(f"{len(self._waiting):,} events could not be written and are lost", None)

    @property
    def waits(self) -> bool:
        """Is there something to write?"""
        return bool(self._waiting)

    @contextmanager
    def _after_fork(self) -> Generator[None]:
        """One thread of this process at a time. The first one in a forked child finds everything new: queue, lock, no writer."""
        pid = os.getpid()
        with self._starting.setdefault(pid, threading.Lock()):
            if self._pid != pid:
                self._waiting, self._wakes, self._thread = deque(), threading.Condition(), None
                self._busy = self._failing = False
                self._pid = pid
            yield

    def _start(self) -> None:
        atexit.register(_close_at_exit, ref(self))
        self._thread = threading.Thread(target=_run, args=(ref(self),), name=f"hedgerow-{self._name}", daemon=True)
        self._thread.start()

    def turn(self) -> bool:
        """Wait a moment, then write a batch; False when all is over."""
        with self._wakes:
            if not self._closed and (self._failing or len(self._waiting) < MOST_AT_ONCE):
                self._wakes.wait(EVERY_S)
            batch = [self._waiting[place] for place in range(min(len(self._waiting), MOST_AT_ONCE))]
            self._busy = bool(batch)
        written = not batch or self._written(batch)
        with self._wakes:
            if written:
                for _ in batch:
                    self._waiting.popleft()
            self._busy, self._failing = False, not written
            self._wakes.notify_all()
            over = self._closed and (not self._waiting or not written)
        if over:
            self._finish()
        return not over

    def _written(self, batch: Sequence[Item]) -> bool:
        try:
            self._write(batch)
        except Exception as error:  # said in the log, once until it works again
            if not self._failing:
                self._say("events cannot be written; they wait, and calls go on", error)
            return False
        if self._failing:
            log.warning("%s: events are written again", self._name)
        if self.lost:
            self._say(f"{self.lost:,} events were dropped while too many waited", None)
            self.lost = 0
        return True

    def _say(self, message: str, error: Exception | None) -> None:
        log.warning("%s: %s%s", self._name, message, "" if error is None else f" ({error})")


class BatchedStore:
    """What stores on disk have in common: they keep events by a BatchWriter, `self._writer`."""

    _writer: BatchWriter[Event]

    def append(self, event: Event) -> None:
        """Keep one more event."""
        self._writer.append(event)

    @property
    def lost(self) -> int:
        """Events dropped since the file could last be written."""
        return self._writer.lost

    def flush(self) -> bool:
        """Wait until everything so far is in the file; False if it could not be written."""
        return self._writer.flush()

    def close(self) -> None:
        """Write out what waits. Idempotent."""
        self._writer.close()


def _run(target: "ref[BatchWriter[Any]]") -> None:
    """A writer that is dropped without close() ends as well: the thread holds it only while it works or has work."""
    writer: BatchWriter[Any] | None = None
    while True:
        writer = writer or target()
        if writer is None or not writer.turn():
            return
        if not writer.waits:
            writer = None


def _close_at_exit(target: "ref[BatchWriter[Any]]") -> None:
    """A program that ends without closing its clients loses nothing."""
    writer = target()
    if writer is not None:
        writer.close()
