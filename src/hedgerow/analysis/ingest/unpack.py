"""Records that hold several calls, or hold one deep inside: what each kind unfolds into."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from hedgerow.analysis.ingest.records import FlatRecord

__all__ = ["NotDetailed", "Unpacker"]


class NotDetailed(Exception):
    """A record of a known kind that holds no single calls; the message says how to get one that does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpacker:
    """holds: fields at the top of a record that tell this kind. unfold: the flat records in it; raises NotDetailed."""

    holds: tuple[str, ...]
    unfold: Callable[[Mapping[str, object]], Iterable[FlatRecord]]
