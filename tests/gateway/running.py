"""Gateways for tests: in the test's own loop, where its hedgers can be looked at, or as the process a user would start."""

import asyncio
import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any

import httpx2
import tomli_w
from tests.provider_time import ProviderClock
from tests.sdk.racing import PATIENCE_S

import hedgerow
from hedgerow.clock import Clock
from hedgerow.engine import Hedger
from hedgerow.gateway.app import Gateway
from hedgerow.gateway.config import load
from hedgerow.gateway.house import House, Worker
from hedgerow.gateway.serving import bound_socket, server_of
from hedgerow.testing.process import SandboxProcess

__all__ = ["GatewayProcess", "Running", "config_of", "gateway_in_loop"]

SOURCE = str(Path(hedgerow.__file__).parents[1])
SOON: Mapping[str, Any] = {"trigger": "first_token", "delay": 0.05, "budget": "off", "control_share": 0.0}


def config_of(sandbox: SandboxProcess, policy: Mapping[str, Any] | None = None, **tables: Any) -> dict[str, Any]:
    """A file's tables: the sandbox as OpenAI, Anthropic and Gemini under one policy that backs calls up after 50 ms. tables: laid
    over."""
    return {
        "gateway": {"listen": "127.0.0.1:0"},
        "target": [
            {"name": "openai", "dialect": "openai", "base_url": f"{sandbox.url}/v1", "api_key": "their-key"},
            {"name": "anthropic", "dialect": "anthropic", "base_url": sandbox.url, "api_key": "their-key"},
            {"name": "gemini", "dialect": "gemini", "base_url": sandbox.url, "api_key": "their-key"},
        ],
        "route": [
            {"path": "/v1/messages*", "targets": ["anthropic"], "policy": "soon"},
            {"path": "/v1beta/models/*", "targets": ["gemini"], "policy": "soon"},
            {"path": "/v1/models/*", "targets": ["gemini"], "policy": "soon"},  # Google's SDK asks there
            {"path": "/v1/*", "targets": ["openai"], "policy": "soon"},
        ],
        "policy": {"soon": {**SOON, **(policy or {})}},
        **tables,
    }


class Running:
    """A gateway in this loop, which takes connections at once and answers them as soon as the loop gets to it."""

    def __init__(self, folder: Path, config: Mapping[str, Any], *, clock: Clock | None = None) -> None:
        path = folder / "hedgerow.toml"
        path.write_text(tomli_w.dumps(config))
        read = load(path)
        self.gateway = Gateway(read, Worker(clock=clock or ProviderClock()))
        listening, self._ready = bound_socket(read.host, read.port), asyncio.Event()
        self.url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        self.server = server_of(self.gateway, self._ready.set)
        self.server.capture_signals = nullcontext  # type: ignore[method-assign,assignment]  # the test keeps its own
        self._serving = asyncio.get_running_loop().create_task(self.server.serve(sockets=[listening]))

    async def started(self) -> None:
        """Wait until it answers."""
        waiting = asyncio.ensure_future(self._ready.wait())
        await asyncio.wait([waiting, self._serving], timeout=PATIENCE_S, return_when=asyncio.FIRST_COMPLETED)
        assert self._ready.is_set(), "the gateway did not start"

    async def close(self) -> None:
        """End it. Idempotent."""
        self.server.should_exit = True
        await self._serving

    @property
    def house(self) -> House:
        assert self.gateway.house is not None
        return self.gateway.house

    @property
    def hedger(self) -> Hedger:
        """That of the only policy."""
        (hedger,) = self.house.hedgers.values()
        return hedger


@asynccontextmanager
async def gateway_in_loop(
    folder: Path, config: Mapping[str, Any], *, clock: Clock | None = None
) -> AsyncIterator[Running]:
    """Runs until the block ends."""
    running = Running(folder, config, clock=clock)
    try:
        await running.started()
        yield running
    finally:
        await running.close()


class GatewayProcess:
    """`hedgerow serve FILE`, as a context manager that ends it; `log` is what it has said."""

    def __init__(self, folder: Path, config: Mapping[str, Any] | str, options: Sequence[str] = ()) -> None:
        self.file = folder / "hedgerow.toml"
        self.file.write_text(config if isinstance(config, str) else tomli_w.dumps(config))
        self.log: deque[str] = deque(maxlen=10_000)
        self.process = subprocess.Popen(
            [sys.executable, "-c", "from hedgerow.cli import main; main()", "serve", str(self.file), *options],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, (SOURCE, os.environ.get("PYTHONPATH"))))},
        )
        self._listening = threading.Event()
        self.url = ""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        if not self._listening.wait(60.0) or not self.url:
            self.close()
            raise AssertionError("the gateway did not start:\n" + "\n".join(self.log))

    def get(self, path: str, **headers: str) -> httpx2.Response:
        """One GET."""
        return httpx2.get(self.url + path, headers=headers, timeout=PATIENCE_S)

    def close(self) -> int:
        """Ends it gracefully; its exit code."""
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(PATIENCE_S * 2)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._reader.join(PATIENCE_S)
        assert self.process.stderr is not None
        self.process.stderr.close()
        return self.process.returncode

    def __enter__(self) -> "GatewayProcess":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.log.append(line.rstrip("\n"))
            if line.startswith("listening on "):
                self.url = line.removeprefix("listening on ").strip()
                self._listening.set()
        self._listening.set()
