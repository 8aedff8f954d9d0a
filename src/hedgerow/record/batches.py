"""Keeps writing off the hot path: events wait in a queue, a thread of the store's own writes them in batches.

Where nothing can be written (a full disk, a locked file) events are kept and tried again; when too many wait, new ones are
dropped and counted. One that cannot be written as it is is dropped and counted by itself. No call waits, and none fails.
"""

import atexit
import logging
import os
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Generic, TypeVar
from weakref import finalize, ref

from hedgerow.values.event import Event

__all__ = ["BatchWriter", "BatchedStore"]

EVERY_S, MOST_AT_ONCE, MOST_WAITING = 0.5, 1000, 100_000
CLOSING_S = 10.0
TELL_EVERY_S = 60.0  # whoever sends odd requests does not fill the log
log = logging.getLogger("hedgerow")


Item = TypeVar("Item")


def is_of_the_system(error: Exception) -> bool:
    """Does the trouble lie with the file, so that it may pass?"""
    return isinstance(error, OSError)


class BatchWriter(Generic[Item]):
    """`write` is called with a batch in the writer's thread, `finish` at the end; both may raise. will_pass: is an error of the
    place (then all wait), or of what is to be written (then a batch is halved until the odd one is found, and that is dropped)?
    A batch is written whole or not at all. After a fork the child starts a thread of its own; what waited at the fork is the
    parent's to write.

    lost: dropped while too many waited, since it could last be written; unwritable: dropped since they could not be written."""

    def __init__(
        self,
        name: str,
        write: Callable[[Sequence[Item]], None],
        finish: Callable[[], None],
        will_pass: Callable[[Exception], bool] = is_of_the_system,
    ) -> None:
        self.lost = self.unwritable = 0
        self._name, self._write, self._finish, self._will_pass = name, write, finish, will_pass
        self._odd = Counter[str]()  # kinds of errors not told yet
        self._told_s: float | None = None
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
        if self._pid != os.getpid() or not self._runs():
            with self._after_fork():
                if not self._runs():
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
            self._say(f"{len(self._waiting):,} could not be written and are lost", None)

    def _runs(self) -> bool:
        """A thread that met with an accident (no memory) is replaced."""
        return self._thread is not None and self._thread.is_alive()

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
        self._leave()

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
        done = self._written(batch)
        if batch and done == len(batch):
            self._tell_of_good_times()
        with self._wakes:
            for _ in range(done):
                self._waiting.popleft()
            self._busy, self._failing = False, done < len(batch)
            self._wakes.notify_all()
            self._over = self._closed and (not self._waiting or self._failing)
        self._tell_of_odd_ones(at_once=self._over)
        if self._over:
            self._leave()
        return not self._over

    def _written(self, batch: Sequence[Item]) -> int:
        """Write a batch. How many of it, from the first on, are done with: all, unless the place is in trouble."""
        try:
            if batch:
                self._write(batch)
        except Exception as error:  # said in the log: the place's once until it works again, the odd ones' now and then
            if self._will_pass(error):
                if not self._failing:
                    self._say("cannot be written; they wait, and calls go on", error)
                return 0
            if len(batch) == 1:
                self.unwritable += 1
                self._odd[type(error).__name__] += 1  # its words might quote what was to be written
                return 1
            half = len(batch) // 2
            done = self._written(batch[:half])
            return done if done < half else half + self._written(batch[half:])
        return len(batch)

    def _leave(self) -> None:
        try:
            self._finish()
        except Exception as error:  # said in the log: there is nothing left to do
            self._say("cannot be closed", error)

    def _tell_of_good_times(self) -> None:
        if self._failing:
            log.warning("%s: are written again", self._name)
        if self.lost:
            self._say(f"{self.lost:,} were dropped while too many waited", None)
            self.lost = 0

    def _tell_of_odd_ones(self, *, at_once: bool) -> None:
        now_s = time.monotonic()
        if not self._odd or (self._told_s is not None and now_s - self._told_s < TELL_EVERY_S and not at_once):
            return
        kinds = ", ".join(self._odd)
        self._say(
            f"{self._odd.total():,} could not be written and were dropped, {self.unwritable:,} so far ({kinds})", None
        )
        self._odd, self._told_s = Counter[str](), now_s

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

    @property
    def unwritable(self) -> int:
        """Events dropped since they could not be written as they were."""
        return self._writer.unwritable

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
