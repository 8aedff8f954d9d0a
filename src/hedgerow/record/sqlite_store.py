"""Events in a SQLite file: for one machine, any number of processes, and whoever opens it with SQL."""

import logging
import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from hedgerow.errors import SettingError
from hedgerow.record.batches import BatchedStore, BatchWriter
from hedgerow.values.event import Event
from hedgerow.values.event_columns import ATTEMPT_COLUMNS, REQUEST_COLUMNS, attempt_rows, event_of_rows, request_row

__all__ = ["SqliteStore"]

PATIENCE_S = 5.0  # for the file lock of another process
TIDY_EVERY_S = 3600.0
ONLY_THE_OWNER = 0o600  # SQLite gives what it keeps beside a file the mode of that file
BESIDE = ("", "-wal", "-shm")
OF_THE_ROW = (sqlite3.DataError, sqlite3.IntegrityError, sqlite3.NotSupportedError, sqlite3.ProgrammingError)
# After other errors the file is opened anew: it may be another one by now, or without its tables.
BUSY = frozenset((sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL))

log = logging.getLogger("hedgerow")


class SqliteStore(BatchedStore):
    """Tables `requests` and `attempts`. Written in batches by a thread of its own, each batch in one transaction: a process
    that is killed loses at most the events of the last half second and tears none.

    path: the file; its folder must exist. keep_s: events older than this are deleted, seconds; None = kept for ever. May be
    shared between threads; several processes may write one file. Iterating reads what is in the file, oldest first.
    """

    def __init__(self, path: str | os.PathLike[str], *, keep_s: float | None = None) -> None:
        self.path = Path(path).absolute()  # SQLite has names of its own, such as ":memory:"
        if not self.path.parent.is_dir():
            raise SettingError(
                "events", str(path), "a file in a folder that exists", fix=f"mkdir -p {self.path.parent}"
            )
        if keep_s is not None and keep_s <= 0:
            raise SettingError("keep", keep_s, "seconds > 0")
        with closing(_opened(self.path)):
            pass  # a file that cannot be written is said at once, not in the background
        self._table = _Table(self.path, keep_s)
        self._write_with(BatchWriter(f"events in {self.path.name}", self._table.write, self._table.close, _will_pass))

    def __iter__(self) -> Iterator[Event]:
        self.flush()
        unread = 0
        with closing(_opened(self.path)) as base:
            base.row_factory = sqlite3.Row
            requests = base.execute("select * from requests order by at, id")
            for request in requests:
                attempts = base.execute(
                    "select * from attempts where id = ? order by attempt", (request["id"],)
                ).fetchall()
                try:
                    event = event_of_rows(dict(request), [dict(attempt) for attempt in attempts])
                except Exception:  # counted and logged: somebody else wrote it
                    unread += 1
                else:
                    yield event
        if unread:
            log.warning("events in %s: %d cannot be read and are left out", self.path.name, unread)

    def spent_since(self, at: datetime) -> dict[str, tuple[float, int]]:
        """US dollars that each client key's requests since then count, by the key's name, and how many were answered of which
        nobody can say. `counted_usd` says it; where a key had no limit then, the upper bound of what it cost."""
        asked = (
            "select client_key, coalesce(sum(usd), 0), sum(usd is null and outcome = 'answered') from (select *, "
            "coalesce(counted_usd, cost_high_usd) as usd from requests where at >= ?) group by client_key"
        )
        with closing(_opened(self.path)) as base:
            rows = base.execute(asked, (at.astimezone(UTC).isoformat(),))
            return {name: (usd, unknown) for name, usd, unknown in rows if name is not None}


class _Table:
    """The file as the writer's thread has it open: it must not hold the store, which ends the writer when it is dropped."""

    def __init__(self, path: Path, keep_s: float | None) -> None:
        self._path, self._keep_s, self._tidied_s = path, keep_s, 0.0
        self._base: tuple[int, sqlite3.Connection] | None = None  # with the process it belongs to
        self._files: Sequence[tuple[int, int] | None] = ()  # which they were when it was opened

    def write(self, batch: Sequence[Event]) -> None:
        """Keep a batch."""
        base = self._connection()
        requests = [request_row(event) for event in batch]
        attempts = [row for event in batch for row in attempt_rows(event)]
        try:
            with base:
                base.executemany(_insert("requests", REQUEST_COLUMNS), requests)
                base.executemany(_insert("attempts", ATTEMPT_COLUMNS), attempts)
        except sqlite3.DatabaseError as error:
            code: int | None = getattr(error, "sqlite_errorcode", None)
            if _will_pass(error) and code is not None and code & 0xFF not in BUSY:
                self.close()
            raise
        self._tidy(base)

    def _connection(self) -> sqlite3.Connection:
        """That of this process, to the file that is there now."""
        if self._base is not None and self._base[0] == os.getpid():
            if not any(
                was is not None and was != now for was, now in zip(self._files, _files(self._path), strict=True)
            ):
                return self._base[1]
            log.warning(
                "events in %s: the file was deleted or replaced; they go to the one of that name", self._path.name
            )
            with suppress(sqlite3.Error):  # what was written last goes along with a file that was only renamed
                self._base[1].execute("pragma wal_checkpoint(passive)")
            self.close()
        base = _opened(self._path)
        # SQLite forbids to use, or to close, a parent's connection after a fork
        self._base, self._files = (os.getpid(), base), _files(self._path)
        return base

    def _tidy(self, base: sqlite3.Connection) -> None:
        now_s = time.monotonic()
        if self._keep_s is None or (self._tidied_s and now_s - self._tidied_s < TIDY_EVERY_S):
            return
        self._tidied_s = now_s
        oldest = (datetime.now(UTC) - timedelta(seconds=self._keep_s)).isoformat()
        try:
            with base:
                base.execute("delete from attempts where id in (select id from requests where at < ?)", (oldest,))
                base.execute("delete from requests where at < ?", (oldest,))
        except sqlite3.Error as error:  # the batch is written: it must not be written again for that
            log.warning("events in %s: old ones could not be deleted this time (%s)", self._path.name, error)

    def close(self) -> None:
        """Let go of the file."""
        if self._base is not None and self._base[0] == os.getpid():
            self._base[1].close()
            self._base = None


def _will_pass(error: Exception) -> bool:
    """Is it the file's trouble, and not that of a row?"""
    if isinstance(error, sqlite3.DatabaseError):
        return not isinstance(error, OF_THE_ROW)
    return isinstance(error, OSError | SettingError)


def _files(path: Path) -> list[tuple[int, int] | None]:
    """Which files the names stand for at the moment: the store's, and those that SQLite keeps beside it."""
    found: list[tuple[int, int] | None] = []
    for ending in BESIDE:
        try:
            status = os.stat(f"{path}{ending}")
        except OSError:
            found.append(None)
        else:
            found.append((status.st_dev, status.st_ino))
    return found


def _opened(path: Path) -> sqlite3.Connection:
    try:
        _make_private(path)
        base = sqlite3.connect(path, timeout=PATIENCE_S, check_same_thread=False)
    except (sqlite3.Error, OSError) as error:
        raise _not_writable(path, error) from None
    try:
        base.execute("pragma journal_mode = wal")
        base.execute("pragma synchronous = normal")
        _prepare(base, "requests", REQUEST_COLUMNS, "id text primary key")
        _prepare(base, "attempts", ATTEMPT_COLUMNS, "")
        base.execute("create index if not exists attempts_of on attempts (id)")
        base.execute("create index if not exists requests_at on requests (at)")
        base.commit()
    except sqlite3.Error as error:
        base.close()
        raise _not_writable(path, error) from None
    return base


def _not_writable(path: Path, error: Exception) -> SettingError:
    return SettingError("events", str(path), f"a SQLite file that can be written ({error})")


def _make_private(path: Path) -> None:
    """An empty file that is its owner's only, where there is none. One that is there is not touched: to close it, however it was
    opened, would undo the locks that SQLite holds on it in this process."""
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, ONLY_THE_OWNER))


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
