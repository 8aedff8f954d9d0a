"""Real latencies of hosted APIs, which live beside the checkout in ../shared/data."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.shared_bench import SHARED


@pytest.fixture
def shared_data() -> Callable[[str], Path]:
    """A file of ../shared/data by name; skips the test where it is not."""

    def found(name: str) -> Path:
        path = SHARED / "data" / name
        if not path.is_file():
            pytest.skip(f"no {name} in {SHARED / 'data'} (HEDGEROW_SHARED names another ../shared)")
        return path

    return found
