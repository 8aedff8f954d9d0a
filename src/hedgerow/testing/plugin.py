"""The pytest plugin: a sandbox for each test, and on request (`hedgerow_loopback_only = true`) no way off the machine."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial

import pytest

from hedgerow.testing.loopback import LoopbackGuard
from hedgerow.testing.process import QUICK_PROFILE, SandboxProcess

__all__ = ["hedgerow_sandbox", "hedgerow_sandbox_factory"]

LOOPBACK_ONLY = "hedgerow_loopback_only"
GUARD = pytest.StashKey[LoopbackGuard]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(LOOPBACK_ONLY, "refuse every connection that would leave the machine", type="bool", default=False)


def pytest_configure(config: pytest.Config) -> None:
    if config.getini(LOOPBACK_ONLY):
        guard = config.stash[GUARD] = LoopbackGuard()
        guard.install()


def pytest_unconfigure(config: pytest.Config) -> None:
    guard = config.stash.get(GUARD, None)
    if guard is not None:
        guard.remove()


@pytest.fixture(scope="session")
def _hedgerow_sandbox_process() -> Iterator[SandboxProcess]:  # pyright: ignore[reportUnusedFunction]
    with SandboxProcess(profile=QUICK_PROFILE) as process:
        yield process


@pytest.fixture
def hedgerow_sandbox(_hedgerow_sandbox_process: SandboxProcess) -> SandboxProcess:
    """A sandbox with fresh counters; the process is shared by the session. Answers take some 20 ms unless scripted."""
    _hedgerow_sandbox_process.reset()
    return _hedgerow_sandbox_process


@pytest.fixture
def hedgerow_sandbox_factory() -> Iterator[Callable[..., SandboxProcess]]:
    """Starts sandboxes with the options of SandboxProcess (quick answers unless a profile is given); ends them after the test."""
    with ExitStack() as stack:

        def start(**options: object) -> SandboxProcess:
            quick = partial(SandboxProcess, profile=QUICK_PROFILE)
            return stack.enter_context(quick(**options))  # pyright: ignore[reportArgumentType]

        yield start
