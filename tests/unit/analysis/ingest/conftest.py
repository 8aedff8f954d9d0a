"""Logs written by the tests, and what comes of them."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from hedgerow.analysis.calls import CALL_COLUMNS
from hedgerow.analysis.ingest.mapping import mapped_format
from hedgerow.analysis.ingest.problems import Problems
from hedgerow.analysis.ingest.read import read_logs
from hedgerow.analysis.trace import Trace, open_trace


@dataclass
class Ingested:
    """The calls, in their order, and what was wrong. Places and messages without the folder."""

    calls: list[dict[str, object]]
    problems: Problems
    messages: list[str]

    @property
    def rejected(self) -> dict[str, int]:
        return self.problems.rejected

    def only(self) -> dict[str, object]:
        """The one call there is, without what is not known."""
        (call,) = self.calls
        return {name: value for name, value in call.items() if value is not None}

    def column(self, name: str) -> list[object]:
        return [call[name] for call in self.calls]

    def says(self, *parts: str) -> bool:
        return any(all(part in message for part in parts) for message in self.messages)


Write = Callable[..., str]
Ingest = Callable[..., Ingested]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """A file with text, bytes, or objects as JSON lines; its path."""

    def written(name: str, content: object) -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, list):
            content = "".join(json.dumps(each) + "\n" for each in content)
        path.write_bytes(content if isinstance(content, bytes) else str(content).encode())
        return str(path)

    return written


@pytest.fixture(scope="session")
def trace() -> Iterator[Trace]:
    """A table of calls for all tests, to be emptied before use."""
    with open_trace() as opened:
        yield opened


@pytest.fixture
def ingest(tmp_path: Path, trace: Trace) -> Ingest:
    """What is read from some paths."""

    def ingested(*paths: str, maps: Sequence[str] = ()) -> Ingested:
        problems = Problems()
        trace.base.execute("truncate calls")
        taken = read_logs(paths, trace, problems, mapped=mapped_format(maps) if maps else None)
        rows = trace.base.execute("select * from calls").fetchall()
        calls = [dict(zip(CALL_COLUMNS, row, strict=True)) for row in rows]
        assert taken == len(calls)
        messages = [message.replace(f"{tmp_path}/", "") for message in problems.messages()]
        return Ingested(calls, problems, messages)

    return ingested
