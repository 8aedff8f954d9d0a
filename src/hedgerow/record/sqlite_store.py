"""Events in a SQLite file: for one machine, any number of processes, and whoever opens it with SQL."""

import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

from hedgerow.errors import SettingError
from hedgerow.record.batches import BatchedStore, BatchWriter
from hedgerow.values.event import Event
from hedgerow.values.event_columns import ATTEMPT_COLUMNS, REQUEST_COLUMNS, attempt_rows, event_of_rows, request_row

__all__ = ["SqliteStore"]

PATIENCE_S = 5.0  # for the file lock of another process
TIDY_EVERY_S = 3600.0


class SqliteStore(BatchedStore):
    """Tables `requests` and `attempts`. Written in batches by a thread of its own, each batch in one transaction: a process
    that is killed loses at most the events of the last half second and tears none.

    path: the file; its folder must exist. keep_s: events older than this are deleted, seconds; None = kept for ever. May be
    shared between threads; several processes may write one file. Iterating reads what is in the file, oldest first.
    """

    def __init__(self, path: str | os.PathLike[str], *, keep_s: float | None = None) -> None:
        self.path = Path(path)
        if not self.path.parent.is_dir():
            raise SettingError(
                "events", str(path), "a file in a folder that exists", fix=f"mkdir -p {self.path.parent}"
            )
        if keep_s is not None and keep_s <= 0:
            raise SettingError("keep", keep_s, "seconds > 0")
        with closing(_opened(self.path)):
            pass  # a file that cannot be written is said at once, not in the background
        self._table = _Table(self.path, keep_s)
        self._write_with(BatchWriter(f"events in {self.path.name}", self._table.write, self._table.close))

    def __iter__(self) -> Iterator[Event]:
        self.flush()
        with closing(_opened(self.path)) as base:
            base.row_factory = sqlite3.Row
            requests = base.execute("select * from requests order by at, id")
            for request in requests:
                attempts = base.execute(
                    "select * from attempts where id = ? order by attempt", (request["id"],)
                ).fetchall()
                yield event_of_rows(dict(request), [dict(attempt) for attempt in attempts])

    def spent_since(self, at: datetime) -> dict[str, float]:
        """US dollars that each client key's requests may have cost at most since then, by the key's name."""
        asked = "select client_key, sum(cost_high_usd) from requests where at >= ? and cost_high_usd > 0 group by client_key"
        with closing(_opened(self.path)) as base:
            return {
                name: usd for name, usd in base.execute(asked, (at.astimezone(UTC).isoformat(),)) if name is not None
            }


class _Table:
    """The file as the writer's thread has it open: it must not hold the store, which ends the writer when it is dropped."""

    def __init__(self, path: Path, keep_s: float | None) -> None:
        self._path, self._keep_s, self._tidied_s = path, keep_s, 0.0
        self._base: tuple[int, sqlite3.Connection] | None = None  # with the process it belongs to

    def write(self, batch: Sequence[Event]) -> None:
        """Keep a batch."""
        if self._base is None or self._base[0] != os.getpid():
            self._base = (
                os.getpid(),
                _opened(self._path),
            )  # SQLite forbids to use, or to close, a parent's connection after a fork
        _, base = self._base
        with base:
            base.executemany(_insert("requests", REQUEST_COLUMNS), [request_row(event) for event in batch])
            rows = [row for event in batch for row in attempt_rows(event)]
            base.executemany(_insert("attempts", ATTEMPT_COLUMNS), rows)
        self._tidy(base)

    def _tidy(self, base: sqlite3.Connection) -> None:
        now_s = time.monotonic()
        if self._keep_s is None or (self._tidied_s and now_s - self._tidied_s < TIDY_EVERY_S):
            return
        self._tidied_s = now_s
        oldest = (datetime.now(UTC) - timedelta(seconds=self._keep_s)).isoformat()
        with base:
            base.execute("delete from attempts where id in (select id from requests where at < ?)", (oldest,))
            base.execute("delete from requests where at < ?", (oldest,))

    def close(self) -> None:
        """Let go of the file."""
        if self._base is not None and self._base[0] == os.getpid():
            self._base[1].close()
            self._base = None


def _opened(path: Path) -> sqlite3.Connection:
    try:
        base = sqlite3.connect(path, timeout=PATIENCE_S, check_same_thread=False)
        base.execute("pragma journal_mode = wal")
        base.execute("pragma synchronous = normal")
        _prepare(base, "requests", REQUEST_COLUMNS, "id text primary key")
        _prepare(base, "attempts", ATTEMPT_COLUMNS, "")
        base.execute("create index if not exists attempts_of on attempts (id)")
        base.execute("create index if not exists requests_at on requests (at)")
        base.commit()
    except sqlite3.Error as error:
        raise SettingError("events", str(path), f"a SQLite file that can be written ({error})") from None
    return base


def _prepare(base: sqlite3.Connection, table: str, columns: dict[str, str], key: str) -> None:
    """The table, with columns added that an older version of hedgerow did not have."""
    listed = ", ".join(key if key.startswith(f"{name} ") else f"{name} {kind}" for name, kind in columns.items())
    base.execute(f"create table if not exists {table} ({listed})")
    there = {row[1] for row in base.execute(f"pragma table_info({table})")}
    for name, kind in columns.items():
        if name not in there:
            base.execute(f"alter table {table} add column {name} {kind}")


def _insert(table: str, columns: dict[str, str]) -> str:
    marks = ", ".join("?" * len(columns))
    return f"insert or replace into {table} ({', '.join(columns)}) values ({marks})"
