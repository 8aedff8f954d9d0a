"""Workloads and the independent reference of the rule, which live beside the checkout in ../shared/bench/policy."""

import importlib
import os
import sys
from pathlib import Path
from types import ModuleType

import pytest

SHARED = Path(os.environ.get("HEDGEROW_SHARED", Path(__file__).parents[2] / "shared"))


def shared_module(name: str) -> ModuleType:
    """A module of ../shared/bench/policy; skips the test where that folder is not."""
    folder = SHARED / "bench" / "policy"
    if not (folder / f"{name}.py").is_file():
        pytest.skip(f"no {name}.py in {folder} (HEDGEROW_SHARED names another ../shared)")
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    return importlib.import_module(name)
