"""SQLite logs, read by the standard library: each known table's rows as flat records."""

import sqlite3
from contextlib import closing
from pathlib import Path

from hedgerow.analysis.ingest.problems import Place, Problems
from hedgerow.analysis.ingest.records import RecordStage

__all__ = ["read_sqlite"]


def read_sqlite(path: Path, shown: str, stage: RecordStage, problems: Problems) -> None:
    """Stages the rows of every table whose fields some format knows. The file is opened for reading only."""
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as base:
            base.row_factory = sqlite3.Row
            tables = [str(row[0]) for row in base.execute("select name from sqlite_master where type = 'table'")]
            known = [table for table in tables if _read_table(base, table, stage)]
    except sqlite3.Error as error:
        problems.broken(Place(shown), f"not a readable SQLite file ({error})")
        return
    if not known:
        problems.broken(Place(shown), f"no table of a known format (it has {', '.join(tables) or 'no tables'})")


def _read_table(base: sqlite3.Connection, table: str, stage: RecordStage) -> bool:
    quoted = table.replace('"', '""')
    known = False
    for number, row in enumerate(base.execute(f'select * from "{quoted}"'), 1):
        # Null fields tell the format as well as filled ones: names are what counts.
        known = stage.add({name: row[name] for name in row.keys()}, number)  # noqa: SIM118 -- a Row has no iterator of names
        if not known:
            break
    return known
