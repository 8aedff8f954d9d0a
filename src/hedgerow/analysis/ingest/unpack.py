"""Records that hold several calls, or hold one deep inside: what each kind unfolds into."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from hedgerow.analysis.ingest.records import FlatRecord

__all__ = ["NotDetailed", "Unfold", "Unpacker"]


class NotDetailed(Exception):
    """A record of a known kind that holds no single calls; the message says how to get one that does."""


Unfold = Callable[[Mapping[str, object]], Iterable[FlatRecord]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpacker:
    """holds: fields at the top of a record that tell this kind. begin: for each file, what unfolds one record after another
    into flat ones; that raises NotDetailed."""

    holds: tuple[str, ...]
    begin: Callable[[], Unfold]

    def knows(self, record: Mapping[str, object]) -> bool:
        """Whether a record is of this kind."""
        return all(name in record for name in self.holds)
