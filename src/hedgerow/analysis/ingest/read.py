"""Finds out what each file is, by its content, and reads it; one broken file never stops the others."""

import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING

from hedgerow.analysis.ingest.format import Format
from hedgerow.analysis.ingest.formats import FORMATS, UNPACKERS
from hedgerow.analysis.ingest.json_files import BROKEN, opened, read_json
from hedgerow.analysis.ingest.load import Staged, load
from hedgerow.analysis.ingest.problems import Place, Problems
from hedgerow.analysis.ingest.records import RecordStage
from hedgerow.analysis.ingest.sqlite_files import read_sqlite
from hedgerow.analysis.ingest.tables import csv_head, reject_ragged, stage_csv, stage_parquet
from hedgerow.analysis.trace import Trace

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["read_logs"]

HEAD_BYTES = 65536
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
    for name in paths:
        if name == STDIN:
            spooled = folder / "stdin"
            with spooled.open("wb") as copy:
                shutil.copyfileobj(sys.stdin.buffer, copy)
            yield _Source(spooled, "stdin")
            continue
        found = [Path(name)] if Path(name).exists() else sorted(Path(each) for each in glob(name, recursive=True))
        if not found:
            problems.broken(Place(name), "no such file")
        for path in found:
            inside = sorted(each for each in path.rglob("*") if each.is_file()) if path.is_dir() else [path]
            yield from (_Source(each, str(each)) for each in inside)


class _Reading:
    """One file."""

    def __init__(self, trace: Trace, source: _Source, formats: Iterable[Format], problems: Problems) -> None:
        self.base: DuckDBPyConnection = trace.base
        self.folder, self.source, self.formats, self.problems = trace.folder, source, tuple(formats), problems

    def read(self) -> int:
        import duckdb

        try:
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
        except (OSError, EOFError, duckdb.Error) as error:
            return self.broken(str(error).splitlines()[0])

    def text(self, zipped: bool) -> int:
        head = _head(self.source.path, zipped).removeprefix(b"\xef\xbb\xbf")
        if head.lstrip()[:1] in (b"{", b"["):
            path, shown, problems = self.source.path, self.source.shown, self.problems
            return self.staged(lambda stage: read_json(path, shown, zipped, stage, UNPACKERS, problems))
        first_line = head.split(b"\n", 1)[0].rstrip(b"\r")
        try:
            delimiter, names = csv_head(first_line.decode())
        except UnicodeDecodeError:
            return self.broken("neither text nor Parquet nor SQLite")
        if b"\x00" in head or len(names) < 2 or len(set(names)) < len(names):
            return self.broken("neither JSON nor a CSV with a head line", line=1)
        return self.csv(delimiter, names, zipped)

    def csv(self, delimiter: str, names: tuple[str, ...], zipped: bool) -> int:
        path = self.unzipped() if zipped else self.source.path
        taken = self.table(stage_csv(path, self.source.shown, delimiter, names))
        reject_ragged(self.base, self.source.shown, self.problems)
        return taken

    def unzipped(self) -> Path:
        """A copy, as far as it can be read: DuckDB would take nothing of a file that breaks off."""
        copy, lines = self.folder / "unzipped", 0
        with opened(self.source.path, True) as file, copy.open("wb") as out:
            try:
                while chunk := file.read(1 << 20):
                    out.write(chunk)
                    lines += chunk.count(b"\n")
            except BROKEN as error:
                self.broken(f"the file breaks off here ({error}); what came before is used", line=lines + 1)
        return copy

    def table(self, staged: Staged) -> int:
        log = next((each for each in self.formats if each.recognises(staged.names)), None)
        if log is None:
            fields = ", ".join(sorted(staged.names)[:12])
            return self.broken(f"of no known format; say what its fields mean with --map (it has {fields})", line=1)
        return load(self.base, staged, log, self.problems)

    def staged(self, read: Callable[[RecordStage], None]) -> int:
        stage = RecordStage(self.formats, self.folder, self.source.shown)
        read(stage)
        return sum(load(self.base, staged, log, self.problems) for log, staged in stage.staged())

    def broken(self, why: str, line: int | None = None) -> int:
        self.problems.broken(Place(self.source.shown, line), why)
        return 0


def _head(path: Path, zipped: bool) -> bytes:
    """The first bytes, as far as they can be read."""
    head = b""
    with opened(path, zipped) as file:
        try:
            while len(head) < HEAD_BYTES and (more := file.read(512)):
                head += more
        except BROKEN:
            pass  # whoever reads on tells
    return head
