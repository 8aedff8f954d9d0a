"""Attempts written by hand, and the independent reference of the rule where it is at hand."""

import importlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from hedgerow.analysis.attempts import Row, Sent

SHARED = Path(os.environ.get("HEDGEROW_SHARED", Path(__file__).parents[4] / "shared"))

Send = Callable[..., Sent]


@pytest.fixture
def shared_module(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], ModuleType]]:
    """A module of ../shared/bench/policy by its name; skips where that folder is not."""
    folder = SHARED / "bench" / "policy"

    def module(name: str) -> ModuleType:
        if not (folder / f"{name}.py").is_file():
            pytest.skip(f"no {name}.py in {folder} (HEDGEROW_SHARED names another ../shared)")
        monkeypatch.syspath_prepend(str(folder))
        return importlib.import_module(name)

    return module


@pytest.fixture
def send() -> Send:
    """A request at a time, with one attempt for each dict of what differs from an ordinary one (0.5 s, 50 · 0.01 s)."""

    def sent(start_s: float, *attempts: dict[str, float], input_tokens: int = 100) -> Sent:
        usual: dict[str, float] = {
            "ttft_s": 0.5,
            "token_s": 0.01,
            "output_tokens": 50,
            "stall_after": 1,
            "stall_s": 0.0,
            "status": 200,
        }
        rows = tuple(Row(**{**usual, **attempt}) for attempt in attempts or ({}, {}, {}))  # type: ignore[arg-type]
        return Sent(start_s, input_tokens, 1.0, 4.0, None, None, rows)

    return sent
