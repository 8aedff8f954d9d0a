"""SQLite files opened so that not a byte of them, or beside them, changes: also where nothing can be written, and while another
process writes."""

import shutil
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

__all__ = ["SQLITE_MAGIC", "sqlite_to_read"]

SQLITE_MAGIC = b"SQLite format 3\x00"
VERSION_AT, WRITE_AHEAD = 18, 2  # of the header's byte that says how the file is written
PATIENCE_S = 5.0  # for the file lock of another process


@contextmanager
def sqlite_to_read(path: Path) -> Generator[sqlite3.Connection]:
    """The file, for reading. Raises sqlite3.Error where it is none, and OSError.

    A file at rest is taken as it stands: SQLite would make files beside a write-ahead store, or fail where it cannot. One that a
    process has open is read together with that process. What a killed process left beside a file is put together in a copy.
    """
    with path.open("rb") as file:
        header = file.read(VERSION_AT + 1)
    ahead = header[VERSION_AT:] == bytes([WRITE_AHEAD])
    if _left(path, "-wal") if ahead else _left(path, "-journal"):
        if ahead and _left(path, "-shm"):
            try:
                base = _connected(path, "mode=ro")
            except sqlite3.OperationalError:
                pass  # it lies where its index cannot be locked
            else:
                with _closing(base):
                    yield base
                return
        with (
            TemporaryDirectory(prefix="hedgerow-") as folder,
            _closing(_connected(_copy(path, Path(folder)), "")) as base,
        ):
            yield base
        return
    with _closing(_connected(path, "mode=ro&immutable=1" if ahead else "mode=ro")) as base:
        yield base


@contextmanager
def _closing(base: sqlite3.Connection) -> Generator[sqlite3.Connection]:
    try:
        yield base
    finally:
        base.close()


def _connected(path: Path, how: str) -> sqlite3.Connection:
    base = sqlite3.connect(f"{path.resolve().as_uri()}?{how}", uri=True, timeout=PATIENCE_S)
    try:
        base.execute("pragma query_only = true")
        base.execute("select 1 from sqlite_master limit 1").fetchall()
    except sqlite3.Error:
        base.close()
        raise
    return base


def _left(path: Path, ending: str) -> bool:
    beside = Path(f"{path}{ending}")
    return beside.is_file() and beside.stat().st_size > 0


def _copy(path: Path, folder: Path) -> Path:
    copy = folder / "copy.db"
    for ending in ("", "-wal", "-journal"):
        if ending == "" or _left(path, ending):
            shutil.copyfile(f"{path}{ending}", f"{copy}{ending}")
    return copy
