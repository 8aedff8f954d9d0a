"""`hedgerow export`: events for a BI tool, as Parquet, CSV or JSONL."""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import orjson
import typer

from hedgerow.cli.logs import saying_what_is_missing
from hedgerow.errors import SettingError
from hedgerow.record.stored_events import StoredEvents, stored_events
from hedgerow.values.event import Event

__all__ = ["export"]

LINES = ".jsonl"


def export(
    events: Annotated[
        str, typer.Argument(metavar="EVENTS", help="what `events=` was: sqlite:///hedgerow.db, or a file")
    ],
    to: Annotated[
        Path, typer.Option(help="FILE.parquet, .csv or .jsonl; attempts go to FILE-attempts beside the first two")
    ],
) -> None:
    """Copies events to a file: one row for each request, and one for each attempt, joined by `id`.

    EVENTS is only read; a file that hedgerow has not written is refused.
    """
    with saying_what_is_missing("export"):
        from hedgerow.analysis.event_tables import TABLES, beside

        if to.suffix not in (*TABLES, LINES):
            raise SettingError("--to", str(to), "a name ending in .parquet, .csv or .jsonl")
        source = _named(events)
        targets = [to] if to.suffix == LINES else [to, beside(to)]
        _refuse_to_overwrite(source, targets)
        with stored_events(source) as stored:
            written = _written(stored, targets, source)
    if stored.unread:
        print(f"hedgerow export: {stored.unread:,} records are no events and are left out", file=sys.stderr)
    print(f"hedgerow export: {written:,} events in {to}", file=sys.stderr)


def _named(events: str) -> Path:
    """A file that is there already, by address or by path."""
    kind, slashes, rest = events.partition("://")
    if slashes and kind not in ("sqlite", "jsonl"):
        raise SettingError("EVENTS", f"{kind}://…", "sqlite:///FILE, jsonl:///FILE or a file")
    path = Path(rest.removeprefix("/").partition("?")[0] if slashes else events)
    if not path.is_file():
        raise SettingError("EVENTS", events, "a file that hedgerow has written events to")
    return path


def _refuse_to_overwrite(source: Path, targets: Sequence[Path]) -> None:
    for target in targets:
        if target.exists() and target.samefile(source):
            raise SettingError("--to", str(target), "another file than the one that is read")
        if not target.parent.is_dir():
            raise SettingError("--to", str(target), "a file in a folder that exists", fix=f"mkdir -p {target.parent}")


def _written(stored: StoredEvents, targets: Sequence[Path], source: Path) -> int:
    """Writes beside the targets first: what cannot be finished leaves no half of a file, and keeps what was there."""
    from hedgerow.analysis.event_tables import write_tables

    with TemporaryDirectory(dir=targets[0].parent, prefix=".hedgerow-") as folder:
        made = [Path(folder) / target.name for target in targets]
        count = _as_lines(stored, made[0]) if len(made) == 1 else write_tables(stored, made[0])
        if not count and stored.unread:
            allowed = "a file that hedgerow has written events to"
            raise SettingError("EVENTS", str(source), f"{allowed}: none of its {stored.unread:,} records is an event")
        for each, target in zip(made, targets, strict=True):
            each.replace(target)
    return count


def _as_lines(events: Iterable[Event], to: Path) -> int:
    with to.open("wb") as file:
        return sum(
            bool(file.write(orjson.dumps(event.as_dict(), option=orjson.OPT_APPEND_NEWLINE))) for event in events
        )
