"""Reads the books of a running sandbox over HTTP, its own count of what arrived and how it ended."""

import asyncio
from typing import Any

import httpx2
import orjson

from hedgerow.errors import HedgerowError
from hedgerow.replay.bill import Attempt, cases_of
from hedgerow.replay.proof import losers_open

__all__ = ["SandboxBooks"]

ANSWER_TIMEOUT_S = 30.0
PATIENCE_S = 10.0
POLL_S = 0.1


class SandboxBooks:
    """The `/_sandbox/stats` of one sandbox. `url` as an SDK takes it or without the `/v1`. An async context manager."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/").removesuffix("/v1")
        # No proxy of the environment: a sandbox is on this machine.
        self._client = httpx2.AsyncClient(trust_env=False, timeout=ANSWER_TIMEOUT_S)

    async def __aenter__(self) -> "SandboxBooks":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()

    async def cases(self) -> dict[str, tuple[Attempt, ...]]:
        """The attempts of every case. HedgerowError if this is no sandbox, or cannot be reached."""
        return cases_of(await self._stats())

    async def settled_cases(self) -> dict[str, tuple[Attempt, ...]]:
        """The same once nothing is in flight; after 10 real seconds of waiting as it is then."""
        loop = asyncio.get_running_loop()
        until_s = loop.time() + PATIENCE_S
        cases = await self.cases()
        while losers_open(cases) and loop.time() < until_s:
            await asyncio.sleep(POLL_S)
            cases = await self.cases()
        return cases

    async def _stats(self) -> dict[str, Any]:
        address = f"{self.url}/_sandbox/stats"
        try:
            response = await self._client.get(address)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise HedgerowError(f"no sandbox answers at {address}: {type(error).__name__}: {error}") from None
        try:
            stats: object = orjson.loads(response.content) if response.status_code == 200 else None
        except orjson.JSONDecodeError:
            stats = None
        if not isinstance(stats, dict):
            raise HedgerowError(
                f"{address} answered with status {response.status_code} and no books: what runs there is no sandbox; "
                "start one with `hedgerow sandbox`"
            )
        return stats  # pyright: ignore[reportUnknownVariableType]
