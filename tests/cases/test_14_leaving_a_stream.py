"""LightRAG 3634, openai-python PR 3621: a stream left early leaked its connection; a second cancel hit the clean-up.

Right: however a stream is left, every attempt is closed and the provider sees it; closing is idempotent and survives a second
cancellation. Tasks can be cancelled and threads interrupted; what both can do is tried with both.
"""

import asyncio
import gc
import signal
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx2
import pytest
from tests.cases.support import NEVER_S, Handle, Hedge, all_closed, opened, recorded, tokens
from tests.sdk.racing import eventually, outcomes
from tests.sdk.threaded import in_thread

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


async def closed_twice_at_once(streams: Streams) -> None:
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


async def closed_while_it_is_read(streams: Streams) -> None:
    reading = asyncio.ensure_future(read_on(streams[0]))
    await asyncio.sleep(0.03)
    await streams.pop().close()
    await asyncio.wait([reading])
    reading.exception()  # whatever the SDK makes of a stream that was closed under it


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


async def forgotten_by_a_thread(streams: Streams) -> None:
    def read_a_little() -> None:
        for _ in streams.pop().native:
            break

    await in_thread(read_a_little)
    gc.collect()


async def reader_interrupted(streams: Streams) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(KeyboardInterrupt):
            for _ in streams.pop().native:
                pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


ANYBODYS = [
    closed,
    closed_twice,
    closed_twice_at_once,
    closed_while_it_is_read,
    context_left,
    context_left_by_an_error,
    loop_left,
]
FORGETTING = [forgotten, forgotten_in_a_cycle]
OF_TASKS = [reader_cancelled, reader_cancelled_twice, reader_cancelled_often]
NO_TIMERS = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers that interrupt")
OF_THREADS = [forgotten_by_a_thread, pytest.param(reader_interrupted, marks=NO_TIMERS)]
Leave = Callable[[Streams], Awaitable[None]]

each_race = pytest.mark.parametrize("attempts", RACES.values(), ids=RACES)


async def expect_closed(
    hedge: Hedge, hedgerow_sandbox: SandboxProcess, leave: Leave, attempts: list[dict[str, Any]]
) -> None:
    client = hedge(max_backups=len(attempts) - 1)
    streams = [await opened(client, "14", *attempts)]
    await leave(streams)
    await all_closed(client, hedgerow_sandbox)
    assert outcomes(hedgerow_sandbox, "14") == ["disconnected"] * len(attempts)
    assert max(tokens(hedgerow_sandbox, "14")) < 2_500
    (event,) = await recorded(client)
    assert (event.outcome, event.winner) == ("caller_left", None)


@each_race
@pytest.mark.parametrize("leave", ANYBODYS)
async def test_leaving_a_stream_closes_everything(
    hedge: Hedge, hedgerow_sandbox: SandboxProcess, leave: Leave, attempts: list[dict[str, Any]]
) -> None:
    await expect_closed(hedge, hedgerow_sandbox, leave, attempts)


@each_race
@pytest.mark.parametrize("leave", FORGETTING)
@pytest.mark.library_only(reason="a plain client keeps the connection of a stream that its caller has forgotten")
async def test_a_stream_that_is_forgotten_closes_everything(
    hedge: Hedge, hedgerow_sandbox: SandboxProcess, leave: Leave, attempts: list[dict[str, Any]]
) -> None:
    await expect_closed(hedge, hedgerow_sandbox, leave, attempts)


@each_race
@pytest.mark.parametrize("leave", OF_TASKS)
@pytest.mark.async_only(reason="only tasks can be cancelled")
async def test_a_reader_that_is_cancelled_closes_everything(
    hedge: Hedge, hedgerow_sandbox: SandboxProcess, leave: Leave, attempts: list[dict[str, Any]]
) -> None:
    await expect_closed(hedge, hedgerow_sandbox, leave, attempts)


@each_race
@pytest.mark.parametrize("leave", OF_THREADS)
@pytest.mark.sync_only(reason="the thread that reads ends, or is interrupted while it waits")
async def test_a_thread_that_leaves_closes_everything(
    hedge: Hedge, hedgerow_sandbox: SandboxProcess, leave: Leave, attempts: list[dict[str, Any]]
) -> None:
    await expect_closed(hedge, hedgerow_sandbox, leave, attempts)


class SlowToClose:
    """Its bodies take until `release` to close, as over a slow TLS shutdown, and count who finished closing."""

    def __init__(self) -> None:
        self.release = threading.Event()
        self.closing = self.closed = 0

    def between(self, handle: Handle) -> Handle:
        async def slow_to_close(request: httpx2.Request) -> httpx2.Response:
            response = await handle(request)
            assert isinstance(response.stream, httpx2.AsyncByteStream)
            body = _Body(self, response.stream)
            return httpx2.Response(response.status_code, headers=response.headers.raw, stream=body)

        return slow_to_close


class _Body(httpx2.AsyncByteStream):
    def __init__(self, bodies: SlowToClose, inner: httpx2.AsyncByteStream) -> None:
        self._bodies, self._inner = bodies, inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._inner:
            yield chunk

    async def aclose(self) -> None:
        self._bodies.closing += 1
        while not self._bodies.release.is_set():
            await asyncio.sleep(0.005)  # the test sets it in another thread if the race is a thread's
        await self._inner.aclose()
        self._bodies.closed += 1


@pytest.mark.parametrize("cancels", [1, 2, 3])
@pytest.mark.async_only(reason="only tasks can be cancelled")
@pytest.mark.library_only(reason="what is slow to close stands inside a client's transport")
async def test_a_cancellation_during_the_clean_up_does_not_stop_it(
    hedge: Hedge, hedgerow_sandbox: SandboxProcess, cancels: int
) -> None:
    bodies = SlowToClose()
    client = hedge(between=bodies.between, max_backups=0)
    reading = asyncio.ensure_future(read_on(await opened(client, "14", ONE_TOKEN)))
    try:
        await asyncio.sleep(0.02)
        reading.cancel()
        await eventually(lambda: bodies.closing > 0)
        for _ in range(cancels - 1):
            reading.cancel()
            await asyncio.sleep(0.01)
    finally:
        bodies.release.set()
    await asyncio.wait([reading])
    assert reading.cancelled()
    await all_closed(client, hedgerow_sandbox)
    assert bodies.closed >= 1
    assert outcomes(hedgerow_sandbox, "14") == ["disconnected"]


@pytest.mark.library_only(reason="what is slow to close stands inside a client's transport")
async def test_closing_again_during_the_clean_up_does_not_stop_it(
    hedge: Hedge, hedgerow_sandbox: SandboxProcess
) -> None:
    bodies = SlowToClose()
    client = hedge(between=bodies.between, max_backups=0)
    chunks = await opened(client, "14", ONE_TOKEN)
    first = asyncio.ensure_future(chunks.close())
    try:
        await eventually(lambda: bodies.closing > 0)
        await chunks.close()
        assert not first.done()
    finally:
        bodies.release.set()
    await first
    await all_closed(client, hedgerow_sandbox)
    assert bodies.closed >= 1
    assert outcomes(hedgerow_sandbox, "14") == ["disconnected"]


async def test_closing_after_the_end_is_harmless_and_no_leaving(hedge: Hedge, hedgerow_sandbox: SandboxProcess) -> None:
    client = hedge(max_backups=0)
    chunks = await opened(client, "14", {"first_token_s": 0.0, "tokens": 3})
    await read_on(chunks)
    await chunks.close()
    await chunks.close()
    (event,) = await recorded(client)
    assert event.outcome == "answered"
    assert outcomes(hedgerow_sandbox, "14") == ["completed"]
    assert hedgerow.hedger_of(client).stats()["in_flight"] == 0
