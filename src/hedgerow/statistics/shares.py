"""Who holds which of a bounded number of keys, and who has to give one up: whoever holds most, the one it has not used longest.

So of N owners each can keep its N-th part, whatever the others do; and one that is alone can use all of it.
"""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

__all__ = ["Shares", "put_bounded"]

Kept = TypeVar("Kept", bound=Hashable)
Value = TypeVar("Value")
Owner = str | None  # the name of a client key; None: all who have none


class Shares(Generic[Kept]):
    """Several owners may hold the same: it stays as long as one of them does. Not for threads."""

    def __init__(self) -> None:
        self._held: dict[Owner, OrderedDict[Kept, None]] = {}
        self._holders: dict[Kept, int] = {}

    def use(self, kept: Kept, owner: Owner) -> None:
        """An owner asks for it once more; nothing, if it does not hold it."""
        held = self._held.get(owner)
        if held is not None and kept in held:
            held.move_to_end(kept)

    def holds(self, kept: Kept, owner: Owner) -> bool:
        """Does this owner hold it?"""
        return kept in self._held.get(owner, ())

    def take(self, kept: Kept, owner: Owner) -> None:
        """From now on this owner holds it, too."""
        held = self._held.setdefault(owner, OrderedDict())
        if kept not in held:
            self._holders[kept] = self._holders.get(kept, 0) + 1
        held[kept] = None
        held.move_to_end(kept)

    def give_up(self, owner: Owner) -> Kept | None:
        """Whoever holds most drops one; of those who hold as many, `owner`. The one, if nobody holds it any more."""
        most = max(self._held, key=lambda each: (len(self._held[each]), each == owner))
        dropped, _ = self._held[most].popitem(last=False)
        if not self._held[most]:
            del self._held[most]
        self._holders[dropped] -= 1
        if self._holders[dropped]:
            return None
        del self._holders[dropped]
        return dropped

    def owners(self, kept: Kept) -> list[Owner]:
        """Who holds it."""
        return [owner for owner, held in self._held.items() if kept in held]

    def latest(self, most: int) -> set[Kept]:
        """Those used last, from each owner in turn, as many as `most`."""
        chosen: set[Kept] = set()
        waiting = [reversed(held) for held in self._held.values()]
        while waiting:
            for each in list(waiting):
                if len(chosen) >= most:
                    return chosen
                if (kept := next(each, None)) is None:
                    waiting.remove(each)
                else:
                    chosen.add(kept)
        return chosen


def put_bounded(table: dict[Kept, Value], key: Kept, value: Value, most: int) -> None:
    """Put it in as the newest; of more than `most` the oldest goes."""
    table.pop(key, None)
    table[key] = value
    if len(table) > most:
        del table[next(iter(table))]
