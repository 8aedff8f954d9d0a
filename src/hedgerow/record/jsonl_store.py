"""Events in a JSONL file, one request per line with its attempts: for shipping elsewhere, and for `tail -f`."""

import os
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


class JsonlStore(BatchedStore):
    """Appends to a file, in batches, from a thread of its own. Each batch is one write of whole lines, so that several processes
    may append to one file and a process that is killed leaves at most its last line cut. Iterating reads whole lines only."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        try:
            with self.path.open("ab"):
                pass
        except OSError as error:
            raise SettingError("events", str(path), f"a file that can be written ({error})") from None
        self._write_with(BatchWriter(f"events in {self.path.name}", partial(_write, self.path), lambda: None))

    def __iter__(self) -> Iterator[Event]:
        self.flush()
        with self.path.open("rb") as file:
            for line in file:
                if line.endswith(b"\n") and line.strip():
                    record = cast(dict[str, Any], orjson.loads(line))
                    yield event_of_rows(record, record.get("attempts", []))


def _write(path: Path, batch: Sequence[Event]) -> None:
    lines = b"".join(orjson.dumps(event.as_dict(), option=orjson.OPT_APPEND_NEWLINE) for event in batch)
    append_lines(path, lines)


def append_lines(path: Path, lines: bytes, mode: int = 0o666) -> None:
    """One write of whole lines at the end of a file, or none of them. mode: of a new file. Raises OSError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, mode)
    try:
        start = os.fstat(descriptor).st_size
        if os.write(descriptor, lines) < len(lines):
            os.ftruncate(descriptor, start)  # a disk that is full takes a part: none of it is better
            raise OSError("the disk is full")
    finally:
        os.close(descriptor)
