"""Gateways in front of the sandbox as processes, made on request and closed after the test; `start` makes them in the loop."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.gateway.running import GatewayProcess, config_of

from hedgerow.testing.process import SandboxProcess


@pytest.fixture
def launch(hedgerow_sandbox: SandboxProcess, tmp_path: Path) -> Iterator[Callable[..., GatewayProcess]]:
    """Starts gateways as processes of their own: config_of's policy and tables."""
    with ExitStack() as running:

        def make(policy: Any = None, options: Sequence[str] = (), **tables: Any) -> GatewayProcess:
            config = config_of(hedgerow_sandbox, policy, **tables)
            return running.enter_context(GatewayProcess(tmp_path, config, options))

        yield make
