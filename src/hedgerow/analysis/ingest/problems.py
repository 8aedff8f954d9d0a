"""What was wrong with a log: rows left out, by reason, with the first places of each; files that could not be read; cautions."""

from collections.abc import Iterable
from dataclasses import dataclass, field

__all__ = ["Place", "Problems"]

EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class Place:
    """A file and, where known, the line in it (from 1)."""

    file: str
    line: int | None = None

    def __str__(self) -> str:
        return self.file if self.line is None else f"{self.file}:{self.line}"


@dataclass(slots=True)
class Problems:
    """Collected while logs are read; not shared between threads."""

    rejected: dict[str, int] = field(default_factory=dict[str, int])
    examples: dict[str, list[Place]] = field(default_factory=dict[str, list[Place]])
    unread: list[str] = field(default_factory=list[str])
    cautions: list[str] = field(default_factory=list[str])

    def reject(self, reason: str, n: int, places: Iterable[Place]) -> None:
        """`n` more rows are left out for this reason."""
        if n:
            self.rejected[reason] = self.rejected.get(reason, 0) + n
            shown = self.examples.setdefault(reason, [])
            shown.extend(list(places)[: EXAMPLES - len(shown)])

    def broken(self, place: Place, why: str) -> None:
        """A file, or the rest of it from this place on, could not be read."""
        self.unread.append(f"{place}: {why}")

    def caution(self, message: str) -> None:
        """What a reader of the figures should know; said once."""
        if message not in self.cautions:
            self.cautions.append(message)

    def told(self) -> int:
        """How much there is so far: rows left out and files not read."""
        return sum(self.rejected.values()) + len(self.unread)

    def messages(self) -> list[str]:
        """All of it for people, worst first."""
        rows = [
            f"{n:,} {'row' if n == 1 else 'rows'} left out, {reason} (first at {self._where(reason)})"
            for reason, n in self.rejected.items()
        ]
        return [*self.unread, *rows, *self.cautions]

    def _where(self, reason: str) -> str:
        return ", ".join(str(place) for place in self.examples[reason])
