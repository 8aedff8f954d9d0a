"""A hedged client of classic httpx, asynchronous or in a thread: one test serves both."""

from typing import Any

import httpx
from tests.sdk.racing import scripted
from tests.sdk.threaded import in_thread

import hedgerow

__all__ = ["Classic", "body"]

SOON = {"trigger": "first_token", "delay": 0.05, "budget": "off"}


def body(*, stream: bool = False) -> dict[str, Any]:
    """What a chat completion asks."""
    return {"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": stream}


class Classic:
    """inner: arguments of the transport inside; settings: of the policy, which backs up after 50 ms unless they say otherwise."""

    def __init__(self, *, sync: bool, inner: dict[str, Any] | None = None, **settings: Any) -> None:
        policy = hedgerow.Policy(**{**SOON, **settings})
        self.sync = sync
        self.transport: Any = (
            hedgerow.HttpxTransport(httpx.HTTPTransport(**(inner or {})), policy=policy)
            if sync
            else hedgerow.AsyncHttpxTransport(httpx.AsyncHTTPTransport(**(inner or {})), policy=policy)
        )
        self.client: Any = (httpx.Client if sync else httpx.AsyncClient)(transport=self.transport)

    async def post(self, url: str, case: str, *attempts: dict[str, Any], **options: Any) -> httpx.Response:
        """A call that is not streamed, unless `json` says so; read to its end."""
        options = {"json": body(), **options}
        options["headers"] = {**scripted(case, *attempts), **options.get("headers", {})}
        if self.sync:
            return await in_thread(self.client.post, f"{url}/v1/chat/completions", **options)
        return await self.client.post(f"{url}/v1/chat/completions", **options)

    async def shut(self) -> None:
        if self.sync:
            await in_thread(self.client.close)
        else:
            await self.client.aclose()
