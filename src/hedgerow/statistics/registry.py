"""Statistics per key, bounded in memory: of whoever has most keys, the one used least recently goes first."""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from weakref import WeakValueDictionary

from hedgerow.statistics.key import KeyStatistics
from hedgerow.statistics.shares import Shares
from hedgerow.units import Window
from hedgerow.values.request import SIZES, Key, RequestFacts, size_class

__all__ = ["Registry"]

MOST_KEYS = 1_000
_Parts = tuple[str, str, str | None, bool, bool, str | None, str]  # of a Key


class Registry:
    """Statistics of every key seen lately. window: what the rings of quantile delays hold. Not for threads.

    A key is kept once one of its calls has been answered: callers may ask for whatever names they like. Until then its calls
    under way share it. Owners are the client keys whose calls were answered: what one makes pushes out its own, not another's.
    """

    def __init__(self, window: Window) -> None:
        self._window = window
        self._unanswered: WeakValueDictionary[_Parts, KeyStatistics] = WeakValueDictionary()
        self._known: OrderedDict[_Parts, tuple[Key, KeyStatistics]] = OrderedDict()
        self._shares = Shares[_Parts]()

    def find(
        self, facts: RequestFacts, target: str, *, streamed: bool, owner: str | None = None
    ) -> tuple[Key, KeyStatistics]:
        """The key of a request at a target, and its statistics. streamed: its answer comes as a stream though nobody asked
        for one. owner: whose request it is. Every call goes through here, and a Key takes longer to make and to hash than to find
        by its parts."""
        size, stream = size_class(facts.input_tokens_estimate), facts.stream or streamed
        parts = (target, facts.dialect, facts.model, stream, facts.tools, facts.effort, size)
        found = self._known.get(parts)
        if found is None:
            known = self._unanswered.get(parts)
            if known is None:
                known = self._unanswered[parts] = KeyStatistics(self._window)
            return Key.of(facts, target, streamed=streamed), known
        self._known.move_to_end(parts)
        self._shares.use(parts, owner)
        return found

    def keep(self, key: Key, known: KeyStatistics, owner: str | None = None) -> None:
        """A call of this key has been answered, for this owner."""
        parts = _parts(key)
        if parts not in self._known:
            self._known[parts] = (key, known)
        elif self._shares.holds(parts, owner):  # most calls; find() has moved it to the end
            return
        self._shares.take(parts, owner)
        self._make_room(owner)

    def of(self, key: Key) -> KeyStatistics:
        """The statistics of a key, new and empty at first sight."""
        found = self._known.get(_parts(key))
        known = KeyStatistics(self._window) if found is None else found[1]
        self.keep(key, known)
        self._known.move_to_end(_parts(key))
        self._shares.use(_parts(key), None)
        return known

    def put(self, key: Key, known: KeyStatistics, owners: Sequence[str | None] = (None,)) -> None:
        """Statistics of an earlier life, in place of those that there are."""
        parts = _parts(key)
        self._known[parts] = (key, known)
        for owner in owners:
            self._shares.take(parts, owner)
            self._make_room(owner)

    def latest(self, most: int) -> list[tuple[Key, KeyStatistics, list[str | None]]]:
        """The keys used last, from each owner in turn, with their owners; in the order of their use."""
        chosen = self._shares.latest(most)
        return [
            (key, known, self._shares.owners(parts)) for parts, (key, known) in self._known.items() if parts in chosen
        ]

    def warm_sibling(self, key: Key) -> KeyStatistics | None:
        """The best-known warm key of the same target, API, model and way of answering, for one that is still cold; never one of
        smaller inputs, whose answers are quicker than this key's can be."""
        siblings = (known for other, known in self._known.values() if known.warm and _speaks_for(other, key))
        return max(siblings, key=lambda known: known.requests, default=None)

    def __iter__(self) -> Iterator[tuple[Key, KeyStatistics]]:
        return iter(list(self._known.values()))

    def _make_room(self, owner: str | None) -> None:
        while len(self._known) > MOST_KEYS:
            if (gone := self._shares.give_up(owner)) is not None:
                del self._known[gone]


def _parts(key: Key) -> _Parts:
    return key.target, key.dialect, key.model, key.stream, key.tools, key.effort, key.size


def _speaks_for(other: Key, key: Key) -> bool:
    alike = (other.target, other.dialect, other.model, other.stream) == (key.target, key.dialect, key.model, key.stream)
    return alike and SIZES.index(other.size) >= SIZES.index(key.size)
