"""Events in a JSONL file, one request per line with its attempts: for shipping elsewhere, and for `tail -f`."""

import logging
import os
import stat
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

import orjson

from hedgerow.errors import SettingError
from hedgerow.record.batches import BatchedStore, BatchWriter
from hedgerow.values.event import Event
from hedgerow.values.event_columns import event_of_rows

__all__ = ["JsonlStore", "append_lines"]

ONLY_THE_OWNER = 0o600
MOST_BYTES = (
    2**30
)  # Linux writes at most 2 GiB at once: without a bound such a batch would look like a full disk for ever

log = logging.getLogger("hedgerow")


class JsonlStore(BatchedStore):
    """Appends to a file, in batches, from a thread of its own. Each batch is one write of whole lines, so that several processes
    may append to one file and a process that is killed leaves at most its last line cut. Iterating reads whole lines only."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        try:
            os.close(os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, ONLY_THE_OWNER))
        except OSError as error:
            raise SettingError("events", str(path), f"a file that can be written ({error})") from None
        self._write_with(BatchWriter(f"events in {self.path.name}", partial(_write, self.path), lambda: None))

    def __iter__(self) -> Iterator[Event]:
        self.flush()
        unread = 0
        with self.path.open("rb") as file:
            for line in file:
                if not line.endswith(b"\n") or not line.strip():
                    continue
                try:
                    record = cast(dict[str, Any], orjson.loads(line))
                    event = event_of_rows(record, record.get("attempts", []))
                except Exception:  # counted and logged: what a killed process left, or somebody else wrote
                    unread += 1
                else:
                    yield event
        if unread:
            log.warning("events in %s: %d lines cannot be read and are left out", self.path.name, unread)


def _write(path: Path, batch: Sequence[Event]) -> None:
    lines = b"".join(orjson.dumps(event.as_dict(), option=orjson.OPT_APPEND_NEWLINE) for event in batch)
    append_lines(path, lines)


def append_lines(path: Path, lines: bytes) -> None:
    """One write of whole lines at the end of a file, or none of them; a new file is its owner's only. Raises OSError, and
    ValueError for more than one write takes."""
    if len(lines) > MOST_BYTES:
        raise ValueError("too much for one write")
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, ONLY_THE_OWNER)
    try:
        if stat.S_ISREG(os.fstat(descriptor).st_mode) and _is_cut(path):
            lines = b"\n" + lines  # so that what a killed process has left does not take another's line with it
        written = os.write(descriptor, lines)
        if written < len(lines):  # a disk that is full takes a part: none of it is better
            os.ftruncate(descriptor, os.lseek(descriptor, 0, os.SEEK_CUR) - written)
            raise OSError("the disk is full")
    finally:
        os.close(descriptor)


def _is_cut(path: Path) -> bool:
    """Does a file end in the middle of a line?"""
    with path.open("rb") as file:
        if file.seek(0, os.SEEK_END) == 0:
            return False
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"
