"""A Hedger for threads: its work is done on the portal's loop, and a forked child has one of its own."""

import os
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Generic, TypeVar
from weakref import finalize

from hedgerow.engine import Hedger
from hedgerow.race.portal import portal
from hedgerow.record.recorder import Hook
from hedgerow.values.event import Event

__all__ = ["PerProcess", "SyncHedger"]

Made = TypeVar("Made")


class PerProcess(Generic[Made]):
    """Something that does not survive a fork: made on first use, and again in a forked child."""

    def __init__(self, make: Callable[[], Made]) -> None:
        self._make, self._locks = make, dict[int, Lock]()  # by process: the parent's may be held at a fork
        self._made: tuple[int, Made] | None = None

    def __call__(self) -> Made:
        made, pid = self._made, os.getpid()
        if made is None or made[0] != pid:
            with self._locks.setdefault(pid, Lock()):
                if self._made is None or self._made[0] != pid:
                    self._made = pid, self._make()
                made = self._made
        return made[1]

    @property
    def here(self) -> Made | None:
        """What this process has made, if it has."""
        made = self._made
        return made[1] if made is not None and made[0] == os.getpid() else None


class SyncHedger:
    """A Hedger as threads may use it: `.stats()`, `.events`, `.subscribe(hook)`, `.close()`. After a fork the child has its own,
    with the hooks of its parent."""

    def __init__(self, make: Callable[[], Hedger]) -> None:
        self._hooks: list[Hook] = []
        hooks = self._hooks
        self.inner = PerProcess(lambda: portal().call(lambda: _with_hooks(make(), hooks)))
        finalize(self, _save, self.inner)  # also when the interpreter ends

    def stats(self) -> dict[str, object]:
        """See Hedger.stats."""
        return self._ask(Hedger.stats)

    @property
    def events(self) -> Sequence[Event]:
        """What the store holds now, with everything written that is over."""
        return self._ask(lambda hedger: list(hedger.events))

    @property
    def losers_open(self) -> int:
        """Cancelled attempts whose connection is not closed yet."""
        return self._ask(lambda hedger: hedger.losers_open)

    def subscribe(self, hook: Hook) -> Callable[[], None]:
        """Call `hook`, in hedgerow's thread, with the Event of every request once it is over; the function returned ends that."""
        self._hooks.append(hook)
        end = self._ask(lambda hedger: hedger.subscribe(hook))

        def unsubscribe() -> None:
            if hook in self._hooks:
                self._hooks.remove(hook)
            portal().call(end)

        return unsubscribe

    def close(self) -> None:
        """Wait until every loser is closed and recorded, at most some seconds; from then on calls go unhedged. Idempotent."""
        portal().run(self.inner().aclose())

    def _ask(self, question: Callable[[Hedger], Made]) -> Made:
        hedger = self.inner()
        return portal().call(lambda: question(hedger))


def _with_hooks(hedger: Hedger, hooks: Sequence[Hook]) -> Hedger:
    for hook in hooks:
        hedger.subscribe(hook)
    return hedger


def _save(inner: PerProcess[Hedger]) -> None:
    """The client is gone or the interpreter ends: what was learnt is saved, what is over is written down."""
    hedger = inner.here
    if hedger is not None:
        portal().finish(hedger.close)
