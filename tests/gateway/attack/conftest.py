"""Three separate providers behind the file that is shipped: whatever is sent, each must get only what is its own."""

import tomllib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.gateway.raw_client import RawClient
from tests.gateway.running import Running, gateway_in_loop
from tests.gateway.upstreams import Bare, bare_upstream

SHIPPED = Path(__file__).parents[3] / "deploy" / "hedgerow.toml"
APIS = {
    "openai": "https://api.openai.com",
    "anthropic": "https://api.anthropic.com",
    "gemini": "https://generativelanguage.googleapis.com",
}


@dataclass(frozen=True)
class Three:
    """The gateway and what stands behind it."""

    gateway: Running
    providers: Mapping[str, Bare]

    @property
    def reached(self) -> list[str]:
        """Who was asked, once for each request that it got."""
        return [name for name, provider in self.providers.items() for _ in provider.asked]

    @property
    def last_head(self) -> str:
        """Of the one request that somebody got."""
        (provider,) = [provider for provider in self.providers.values() if provider.asked]
        return provider.last_head

    def forget(self) -> None:
        """What has been asked so far."""
        for provider in self.providers.values():
            provider.asked.clear()

    async def say(self, *pieces: bytes) -> bytes:
        """Send bytes over a connection of its own; all that comes back until the gateway closes it."""
        client = await RawClient.connect(self.gateway.url)
        try:
            for piece in pieces:
                await client.send(piece)
            return await client.read_to_end()
        finally:
            client.close()


def shipped() -> dict[str, Any]:
    """The tables of the file that is shipped."""
    return tomllib.loads(SHIPPED.read_text())


@pytest.fixture
async def behind(tmp_path: Path) -> AsyncIterator[Callable[..., Awaitable[Three]]]:
    """Starts the shipped file in front of three fake providers, each with a key that names it. tables: laid over; gateway: into
    that table."""
    async with AsyncExitStack() as stack:

        async def start(gateway: Mapping[str, Any] | None = None, **tables: Any) -> Three:
            providers = {name: await stack.enter_async_context(bare_upstream()) for name in APIS}
            config = shipped() | tables
            for target in config["target"]:
                if "base_url" in target:
                    own = target["dialect"]
                    target["base_url"] = target["base_url"].replace(APIS[own], providers[own].url)
                    target["api_key"] = f"key-of-{own}"
            config["gateway"] = {"listen": "127.0.0.1:0", **(gateway or {})}
            running = await stack.enter_async_context(gateway_in_loop(tmp_path, config))
            return Three(running, providers)

        yield start


@pytest.fixture
async def three(behind: Callable[..., Awaitable[Three]]) -> Three:
    """The shipped file as it is."""
    return await behind()
