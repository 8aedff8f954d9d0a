"""`hedgerow export`: events for a BI tool, as Parquet, CSV or JSONL."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import orjson
import typer

from hedgerow.cli.logs import saying_what_is_missing
from hedgerow.errors import SettingError
from hedgerow.record.jsonl_store import JsonlStore
from hedgerow.record.recorder import Store
from hedgerow.record.sqlite_store import SqliteStore
from hedgerow.values.event import Event

__all__ = ["export"]

SQLITE_MAGIC = b"SQLite format 3\x00"


def export(
    events: Annotated[
        str, typer.Argument(metavar="EVENTS", help="what `events=` was: sqlite:///hedgerow.db, or a file")
    ],
    to: Annotated[
        Path, typer.Option(help="FILE.parquet, .csv or .jsonl; attempts go to FILE-attempts beside the first two")
    ],
) -> None:
    """Copies events to a file: one row for each request, and one for each attempt, joined by `id`."""
    with saying_what_is_missing("export"):
        from hedgerow.analysis.event_tables import TABLES, write_tables

        if to.suffix not in (*TABLES, ".jsonl"):
            raise SettingError("--to", str(to), "a name ending in .parquet, .csv or .jsonl")
        store = _opened(events)
        try:
            written = _as_lines(store, to) if to.suffix == ".jsonl" else write_tables(store, to)
        finally:
            store.close()
    print(f"hedgerow export: {written:,} events in {to}", file=sys.stderr)


def _opened(events: str) -> Store:
    """A store that is there already, by address or by path."""
    path = Path(events.partition(":///")[2].partition("?")[0] if ":///" in events else events)
    if not path.is_file():
        raise SettingError("EVENTS", events, "a file that hedgerow has written events to")
    with path.open("rb") as file:
        is_sqlite = file.read(len(SQLITE_MAGIC)) == SQLITE_MAGIC
    return SqliteStore(path) if is_sqlite else JsonlStore(path)


def _as_lines(events: Iterable[Event], to: Path) -> int:
    with to.open("wb") as file:
        return sum(
            bool(file.write(orjson.dumps(event.as_dict(), option=orjson.OPT_APPEND_NEWLINE))) for event in events
        )
