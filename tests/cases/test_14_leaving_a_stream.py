"""LightRAG 3634, openai-python PR 3621: a stream left early leaked its connection; a second cancel hit the clean-up.

Right: however a stream is left, every attempt is closed and the provider sees it; closing is idempotent and survives a second
cancellation.
"""

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx2
import pytest
from openai import AsyncOpenAI, DefaultAsyncHttpxClient
from tests.cases.support import NEVER_S, Hedge, all_closed, opened, recorded, tokens
from tests.sdk.racing import eventually, outcomes

import hedgerow
from hedgerow.testing.process import SandboxProcess

LONG = {"first_token_s": 0.0, "token_s": 0.01, "tokens": 5_000}
ONE_TOKEN = LONG | {"stall": {"after": 1, "s": NEVER_S}}
RACES: dict[str, list[dict[str, Any]]] = {
    "no race, tokens flow": [LONG],
    "no race, tokens stall": [ONE_TOKEN],
    "after a backup won": [{"first_token_s": NEVER_S}, LONG],
}
Streams = list[Any]  # holds the one reference to a stream, so that a way of leaving can drop it


async def closed(streams: Streams) -> None:
    await streams.pop().close()


async def closed_twice(streams: Streams) -> None:
    await streams[0].close()
    await streams.pop().close()


async def closed_by_two_tasks_at_once(streams: Streams) -> None:
    await asyncio.gather(streams[0].close(), streams.pop().close())


async def context_left(streams: Streams) -> None:
    async with streams.pop() as chunks:
        await anext(chunks)


async def context_left_by_an_error(streams: Streams) -> None:
    with pytest.raises(ZeroDivisionError):
        async with streams.pop() as chunks:
            raise ZeroDivisionError(chunks)


async def loop_left(streams: Streams) -> None:
    async for _ in streams[0]:
        break
    await streams.pop().close()


async def forgotten(streams: Streams) -> None:
    streams.clear()
    gc.collect()


async def forgotten_in_a_cycle(streams: Streams) -> None:
    streams.append(streams)
    streams[0].me = streams[0]
    streams.clear()
    gc.collect()


async def reader_cancelled(streams: Streams, *, times: int = 1) -> None:
    reading = asyncio.ensure_future(read_on(streams.pop()))
    await asyncio.sleep(0.03)
    for _ in range(times):
        reading.cancel()
        await asyncio.sleep(0)
    await asyncio.wait([reading])
    assert reading.cancelled()


async def reader_cancelled_twice(streams: Streams) -> None:
    await reader_cancelled(streams, times=2)


async def reader_cancelled_often(streams: Streams) -> None:
    await reader_cancelled(streams, times=20)


async def read_on(chunks: Any) -> None:
    async for _ in chunks:
        pass


WAYS = [
    closed,
    closed_twice,
    closed_by_two_tasks_at_once,
    context_left,
    context_left_by_an_error,
    loop_left,
    forgotten,
    forgotten_in_a_cycle,
    reader_cancelled,
    reader_cancelled_twice,
    reader_cancelled_often,
]
Leave = Callable[[Streams], Awaitable[None]]


@pytest.mark.parametrize("attempts", RACES.values(), ids=RACES)
@pytest.mark.parametrize("leave", WAYS)
async def test_leaving_a_stream_closes_everything(
    hedge: Hedge, hedgerow_sandbox: SandboxProcess, leave: Leave, attempts: list[dict[str, Any]]
) -> None:
    client = hedge(max_backups=1)
    streams = [await opened(client, "14", *attempts)]
    await leave(streams)
    await all_closed(client, hedgerow_sandbox)
    assert outcomes(hedgerow_sandbox, "14") == ["disconnected"] * len(attempts)
    assert max(tokens(hedgerow_sandbox, "14")) < 2_500
    (event,) = await recorded(client)
    assert (event.outcome, event.winner) == ("caller_left", None)


class SlowToClose(httpx2.AsyncBaseTransport):
    """Its bodies take until `release` to close, as over a slow TLS shutdown, and count who finished closing."""

    def __init__(self) -> None:
        self.release = asyncio.Event()
        self.closing = self.closed = 0
        self._inner = httpx2.AsyncHTTPTransport()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await self._inner.handle_async_request(request)
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        return httpx2.Response(response.status_code, headers=response.headers.raw, stream=_Body(self, response.stream))

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Body(httpx2.AsyncByteStream):
    def __init__(self, transport: SlowToClose, inner: httpx2.AsyncByteStream) -> None:
        self._transport, self._inner = transport, inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._inner:
            yield chunk

    async def aclose(self) -> None:
        self._transport.closing += 1
        await self._transport.release.wait()
        await self._inner.aclose()
        self._transport.closed += 1


@pytest.mark.parametrize("cancels", [1, 2, 3])
async def test_a_cancellation_during_the_clean_up_does_not_stop_it(
    hedge: Hedge, hedgerow_sandbox: SandboxProcess, cancels: int
) -> None:
    transport = SlowToClose()
    sdk = AsyncOpenAI(
        base_url=f"{hedgerow_sandbox.url}/v1",
        api_key="k",
        max_retries=0,
        http_client=DefaultAsyncHttpxClient(transport=transport),
    )
    client = hedge(client=sdk)
    reading = asyncio.ensure_future(read_on(await opened(client, "14", ONE_TOKEN)))
    try:
        await asyncio.sleep(0.02)
        reading.cancel()
        await eventually(lambda: transport.closing > 0)
        for _ in range(cancels - 1):
            reading.cancel()
            await asyncio.sleep(0.01)
    finally:
        transport.release.set()
    await asyncio.wait([reading])
    assert reading.cancelled()
    await all_closed(client, hedgerow_sandbox)
    assert transport.closed >= 1
    assert outcomes(hedgerow_sandbox, "14") == ["disconnected"]


async def test_closing_after_the_end_is_harmless_and_no_leaving(hedge: Hedge, hedgerow_sandbox: SandboxProcess) -> None:
    client = hedge()
    chunks = await opened(client, "14", {"first_token_s": 0.0, "tokens": 3})
    await read_on(chunks)
    await chunks.close()
    await chunks.close()
    (event,) = await recorded(client)
    assert event.outcome == "answered"
    assert outcomes(hedgerow_sandbox, "14") == ["completed"]
    assert hedgerow.hedger_of(client).stats()["in_flight"] == 0
