"""Events of a file that some process has written, read without touching it; what is not hedgerow's is refused."""

import sqlite3
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import orjson

from hedgerow.errors import SettingError
from hedgerow.read_only import SQLITE_MAGIC, sqlite_to_read
from hedgerow.values.event import Event
from hedgerow.values.event_columns import event_of_rows

__all__ = ["StoredEvents", "stored_events"]

# What every version's tables had; the rest may be older or newer.
REQUESTS, ATTEMPTS = {"id", "at", "plan", "outcome"}, {"id", "attempt", "started_s"}
WANTED = "a file that hedgerow has written events to"

Row = Mapping[str, object]


@dataclass(slots=True)
class StoredEvents:
    """Events, oldest first as the file has them; once. unread: how many records so far were none, and were left out."""

    rows: Iterator[tuple[Row, Sequence[Row]] | None]
    unread: int = 0

    def __iter__(self) -> Iterator[Event]:
        for row in self.rows:
            try:
                if row is None:
                    raise ValueError("no event")
                event = event_of_rows(*row)
            except Exception:  # counted: a killed process left it, or somebody else wrote it
                self.unread += 1
            else:
                yield event


@contextmanager
def stored_events(path: Path) -> Generator[StoredEvents]:
    """The events of a SQLite store or a JSONL file. Raises SettingError for any other file; what fails later is sqlite3.Error."""
    try:
        with path.open("rb") as file:
            is_sqlite = file.read(len(SQLITE_MAGIC)) == SQLITE_MAGIC
        if not is_sqlite:
            yield StoredEvents(_lines(path))
            return
        with sqlite_to_read(path) as base:
            base.row_factory = sqlite3.Row
            _refuse_foreign(base, path)
            yield StoredEvents(_rows(base))
    except (OSError, sqlite3.Error) as error:
        raise SettingError("EVENTS", str(path), f"{WANTED} and that can be read ({error})") from None


def _refuse_foreign(base: sqlite3.Connection, path: Path) -> None:
    for table, columns in (("requests", REQUESTS), ("attempts", ATTEMPTS)):
        if not columns <= {cast(str, row[1]) for row in base.execute(f"pragma table_info({table})")}:
            why = f"{WANTED}: this SQLite file has no table {table} of hedgerow's, and is left as it is"
            raise SettingError("EVENTS", str(path), why)


def _rows(base: sqlite3.Connection) -> Iterator[tuple[Row, Sequence[Row]]]:
    for request in base.execute("select * from requests order by at, id"):
        attempts = base.execute("select * from attempts where id = ? order by attempt", (request["id"],))
        yield dict(request), [dict(attempt) for attempt in attempts.fetchall()]


def _lines(path: Path) -> Iterator[tuple[Row, Sequence[Row]] | None]:
    with path.open("rb") as file:
        for line in file:
            if line.strip():
                yield _record(line)


def _record(line: bytes) -> tuple[Row, Sequence[Row]] | None:
    try:
        record: object = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(record, dict):
        return None
    named = cast(dict[str, object], record)
    attempts = named.get("attempts", [])
    return named, cast(Sequence[Row], attempts) if isinstance(attempts, list) else ()
