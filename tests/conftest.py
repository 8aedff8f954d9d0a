"""Loads hedgerow's own pytest plugin where a checkout is tested without being installed; no test asserts elapsed time. And what
tests of more than one folder need."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from importlib.metadata import entry_points
from typing import Any

import pytest
from hypothesis import settings

PLUGIN = "hedgerow.testing.plugin"

if all(entry.value != PLUGIN for entry in entry_points(group="pytest11")):
    pytest_plugins = [PLUGIN]

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture
async def speak(hedgerow_sandbox: Any, adapter: Any, sync: bool) -> AsyncIterator[Callable[..., Any]]:
    """Makes speakers (tests/sdk/adapters.py) of the test's `adapter`, synchronous or not, and closes them after it."""
    async with AsyncExitStack() as speakers:

        def make(**settings: Any) -> Any:
            speaker = adapter.speaker(hedgerow_sandbox, sync=sync, **settings)
            speakers.push_async_callback(speaker.shut)
            return speaker

        yield make
