"""Hands each event to the store and to the hooks. Whatever they do, no call fails because of them."""

import logging
from collections.abc import Callable, Iterator
from typing import Protocol

from hedgerow.values.event import Event

__all__ = ["Hook", "Recorder", "Store"]

Hook = Callable[[Event], object]
"""Called with every event, on the event loop: it must be quick and must not block."""

log = logging.getLogger("hedgerow")


class Store(Protocol):
    """Where events are kept, and read back from, oldest first."""

    def __iter__(self) -> Iterator[Event]: ...

    def append(self, event: Event) -> None:
        """Keep one more event; must not block."""

    def close(self) -> None:
        """Write out what is left. Idempotent."""


class Recorder:
    """One Hedger's store and hooks. `troubles` counts what they raised; the first of each kind is logged."""

    def __init__(self, store: Store) -> None:
        self.troubles = 0
        self._store = store
        self._hooks: list[Hook] = []
        self._reported: set[tuple[object, type]] = set()

    def subscribe(self, hook: Hook) -> Callable[[], None]:
        """Call `hook` with every event from now on; the function returned ends that."""
        self._hooks.append(hook)

        def unsubscribe() -> None:
            if hook in self._hooks:
                self._hooks.remove(hook)

        return unsubscribe

    def record(self, event: Event) -> None:
        """Store it and tell the hooks."""
        for receiver in (self._store.append, *self._hooks):
            try:
                receiver(event)
            except Exception as error:  # reported in the log, once per receiver and kind; the call goes on
                self._report(receiver, error)

    def close(self) -> None:
        """Drop the hooks and close the store. Idempotent."""
        self._hooks.clear()
        try:
            self._store.close()
        except Exception as error:  # reported in the log
            self._report(self._store.close, error)

    def _report(self, receiver: object, error: Exception) -> None:
        self.troubles += 1
        if (receiver, type(error)) not in self._reported:
            self._reported.add((receiver, type(error)))
            log.warning("an event receiver (%r) failed and is ignored: %r", receiver, error)
