"""Reads a JSON file record by record: one document a line, or a document over many lines, of which a list may be larger
than memory. Every record comes with its line."""

import json
import re
from codecs import getincrementaldecoder
from collections.abc import Iterable, Iterator, Mapping
from io import BufferedReader
from pathlib import Path
from typing import cast

import orjson

from hedgerow.analysis.ingest.gzip_files import BROKEN, first_words, opened
from hedgerow.analysis.ingest.problems import Place, Problems
from hedgerow.analysis.ingest.records import RecordStage, enclosed, flat
from hedgerow.analysis.ingest.unpack import NotDetailed, Unfold, Unpacker

__all__ = ["read_json"]

LONGEST_LINE_BYTES = 64 * 1024 * 1024
CHUNK_BYTES = 1024 * 1024
LONGEST_DOCUMENT = 128 * 1024 * 1024
NOT_JSON = "not JSON"
BLANK, BETWEEN = re.compile(r"[\s\ufeff]*"), re.compile(r"[\s,]*")


def read_json(
    path: Path, shown: str, zipped: bool, stage: RecordStage, unpackers: Iterable[Unpacker], problems: Problems
) -> None:
    """Stages every record; rows that are no JSON or of no known format are rejected by line."""
    reader = _Reader(shown, stage, unpackers, problems)
    with opened(path, zipped) as file:
        by_line = _is_by_line(file)
    with opened(path, zipped) as file:
        if by_line:
            reader.lines(file)
        else:
            reader.documents(file)


def _is_by_line(file: BufferedReader) -> bool:
    """Whether each line is a document of its own: the first one is, or it breaks and the next begins anew."""
    first = b""
    try:
        while not (first := file.readline(LONGEST_LINE_BYTES).removeprefix(b"\xef\xbb\xbf").strip()):
            pass
        return _document(first) is not None or (
            first.startswith(b"{") and len(first) > 1 and file.readline(CHUNK_BYTES).startswith(b"{")
        )
    except BROKEN:
        return first.startswith(b"{")  # whoever reads on tells


def _document(line: bytes) -> object:
    """What a line holds; None if that is no JSON. NaN and Infinity, which Python writes, are let through as null."""
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        pass
    try:
        return _writable(json.loads(line, parse_constant=_null))
    except (ValueError, RecursionError):
        return None


def _null(_name: str) -> None:
    return None


def _writable(document: object) -> object:
    """The document, or None if it holds what cannot be written again (half a surrogate pair)."""
    try:
        orjson.dumps(document)
    except (TypeError, ValueError):
        return None
    return document


class _Reader:
    def __init__(self, shown: str, stage: RecordStage, unpackers: Iterable[Unpacker], problems: Problems) -> None:
        self.shown, self.stage, self.problems = shown, stage, problems
        self.unpackers: list[tuple[Unpacker, Unfold]] = [(each, each.begin()) for each in unpackers]

    def lines(self, file: BufferedReader) -> None:
        number = 0
        try:
            while line := file.readline(LONGEST_LINE_BYTES):
                number += 1
                if len(line) == LONGEST_LINE_BYTES and not line.endswith(b"\n"):
                    self.reject(f"a line of more than {LONGEST_LINE_BYTES // 1024 // 1024} MB", number)
                    while (line := file.readline(LONGEST_LINE_BYTES)) and not line.endswith(b"\n"):
                        pass
                    continue
                self.line(line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line, number)
        except BROKEN as error:
            self.breaks_off(error, number + 1)

    def line(self, line: bytes, number: int) -> None:
        if not line.strip():
            return
        document = _document(line)
        if document is None:
            self.reject(NOT_JSON, number)
        else:
            self.records(document, number)

    def documents(self, file: BufferedReader) -> None:
        """One after the other, over any number of lines; the elements of a list one by one."""
        text = _Text(file)
        try:
            for document, number in text.documents():
                self.records(document, number)
        except BROKEN as error:
            self.breaks_off(error, text.line)
        except ValueError as error:
            self.problems.broken(Place(self.shown, text.line), f"{NOT_JSON} from here on ({first_words(error)})")

    def records(self, document: object, number: int) -> None:
        for record in cast(list[object], document) if isinstance(document, list) else (document,):
            if isinstance(record, dict):
                self.record(cast(dict[str, object], record), number)
            else:
                self.reject("not a record", number)

    def record(self, record: Mapping[str, object], number: int, *, inner: bool = False) -> None:
        unfold = next((unfold for each, unfold in self.unpackers if each.knows(record)), None)
        if unfold is not None:
            self.unfolded(unfold, record, number)
        elif not self.stage.add(flat(record), number):
            inside = [] if inner else enclosed(record)
            for each in inside:
                if isinstance(each, dict):
                    self.record(cast(dict[str, object], each), number, inner=True)
            if not inside:
                self.reject("of no known format", number)

    def unfolded(self, unfold: Unfold, record: Mapping[str, object], number: int) -> None:
        try:
            for each in unfold(record):
                if not self.stage.add(each, number):
                    self.reject("of no known format", number)
        except NotDetailed as error:
            self.problems.broken(Place(self.shown, number), str(error))

    def breaks_off(self, error: Exception, number: int) -> None:
        why = f"the file breaks off here ({first_words(error)}); what came before is used"
        self.problems.broken(Place(self.shown, number), why)

    def reject(self, reason: str, number: int) -> None:
        self.problems.reject(reason, 1, [Place(self.shown, number)])


class _Text:
    """A file as text of which only a window is in memory; `line` is that of the next character."""

    def __init__(self, file: BufferedReader) -> None:
        self.file, self.line = file, 1
        self.window, self.at = "", 0
        self.to_text = getincrementaldecoder("utf-8")(errors="replace")
        self.decoder = json.JSONDecoder(parse_constant=_null)

    def documents(self) -> Iterator[tuple[object, int]]:
        """Documents with the lines they begin on; raises ValueError at what is none, and what the file raises."""
        in_list = False
        while self.skip(BETWEEN if in_list else BLANK):
            mark = self.window[self.at]
            if mark == "[" and not in_list:
                in_list, self.at = True, self.at + 1
            elif mark == "]" and in_list:
                in_list, self.at = False, self.at + 1
            else:
                yield self.document()
        if in_list:
            raise ValueError("the list is not closed")

    def skip(self, blank: re.Pattern[str]) -> bool:
        """To the next character that is not blank; False if there is none."""
        while True:
            found = blank.match(self.window, self.at)
            self.go_to(found.end() if found else self.at)
            if self.at < len(self.window):
                return True
            if not self.more():
                return False

    def document(self) -> tuple[object, int]:
        line = self.line
        while True:
            try:
                document, end = self.decoder.raw_decode(self.window, self.at)
                if end < len(self.window) or not self.more():
                    break  # a number may go on in what has not been read yet
            except RecursionError:
                raise ValueError("nested too deeply") from None
            except ValueError:
                if len(self.window) > LONGEST_DOCUMENT or not self.more():
                    raise
        self.go_to(end)
        return _writable(document), line

    def go_to(self, at: int) -> None:
        self.line += self.window.count("\n", self.at, at)
        self.at = at

    def more(self) -> bool:
        """Reads on, as much again as is waiting, so that a large document is tried no more often than it doubles."""
        waiting = self.window[self.at :]
        chunk = self.file.read1(max(CHUNK_BYTES, len(waiting)))
        self.window, self.at = waiting + self.to_text.decode(chunk, final=not chunk), 0
        return bool(chunk)
