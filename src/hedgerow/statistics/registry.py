"""Statistics per key, bounded in memory: the keys used least recently go first."""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass

from hedgerow.statistics.ring import Ring
from hedgerow.units import Window
from hedgerow.values.request import Key

__all__ = ["ENOUGH", "KeyStatistics", "Registry"]

ENOUGH = 20  # fewer samples than this say nothing about a tail (policy.md, warm-up)
MOST_KEYS = 1_000


@dataclass(slots=True)
class KeyStatistics:
    """What one key's calls took, as the caller saw it: measured from the primary's start whoever won, because dropping
    losers would make the quantile drift (policy.md, "Censoring"). `requests` counts all of them."""

    first_tokens: Ring
    responses: Ring
    requests: int = 0


class Registry:
    """Statistics of every key seen lately. Not for threads: one Hedger owns it."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self._by_key: OrderedDict[Key, KeyStatistics] = OrderedDict()

    def of(self, key: Key) -> KeyStatistics:
        """The statistics of a key, new and empty at first sight."""
        found = self._by_key.get(key)
        if found is None:
            found = self._by_key[key] = KeyStatistics(Ring(self._window), Ring(self._window))
            if len(self._by_key) > MOST_KEYS:
                self._by_key.popitem(last=False)
        self._by_key.move_to_end(key)
        return found

    def __iter__(self) -> Iterator[tuple[Key, KeyStatistics]]:
        return iter(list(self._by_key.items()))
