"""Events in memory: the last so many, for tests, notebooks and `stats()`."""

from collections import deque
from collections.abc import Iterator

from hedgerow.errors import SettingError
from hedgerow.values.event import Event

__all__ = ["MemoryStore"]


class MemoryStore:
    """Keeps the last `most` events (default 10,000; the oldest go first). Iterate it, oldest first. Not for threads."""

    def __init__(self, most: int = 10_000) -> None:
        if most < 1:
            raise SettingError("most", most, "≥ 1 events")
        self._events: deque[Event] = deque(maxlen=most)

    def append(self, event: Event) -> None:
        """Keep one more event."""
        self._events.append(event)

    def close(self) -> None:
        """Nothing to close."""

    def __len__(self) -> int:
        return len(self._events)

    def __iter__(self) -> Iterator[Event]:
        return iter(list(self._events))
