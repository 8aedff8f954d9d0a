"""Statistics per key, bounded in memory: the keys used least recently go first."""

from collections import OrderedDict
from collections.abc import Iterator

from hedgerow.statistics.key import KeyStatistics
from hedgerow.units import Window
from hedgerow.values.request import SIZES, Key

__all__ = ["Registry"]

MOST_KEYS = 1_000


class Registry:
    """Statistics of every key seen lately. window: what the rings of quantile delays hold. Not for threads."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self._by_key: OrderedDict[Key, KeyStatistics] = OrderedDict()

    def of(self, key: Key) -> KeyStatistics:
        """The statistics of a key, new and empty at first sight."""
        found = self._by_key.get(key)
        if found is None:
            found = self._by_key[key] = KeyStatistics(self._window)
            if len(self._by_key) > MOST_KEYS:
                self._by_key.popitem(last=False)
        else:
            self._by_key.move_to_end(key)
        return found

    def warm_sibling(self, key: Key) -> KeyStatistics | None:
        """The best-known warm key of the same target, API, model and way of answering, for one that is still cold; never one of
        smaller inputs, whose answers are quicker than this key's can be."""
        siblings = (known for other, known in self._by_key.items() if known.warm and _speaks_for(other, key))
        return max(siblings, key=lambda known: known.requests, default=None)

    def __iter__(self) -> Iterator[tuple[Key, KeyStatistics]]:
        return iter(list(self._by_key.items()))


def _speaks_for(other: Key, key: Key) -> bool:
    alike = (other.target, other.dialect, other.model, other.stream) == (key.target, key.dialect, key.model, key.stream)
    return alike and SIZES.index(other.size) >= SIZES.index(key.size)
