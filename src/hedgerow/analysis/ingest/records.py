"""Records of a JSON log, made flat (`usage.input`) and staged by format with their lines."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from io import BufferedWriter
from itertools import chain
from pathlib import Path
from typing import cast

import orjson

from hedgerow.analysis.ingest.format import Format
from hedgerow.analysis.ingest.load import Staged
from hedgerow.analysis.ingest.problems import Place

__all__ = ["FlatRecord", "RecordStage", "enclosed", "flat"]

FlatRecord = dict[str, object]
DEEPEST = 6
# Under these names answers of APIs and exports hold their records.
ENVELOPES = ("data", "result", "results", "items", "logs", "events", "rows", "records", "Records", "observations")
LONGEST_VALUE = 4096  # no name, number or moment is longer; what is, is a prompt or an answer under a name we know
MOST_NAMES = 200


def flat(record: Mapping[str, object]) -> FlatRecord:
    """Nested fields by their path; lists stay lists."""
    found: FlatRecord = {}
    _flatten(record, "", found, 1)
    return found


def enclosed(record: Mapping[str, object]) -> list[object]:
    """The records inside an envelope (`{"data": […]}`); empty if this is none."""
    for name in ENVELOPES:
        inside = record.get(name)
        if isinstance(inside, list):
            return cast(list[object], inside)
        if isinstance(inside, dict):
            return [cast(object, inside)]
    return []


class RecordStage:
    """Flat records of one file, sorted by format into temporary files. Only the fields a format reads are kept, so no
    prompt or answer is ever copied."""

    def __init__(self, formats: Iterable[Format], folder: Path, shown: str) -> None:
        self._formats, self._folder, self._shown = tuple(formats), folder, shown
        self._vocabulary = frozenset(chain.from_iterable(chain.from_iterable(each.needs for each in self._formats)))
        self._known: dict[frozenset[str], Format | None] = {}
        self._open: dict[str, _Open] = {}
        self.names: dict[str, None] = {}

    def add(self, record: FlatRecord, line: int) -> bool:
        """Stages a record under its format; False if no format recognises it."""
        names = self._vocabulary.intersection(record)
        if names not in self._known:
            self._known[names] = next((each for each in self._formats if each.recognises(names)), None)
        self.names.update(dict.fromkeys(record if len(self.names) < MOST_NAMES else names))
        log = self._known[names]
        if log is None:
            return False
        stage = self._open.get(log.name) or self._begin(log)
        stage.add(record, line)
        return True

    @property
    def empty(self) -> bool:
        """Was no record of a format that is known?"""
        return not self._open

    def staged(self) -> Iterator[tuple[Format, Staged]]:
        """Everything added, by format."""
        for stage in self._open.values():
            yield stage.log, stage.finish(self._places)
            stage.path.unlink()

    def discard(self) -> None:
        """Nothing of it is wanted."""
        for stage in self._open.values():
            stage.out.close()
            stage.path.unlink()

    def _begin(self, log: Format) -> "_Open":
        path = self._folder / f"records-{len(self._open)}.jsonl"
        columns = {name: f"c{index}" for index, name in enumerate(sorted(log.reads()))}
        stage = self._open[log.name] = _Open(log, path, path.open("wb"), columns)
        return stage

    def _places(self, lines: list[int]) -> list[Place]:
        return [Place(self._shown, line) for line in lines]


@dataclass(slots=True)
class _Open:
    """One format's records of a file. columns: field → name in the temporary file, where upper and lower case are the same."""

    log: Format
    path: Path
    out: BufferedWriter
    columns: dict[str, str]

    def add(self, record: FlatRecord, line: int) -> None:
        kept: FlatRecord = {"line_": line}
        for name, column in self.columns.items():
            value = record.get(name)
            if isinstance(value, int | float) or (isinstance(value, str) and len(value) <= LONGEST_VALUE):
                kept[column] = value
        self.out.write(orjson.dumps(kept, option=orjson.OPT_APPEND_NEWLINE | orjson.OPT_NON_STR_KEYS))

    def finish(self, places: Callable[[list[int]], list[Place]]) -> Staged:
        self.out.close()
        columns = "".join(f", '{column}': 'varchar'" for column in self.columns.values())
        named = "".join(
            f', {column} as "{name.replace(chr(34), chr(34) * 2)}"' for name, column in self.columns.items()
        )
        path = str(self.path).replace("'", "''")
        rows = f"read_json('{path}', format = 'newline_delimited', columns = {{'line_': 'bigint'{columns}}})"
        return Staged(source=f"select line_{named} from {rows}", names=frozenset(self.columns), places=places)


def _flatten(record: Mapping[str, object], prefix: str, found: FlatRecord, depth: int) -> None:
    for name, value in record.items():
        if isinstance(value, dict) and depth < DEEPEST:
            _flatten(cast(dict[str, object], value), f"{prefix}{name}.", found, depth + 1)
        else:
            found[prefix + name] = value
