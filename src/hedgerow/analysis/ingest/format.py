"""What a foreign log's rows mean: which fields tell the format, and where each column of a call comes from."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from hedgerow.analysis.calls import CALL_COLUMNS
from hedgerow.analysis.ingest.fields import Expr

__all__ = ["Format"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One kind of log.

    needs: each group names fields of which a row has at least one; all groups together tell this format from the others.
    columns: call column → expression; what is missing is unknown, and `ok` unknown means it was answered.
    skip: reason → rows that are no calls of a provider (a cache hit, a span that is no generation), counted as rejected.
    notices: sentence about a row → rows it holds for; said with their number, rows left out included.
    cautions: what every reader of figures from this format should know.
    exacting: a file must have every field that is read (`--map`), else it is not read at all.
    """

    name: str
    needs: tuple[tuple[str, ...], ...]
    columns: Mapping[str, Expr]
    skip: Mapping[str, Expr] = field(default_factory=dict[str, Expr])
    notices: Mapping[str, Expr] = field(default_factory=dict[str, Expr])
    cautions: tuple[str, ...] = ()
    exacting: bool = False

    def __post_init__(self) -> None:
        unknown = set(self.columns) - set(CALL_COLUMNS)
        if unknown:
            raise ValueError(f"{self.name} fills columns that calls do not have: {', '.join(sorted(unknown))}")

    def recognises(self, names: frozenset[str]) -> bool:
        """Whether a row with these fields is of this format."""
        return all(any(name in names for name in group) for group in self.needs)

    def reads(self) -> frozenset[str]:
        """Every field it looks at."""
        expressions = (*self.columns.values(), *self.skip.values(), *self.notices.values())
        return frozenset[str]().union(*(each.reads for each in expressions))
