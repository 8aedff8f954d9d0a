"""Reads a JSON file record by record: lines where each line is a record, else the whole document at once."""

import gzip
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, cast

import orjson

from hedgerow.analysis.ingest.problems import Place, Problems
from hedgerow.analysis.ingest.records import RecordStage, flat, records_of_document
from hedgerow.analysis.ingest.unpack import NotDetailed, Unpacker

__all__ = ["opened", "read_json"]

# What a stream of bytes may fail with on its way: a cut gzip, a broken one, a disk.
BROKEN = (EOFError, zlib.error, OSError)


def opened(path: Path, zipped: bool) -> BinaryIO:
    """The file's bytes, unzipped."""
    return cast(BinaryIO, gzip.open(path)) if zipped else path.open("rb")


def read_json(
    path: Path, shown: str, zipped: bool, stage: RecordStage, unpackers: Iterable[Unpacker], problems: Problems
) -> None:
    """Stages every record; rows that are no JSON or of no known format are rejected by line."""
    reader = _Reader(shown, stage, tuple(unpackers), problems)
    with opened(path, zipped) as file:
        lines = _lines(file, shown, problems)
        number, first = next(((number, line) for number, line in lines if line.strip()), (1, b""))
        try:
            document = orjson.loads(first)
        except orjson.JSONDecodeError:
            reader.document(first + b"".join(line for _, line in lines))
            return
        reader.records(document, number)
        for number, line in lines:
            reader.line(line, number)


def _lines(file: BinaryIO, shown: str, problems: Problems) -> Iterator[tuple[int, bytes]]:
    """Numbered lines, as far as they can be read."""
    number = 0
    try:
        for number, line in enumerate(file, 1):
            yield number, line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
    except BROKEN as error:
        problems.broken(Place(shown, number + 1), f"the file breaks off here ({error}); what came before is used")


class _Reader:
    def __init__(self, shown: str, stage: RecordStage, unpackers: tuple[Unpacker, ...], problems: Problems) -> None:
        self.shown, self.stage, self.unpackers, self.problems = shown, stage, unpackers, problems

    def line(self, line: bytes, number: int) -> None:
        if not line.strip():
            return
        try:
            document = orjson.loads(line)
        except orjson.JSONDecodeError:
            self.reject("not JSON", number)
        else:
            self.records(document, number)

    def document(self, content: bytes) -> None:
        try:
            document = orjson.loads(content)
        except orjson.JSONDecodeError as error:
            # A log of lines whose first line is broken is still a log of lines.
            if content.count(b"\n") > 1 and error.lineno <= 2 and content.lstrip()[:1] == b"{":
                for number, line in enumerate(content.splitlines(), 1):
                    self.line(line, number)
            else:
                self.problems.broken(Place(self.shown, error.lineno), f"not JSON ({error.msg})")
            return
        for number, record in enumerate(records_of_document(document), 1):
            self.records(record, number)

    def records(self, document: object, number: int) -> None:
        for record in records_of_document(document):
            if isinstance(record, dict):
                self.record(cast(dict[str, object], record), number)
            else:
                self.reject("not a record", number)

    def record(self, record: Mapping[str, object], number: int) -> None:
        unpacker = next((each for each in self.unpackers if all(name in record for name in each.holds)), None)
        try:
            found = [flat(record)] if unpacker is None else list(unpacker.unfold(record))
        except NotDetailed as error:
            self.problems.broken(Place(self.shown, number), str(error))
            return
        for each in found:
            if not self.stage.add(each, number):
                self.reject("of no known format", number)

    def reject(self, reason: str, number: int) -> None:
        self.problems.reject(reason, 1, [Place(self.shown, number)])
