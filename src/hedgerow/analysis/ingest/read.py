"""Finds out what each file is, by its content, and reads it; one broken file never stops the others."""

import csv
import shutil
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from glob import glob
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from hedgerow.analysis.ingest.format import Format
from hedgerow.analysis.ingest.formats import FORMATS, UNPACKERS
from hedgerow.analysis.ingest.gzip_files import BROKEN, first_words, opened
from hedgerow.analysis.ingest.json_files import read_json
from hedgerow.analysis.ingest.load import Staged, load
from hedgerow.analysis.ingest.problems import Place, Problems
from hedgerow.analysis.ingest.records import RecordStage
from hedgerow.analysis.ingest.sqlite_files import read_sqlite
from hedgerow.analysis.ingest.tables import CsvHead, csv_head, forget_ragged, reject_ragged, stage_csv, stage_parquet
from hedgerow.analysis.trace import Trace

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["read_logs"]

HEAD_BYTES, LONGEST_HEAD_BYTES = 65536, 1024 * 1024
UNZIP_BYTES = 1024 * 1024
MOST_NAMES = 12
STDIN = "-"
MAGIC = {
    b"PAR1": "parquet",
    b"SQLite format 3\x00": "sqlite",
    b"\x1f\x8b": "gzip",
    b"PK\x03\x04": "zip",
    b"\x28\xb5\x2f\xfd": "zstd",
}


@dataclass(frozen=True, slots=True)
class _Source:
    """A file to read, and what people call it."""

    path: Path
    shown: str


def read_logs(paths: Sequence[str], trace: Trace, problems: Problems, *, mapped: Format | None = None) -> int:
    """Reads logs into the trace; how many calls there were. paths: files, folders, globs (`logs/*.gz`), `-` for stdin.

    mapped: what the fields mean, instead of what would be found out (`--map`). What cannot be read, or makes no sense, is
    told to `problems`, with file and line.
    """
    formats = FORMATS if mapped is None else (mapped,)
    return sum(_Reading(trace, source, formats, problems).read() for source in _sources(paths, trace.folder, problems))


def _sources(paths: Sequence[str], folder: Path, problems: Problems) -> Iterator[_Source]:
    """Every file once, in the order in which they were named."""
    seen: set[Path] = set()
    for source in chain.from_iterable(_named(name, folder, problems) for name in paths):
        place = source.path.resolve()
        if place in seen:
            problems.caution(f"{source.shown} was given twice and is read once")
        else:
            seen.add(place)
            yield source


def _named(name: str, folder: Path, problems: Problems) -> Iterator[_Source]:
    """What a path, folder, glob or `-` stands for."""
    if name == STDIN:
        yield _Source(_spooled(sys.stdin.buffer, folder / "stdin"), "stdin")
        return
    found = _found(name)
    if not found:
        problems.broken(Place(name), "no such file")
    for path in found:
        inside = sorted(_files(path)) if path.is_dir() else [path]
        if not inside:
            problems.broken(Place(str(path)), "no files in this folder")
        for each in inside:
            try:
                yield _Source(each if each.is_file() else _pipe(each, folder), str(each))
            except OSError as error:
                problems.broken(Place(str(each)), first_words(error))


def _found(name: str) -> list[Path]:
    try:
        return [Path(name)] if Path(name).exists() else sorted(Path(each) for each in glob(name, recursive=True))
    except (OSError, ValueError):  # too long, or a NUL in it: there is no such file
        return []


def _pipe(path: Path, folder: Path) -> Path:
    """A pipe can be read only once, and we look first what it is: a copy."""
    with path.open("rb") as pipe:
        return _spooled(pipe, folder / f"pipe-{path.name}")


def _files(folder: Path) -> Iterator[Path]:
    """Files below a folder; hidden ones are nobody's logs."""
    for each in folder.rglob("*"):
        if each.is_file() and not any(part.startswith(".") for part in each.relative_to(folder).parts):
            yield each


def _spooled(stream: BinaryIO, copy: Path) -> Path:
    with copy.open("wb") as out:
        shutil.copyfileobj(stream, out)
    return copy


class _Reading:
    """One file."""

    def __init__(self, trace: Trace, source: _Source, formats: Iterable[Format], problems: Problems) -> None:
        self.base: DuckDBPyConnection = trace.base
        self.folder, self.source, self.formats, self.problems = trace.folder, source, tuple(formats), problems
        self.mapped = next((each for each in self.formats if each.exacting), None)

    def read(self) -> int:
        import duckdb

        told = self.problems.told()
        try:
            taken = self.content()
            return taken if taken or self.problems.told() > told else self.broken("there are no rows in it")
        except BROKEN as error:
            return self.broken(first_words(error))
        except duckdb.Error as error:
            return self.broken(f"cannot be read ({first_words(error)})")

    def content(self) -> int:
        with self.source.path.open("rb") as file:
            start = file.read(16)
        kind = next((kind for magic, kind in MAGIC.items() if start.startswith(magic)), "text")
        if not start:
            return self.broken("the file is empty")
        if kind in ("zip", "zstd"):
            return self.broken(f"{kind} files are not read: unpack it first, or use gzip")
        if kind == "parquet":
            return self.table(stage_parquet(self.base, self.source.path, self.source.shown))
        if kind == "sqlite":
            return self.staged(lambda stage: read_sqlite(self.source.path, self.source.shown, stage, self.problems))
        return self.text(zipped=kind == "gzip")

    def text(self, zipped: bool) -> int:
        head = _head(self.source.path, zipped).removeprefix(b"\xef\xbb\xbf")
        if not head.strip():
            return self.broken("the file is empty" if not zipped else "nothing could be unzipped")
        if head.lstrip()[:1] in (b"{", b"["):
            path, shown, problems = self.source.path, self.source.shown, self.problems
            unpackers = () if self.mapped else UNPACKERS
            return self.staged(lambda stage: read_json(path, shown, zipped, stage, unpackers, problems), mappable=True)
        first_line = head.split(b"\n", 1)[0].split(b"\r", 1)[0]
        try:
            found = csv_head(first_line.decode())
        except (UnicodeDecodeError, csv.Error):
            return self.broken("neither text nor Parquet nor SQLite", line=1)
        if b"\x00" in first_line or len(found.names) < 2:
            return self.broken("neither JSON nor a CSV with a head line", line=1)
        return self.csv(found, zipped)

    def csv(self, head: CsvHead, zipped: bool) -> int:
        import duckdb

        path, shown = self.unzipped() if zipped else self.source.path, self.source.shown
        forget_ragged(self.base)
        try:
            taken = self.table(stage_csv(self.base, path, shown, head), head.twice)
        except duckdb.InvalidInputException:  # it mixes line ends, say; what it is, a second failure tells
            forget_ragged(self.base)
            taken = self.table(stage_csv(self.base, path, shown, head, strict=False), head.twice)
            self.problems.caution(f"{shown}: no regular CSV, rows with too many fields are taken without those")
        reject_ragged(self.base, path, shown, self.problems)
        return taken

    def unzipped(self) -> Path:
        """A copy, as far as it can be read and the last line is whole: DuckDB takes nothing of a file that breaks off."""
        copy, lines, whole = self.folder / "unzipped", 0, 0
        with opened(self.source.path, True) as file, copy.open("wb") as out:
            try:
                while chunk := file.read1(UNZIP_BYTES):
                    lines += chunk.count(b"\n")
                    whole = out.tell() + chunk.rfind(b"\n") + 1 if b"\n" in chunk else whole
                    out.write(chunk)
            except BROKEN as error:
                self.broken(f"the file breaks off here ({first_words(error)}); what came before is used", lines + 1)
                out.truncate(whole)
        return copy

    def table(self, staged: Staged, twice: frozenset[str] = frozenset()) -> int:
        log = self.mapped or next((each for each in self.formats if each.recognises(staged.names)), None)
        if log is None:
            return self.unknown(staged.names)
        if lacking := self.lacking(staged.names):
            return self.broken(lacking, line=1)
        if unclear := sorted(log.reads() & twice):
            return self.broken(f"two columns are called {', '.join(unclear)}: which one counts is not clear", line=1)
        return load(self.base, staged, log, self.problems)

    def staged(self, read: Callable[[RecordStage], None], *, mappable: bool = False) -> int:
        stage = RecordStage(self.formats, self.folder, self.source.shown)
        read(stage)
        if stage.names and (lacking := self.lacking(stage.names)):
            stage.discard()
            return self.broken(lacking)
        if mappable and stage.names and stage.empty:
            return self.unknown(stage.names)
        return sum(load(self.base, staged, log, self.problems) for log, staged in stage.staged())

    def unknown(self, names: Collection[str]) -> int:
        """No format is recognised by these fields."""
        fields = ", ".join(sorted(names)[:MOST_NAMES])
        return self.broken(f"of no known format; say what its fields mean with --map (it has {fields})", line=1)

    def lacking(self, names: Collection[str]) -> str | None:
        """What `--map` names and the file does not have."""
        missing = sorted(self.mapped.reads().difference(names)) if self.mapped else []
        if not missing:
            return None
        return f"no field {', '.join(missing)}, which --map names (it has {', '.join(sorted(names)[:MOST_NAMES])})"

    def broken(self, why: str, line: int | None = None) -> int:
        self.problems.broken(Place(self.source.shown, line), why)
        return 0


def _head(path: Path, zipped: bool) -> bytes:
    """The first bytes, as far as they can be read; a head line of any length up to the longest row."""
    head = b""
    with opened(path, zipped) as file:
        try:
            while len(head) < HEAD_BYTES and (more := file.read1(HEAD_BYTES)):
                head += more
            if b"\n" not in head:
                head += file.readline(LONGEST_HEAD_BYTES)
        except BROKEN:
            pass  # whoever reads on tells
    return head
