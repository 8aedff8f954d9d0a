"""What the SDK above is doing at the moment: how often it will try a request, and which credentials it would send now.

The copy of an SDK client says so in a context variable, for the transport below it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from inspect import iscoroutinefunction
from typing import Any, cast

import httpx2

from hedgerow.dialects.headers import CREDENTIALS
from hedgerow.retry_ledger import tries_announced
from hedgerow.values.failure import Repeats

__all__ = ["announcing", "fresh_credentials", "retried_above"]

RETRY_COUNT = "x-stainless-retry-count"


class _Request:
    """One request of an SDK: its options as the caller gave them."""

    def __init__(self, client: Any, options: Any) -> None:
        self.client, self.options = client, options
        self.max_retries: int = options.get_max_retries(client.max_retries)

    async def credentials(self) -> Mapping[str, str]:
        """The headers that tell whose account is used, made as the SDK makes them for each of its tries: a key that it refreshes
        is fresh."""
        in_task = iscoroutinefunction(self.client._prepare_options)
        headers = (await (self._made_async() if in_task else asyncio.to_thread(self._made))).headers
        return {name: headers[name] for name in CREDENTIALS if name in headers}

    def _made(self) -> Any:
        options = self.client._prepare_options(self.options.model_copy())
        request = self.client._build_request(options, retries_taken=0)
        self.client._prepare_request(request)
        return request

    async def _made_async(self) -> Any:
        options = await self.client._prepare_options(self.options.model_copy())
        request = self.client._build_request(options, retries_taken=0)
        await self.client._prepare_request(request)
        return request


CURRENT: ContextVar[_Request | None] = ContextVar("hedgerow_sdk_request", default=None)


def announcing(client: Any) -> Any:
    """The same SDK client, whose class under the same name says in each request how often it will be tried."""
    kind = cast(Any, type(client))
    wrap = _async_request if iscoroutinefunction(kind.request) else _request
    members = {"request": wrap(kind.request), "__module__": kind.__module__, "__qualname__": kind.__qualname__}
    client.__class__ = type(kind.__name__, (kind,), members)
    return client


def retried_above(request: httpx2.Request, tries_before: int) -> Repeats | bool:
    """After which failures the client above will send this request again: True = after those that OpenAI's SDK and Anthropic's
    do. Where nobody says how often it will, an SDK's own header means that it may."""
    current = CURRENT.get()
    if current is not None:
        return tries_before < current.max_retries
    announced = tries_announced()
    if announced is None:
        return RETRY_COUNT in request.headers
    most, repeats = announced
    return repeats if tries_before + 1 < most else False


def fresh_credentials() -> Callable[[], Awaitable[Mapping[str, str]]] | None:
    """What gives the credentials anew, to be asked for in the context of the request; None where no SDK is known."""
    current = CURRENT.get()
    return None if current is None else current.credentials


@contextmanager
def _said(client: Any, options: Any) -> Generator[None]:
    token = CURRENT.set(_Request(client, options))
    try:
        yield
    finally:
        CURRENT.reset(token)


def _request(its_own: Callable[..., Any]) -> Callable[..., Any]:
    def request(self: Any, cast_to: Any, options: Any, *args: Any, **more: Any) -> Any:
        with _said(self, options):
            return its_own(self, cast_to, options, *args, **more)

    return request


def _async_request(its_own: Callable[..., Any]) -> Callable[..., Any]:
    async def request(self: Any, cast_to: Any, options: Any, *args: Any, **more: Any) -> Any:
        with _said(self, options):
            return await its_own(self, cast_to, options, *args, **more)

    return request
