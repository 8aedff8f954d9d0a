"""Loads hedgerow's own pytest plugin where a checkout is tested without being installed; no test asserts elapsed time. And what
tests of more than one folder need."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from hedgerow.testing.process import SandboxProcess
from tests.gateway.running import Running, config_of, gateway_in_loop
from tests.provider_time import Watched, provider_time

PLUGIN = "hedgerow.testing.plugin"

if all(entry.value != PLUGIN for entry in entry_points(group="pytest11")):
    pytest_plugins = [PLUGIN]

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes long begins first: at the end one worker would be busy with it, and the others idle."""
    items.sort(key=lambda item: item.get_closest_marker("timeout") is None)


@pytest.fixture(autouse=True)
def watched(monkeypatch: pytest.MonkeyPatch) -> Iterator[Watched]:
    """The hedgers of every test wait for the test's sandboxes (tests/provider_time.py)."""
    with provider_time(monkeypatch) as seen:
        yield seen


@pytest.fixture
def hedgerow_sandbox(hedgerow_sandbox: SandboxProcess, watched: Watched) -> SandboxProcess:
    """The plugin's, watched."""
    watched.sandboxes.append(hedgerow_sandbox)
    return hedgerow_sandbox


@pytest.fixture
def hedgerow_sandbox_factory(
    hedgerow_sandbox_factory: Callable[..., SandboxProcess], watched: Watched
) -> Callable[..., SandboxProcess]:
    """The plugin's; what it starts is watched."""

    def start(**options: object) -> SandboxProcess:
        started = hedgerow_sandbox_factory(**options)
        watched.sandboxes.append(started)
        return started

    return start


@pytest.fixture
async def speak(hedgerow_sandbox: Any, adapter: Any, sync: bool) -> AsyncIterator[Callable[..., Any]]:
    """Makes speakers (tests/sdk/adapters.py) of the test's `adapter`, synchronous or not, and closes them after it."""
    async with AsyncExitStack() as speakers:

        def make(**settings: Any) -> Any:
            speaker = adapter.speaker(hedgerow_sandbox, sync=sync, **settings)
            speakers.push_async_callback(speaker.shut)
            return speaker

        yield make


@pytest.fixture
async def start(hedgerow_sandbox: Any, tmp_path: Path) -> AsyncIterator[Callable[..., Any]]:
    """Starts gateways in the test's loop: config_of's policy and tables."""
    async with AsyncExitStack() as running:

        async def make(policy: Any = None, *, clock: Any = None, **tables: Any) -> Running:
            config = config_of(hedgerow_sandbox, policy, **tables)
            return await running.enter_async_context(gateway_in_loop(tmp_path, config, clock=clock))

        yield make
