"""A gateway in front of the sandbox for a case, and a plain SDK client that knows nothing but its address."""

from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from openai import AsyncOpenAI
from tests.gateway.running import SOON, Running
from tests.sdk.adapters import Adapter, Speaker

import hedgerow
from hedgerow.engine import Hedger
from hedgerow.testing.process import SandboxProcess

__all__ = ["Gateways", "OfGateway"]

NAME = "127.0.0.1"  # as the library calls it: by its host
KEY = "k"  # the sandbox's, as the library's clients have it: a backup target with the same key is the same account


class OfGateway(AsyncOpenAI):
    """A client of a gateway of its own, which ends with it. `hedger` is the gateway's, once it has answered anything."""

    def __init__(self, gateway: Running, **options: Any) -> None:
        super().__init__(**{"base_url": f"{gateway.url}/v1", "api_key": "client", "max_retries": 0, **options})
        self.gateway = gateway

    @property
    def hedger(self) -> Hedger:
        return self.gateway.hedger

    async def close(self) -> None:
        await super().close()
        await self.gateway.close()


class Gateways:
    """Starts gateways in the test's loop, each with a file of its own."""

    def __init__(self, sandbox: SandboxProcess, folder: Path, closed_after: AsyncExitStack) -> None:
        self._sandbox, self._folder, self._closed_after = sandbox, folder, closed_after
        self._started = 0

    def client(self, *, backup: Any = None, clock: Any = None, options: Any = None, **settings: Any) -> OfGateway:
        """What `hedge` makes, through a gateway."""
        gateway = self.start(backup=backup, clock=clock, **settings)
        self._closed_after.push_async_callback(gateway.close)
        client = OfGateway(gateway, **(options or {}))
        self._closed_after.push_async_callback(client.close)
        return client

    def speaker(self, adapter: Adapter, *, sync: bool, **settings: Any) -> Speaker:
        """What an Adapter's speaker is, through a gateway."""
        gateway = self.start(dialect=adapter.name.partition(" ")[0], **settings)
        self._closed_after.push_async_callback(gateway.close)
        return _Speaker(adapter, adapter.plain(gateway, sync), sync, gateway)

    def start(self, *, backup: Any = None, clock: Any = None, dialect: str = "openai", **settings: Any) -> Running:
        """A gateway, which the caller closes: one route, one policy; a Target of `backup` is a [[target]] after the sandbox."""
        base_url = f"{self._sandbox.url}/v1" if dialect == "openai" else self._sandbox.url
        targets = [{"name": NAME, "dialect": dialect, "base_url": base_url, "api_key": KEY}]
        for number, target in enumerate(backup if isinstance(backup, list) else [backup] if backup else []):
            targets.append(_section(f"backup-{number}", target))
        config = {
            "gateway": {"listen": "127.0.0.1:0"},
            "target": targets,
            "route": [{"path": "*", "targets": [target["name"] for target in targets], "policy": "soon"}],
            "policy": {"soon": {**SOON, **settings}},
        }
        folder = self._folder / f"gateway-{self._started}"
        folder.mkdir()
        self._started += 1
        return Running(folder, config, clock=clock)


class _Speaker(Speaker):
    """Its events are the gateway's."""

    def __init__(self, adapter: Adapter, client: Any, sync: bool, gateway: Running) -> None:
        super().__init__(adapter, client, sync)
        self._gateway = gateway

    async def events(self, count: int = 1) -> list[hedgerow.Event]:
        self.client.hedger = self._gateway.hedger
        return await super().events(count)


def _section(name: str, target: hedgerow.Target) -> dict[str, Any]:
    """A Target as a [[target]]; what it leaves out it has from the sandbox's."""
    said = {"base_url": target.base_url, "api_key": target.api_key, "set": dict(target.set)}
    return {"name": target.name or name, "like": NAME} | {key: value for key, value in said.items() if value}
