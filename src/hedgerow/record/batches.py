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
from functools import partial
from typing import Any, Generic, TypeVar
from weakref import finalize, ref

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
        self._busy = self._closed = self._failing = self._dropped = self._over = False
        self._at_exit = partial(_close_at_exit, ref(self))
        # Here, not with the thread: whoever writes its last at exit was made later, and so comes first.
        atexit.register(self._at_exit)

    def end_with(self, owner: object) -> None:
        """End when `owner`, whom the writer must not hold, is dropped: what waits is still written, but nobody waits for it."""
        finalize(owner, self._drop).atexit = False

    def append(self, event: Item) -> None:
        """Queue one more."""
        if self._closed:
            if self._dropped:
                self._append_late(event)
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
        if not self._closed:
            self.flush()
            self._end()
        atexit.unregister(self._at_exit)
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(CLOSING_S)
        if self._waiting:
            self._say(f"{len(self._waiting):,} events could not be written and are lost", None)

    def _drop(self) -> None:
        self._dropped = True
        self._end()

    def _append_late(self, event: Item) -> None:
        """The collector may find a store before the Hedger that has something left to write to it."""
        with self._wakes:
            if self._thread is not None and not self._over:
                self._waiting.append(event)
                return
        self._written([event])
        self._finish()

    def _end(self) -> None:
        self._closed = True
        if self._pid == os.getpid():  # a forked child has no thread yet, and its lock may have been held at the fork
            with self._wakes:
                self._wakes.notify_all()

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
        self._thread = threading.Thread(target=self._run, name=f"hedgerow-{self._name}", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while self._turn():
            pass
        atexit.unregister(self._at_exit)

    def _turn(self) -> bool:
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
            self._over = self._closed and (not self._waiting or not written)
        if self._over:
            self._finish()
        return not self._over

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
    """What stores on disk have in common: they keep events by a BatchWriter, `self._writer`, which ends when the store is
    dropped."""

    _writer: BatchWriter[Event]

    def _write_with(self, writer: BatchWriter[Event]) -> None:
        self._writer = writer
        writer.end_with(self)

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


def _close_at_exit(target: "ref[BatchWriter[Any]]") -> None:
    """A program that ends without closing its clients loses nothing."""
    writer = target()
    if writer is not None:
        writer.close()
