"""Gateways in front of the sandbox, made on request and closed after the test."""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.gateway.running import GatewayProcess, Running, config_of, gateway_in_loop

from hedgerow.testing.process import SandboxProcess


@pytest.fixture
async def start(hedgerow_sandbox: SandboxProcess, tmp_path: Path) -> AsyncIterator[Callable[..., Any]]:
    """Starts gateways in the test's loop: config_of's policy and tables."""
    async with AsyncExitStack() as running:

        async def make(policy: Any = None, *, clock: Any = None, **tables: Any) -> Running:
            config = config_of(hedgerow_sandbox, policy, **tables)
            return await running.enter_async_context(gateway_in_loop(tmp_path, config, clock=clock))

        yield make


@pytest.fixture
def launch(hedgerow_sandbox: SandboxProcess, tmp_path: Path) -> Iterator[Callable[..., GatewayProcess]]:
    """Starts gateways as processes of their own: config_of's policy and tables."""
    with ExitStack() as running:

        def make(policy: Any = None, options: Sequence[str] = (), **tables: Any) -> GatewayProcess:
            config = config_of(hedgerow_sandbox, policy, **tables)
            return running.enter_context(GatewayProcess(tmp_path, config, options))

        yield make
