"""SQLite logs, read by the standard library: rows of each known table as flat records."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

from hedgerow.analysis.ingest.problems import Place, Problems
from hedgerow.analysis.ingest.records import FlatRecord, RecordStage
from hedgerow.read_only import sqlite_to_read

__all__ = ["read_sqlite"]

# hedgerow's own store keeps a request and its attempts apart; the call is the first attempt. Fields come as `request.at`.
OWN_TABLES = {"requests": {"id", "at", "plan", "outcome"}, "attempts": {"id", "attempt", "started_s", "ended_s"}}


def read_sqlite(path: Path, shown: str, stage: RecordStage, problems: Problems) -> None:
    """Stages the rows of every table whose fields some format knows. Nothing is written, to the file or beside it."""
    tables: dict[str, list[str]] = {}
    known = 0
    try:
        with sqlite_to_read(path) as base:
            base.text_factory = _text
            tables = _tables(base)
            known = sum(_read(base, query, stage) for query in _queries(tables))
    except sqlite3.Error as error:
        problems.broken(Place(shown), f"not a readable SQLite file ({error})")
        return
    if not known:
        problems.broken(Place(shown), f"no rows of a known format (its tables: {', '.join(tables) or 'none'})")


def _text(content: bytes) -> str:
    return content.decode(errors="replace")


def _tables(base: sqlite3.Connection) -> dict[str, list[str]]:
    """Names of tables, and of their fields."""
    names = [str(row[0]) for row in base.execute("select name from sqlite_master where type = 'table'")]
    return {
        name: [str(row[1]) for row in base.execute(f"pragma table_info({_quoted(name)})")]
        for name in names
        if not name.startswith("sqlite_")
    }


def _queries(tables: dict[str, list[str]]) -> list[str]:
    if all(fields.issubset(tables.get(table, ())) for table, fields in OWN_TABLES.items()):
        listed = ", ".join(
            f"{table}.{_quoted(name)} as {_quoted(f'{table[:-1]}.{name}')}"
            for table in OWN_TABLES
            for name in tables[table]
        )
        first = "attempts.id = requests.id and attempts.attempt = 0"
        return [f"select {listed} from requests left join attempts on {first} order by requests.at"]
    return [f"select * from {_quoted(table)}" for table in tables]


def _read(base: sqlite3.Connection, query: str, stage: RecordStage) -> int:
    """How many rows some format knows. The names of the fields tell the format, so one row answers for all."""
    rows: Iterator[tuple[object, ...]] = base.execute(query)
    names = [str(column[0]) for column in base.execute(f"select * from ({query}) limit 0").description]
    number = 0
    for number, row in enumerate(rows, 1):
        record: FlatRecord = dict(zip(names, row, strict=True))
        if not stage.add(record, number):
            return 0
    return number


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
