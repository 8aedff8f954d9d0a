"""JSON logs: one record per line, a list of records, or one document. Each record is made flat (`usage.input`) and staged with its line."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from io import BufferedWriter
from pathlib import Path
from typing import TYPE_CHECKING, cast

import orjson

from hedgerow.analysis.ingest.format import Format
from hedgerow.analysis.ingest.load import Staged
from hedgerow.analysis.ingest.problems import Place

if TYPE_CHECKING:
    pass

__all__ = ["FlatRecord", "RecordStage", "flat", "records_of_document"]

FlatRecord = dict[str, object]
DEEPEST = 6


def flat(record: Mapping[str, object]) -> FlatRecord:
    """Nested fields by their path; lists stay lists."""
    found: FlatRecord = {}
    _flatten(record, "", found, 1)
    return found


def _flatten(record: Mapping[str, object], prefix: str, found: FlatRecord, depth: int) -> None:
    for name, value in record.items():
        if isinstance(value, dict) and depth < DEEPEST:
            _flatten(cast(dict[str, object], value), f"{prefix}{name}.", found, depth + 1)
        else:
            found[prefix + name] = value


def records_of_document(document: object) -> Iterable[object]:
    """A list's elements, or the document itself."""
    return cast(list[object], document) if isinstance(document, list) else (document,)


@dataclass(slots=True)
class _Open:
    log: Format
    path: Path
    out: BufferedWriter
    reads: frozenset[str]


class RecordStage:
    """Flat records of one file, sorted by format into temporary files. Only the fields a format reads are kept, so no
    prompt or answer is ever copied."""

    def __init__(self, formats: Iterable[Format], folder: Path, shown: str) -> None:
        self._formats, self._folder, self._shown = tuple(formats), folder, shown
        self._vocabulary = frozenset[str]().union(*(frozenset[str]().union(*each.needs) for each in self._formats))
        self._known: dict[frozenset[str], Format | None] = {}
        self._open: dict[str, _Open] = {}

    def add(self, record: FlatRecord, line: int) -> bool:
        """Stages a record under its format; False if no format recognises it."""
        names = self._vocabulary.intersection(record)
        if names not in self._known:
            self._known[names] = next((each for each in self._formats if each.recognises(names)), None)
        log = self._known[names]
        if log is None:
            return False
        stage = self._open.get(log.name) or self._begin(log)
        kept: FlatRecord = {name: record[name] for name in stage.reads if record.get(name) is not None}
        kept["line_"] = line
        stage.out.write(orjson.dumps(kept, option=orjson.OPT_APPEND_NEWLINE | orjson.OPT_NON_STR_KEYS))
        return True

    def staged(self) -> Iterator[tuple[Format, Staged]]:
        """Everything added, by format."""
        for stage in self._open.values():
            stage.out.close()
            columns = "".join(f", '{name}': 'varchar'" for name in sorted(stage.reads))
            source = f"select * from read_json('{stage.path}', format = 'newline_delimited', columns = {{'line_': 'bigint'{columns}}})"
            yield stage.log, Staged(source=source, names=stage.reads, place=lambda line: Place(self._shown, line))
            stage.path.unlink()

    def _begin(self, log: Format) -> _Open:
        path = self._folder / f"records-{len(self._open)}.jsonl"
        stage = self._open[log.name] = _Open(log, path, path.open("wb"), log.reads())
        return stage
