"""Streams of Google's SDK that are left early: its own stay open until they are collected, ours are closed at once."""

import asyncio
import contextlib
import gc
from collections.abc import Iterator

import pytest
from tests.sdk.genai_calls import LONG, asked, racing
from tests.sdk.racing import eventually, outcomes

import hedgerow
from hedgerow.testing.process import SandboxProcess


@pytest.fixture(autouse=True)
def _uncollected() -> Iterator[None]:
    """The collector would close them as well, some time."""
    gc.disable()
    yield
    gc.enable()


async def closed(sandbox: SandboxProcess, case: str) -> bool:
    await eventually(lambda: outcomes(sandbox, case) == ["disconnected"])
    return True


async def test_breaking_out_of_a_loop_closes_the_stream(hedgerow_sandbox: SandboxProcess) -> None:
    client = racing(hedgerow_sandbox)
    async for _ in await client.aio.models.generate_content_stream(**asked("s/break", LONG)):
        break
    assert await closed(hedgerow_sandbox, "s/break")
    await eventually(lambda: len(list(hedgerow.hedger_of(client).events)) == 1)
    assert next(iter(hedgerow.hedger_of(client).events)).outcome == "caller_left"


async def test_dropping_a_stream_closes_it(hedgerow_sandbox: SandboxProcess) -> None:
    client = racing(hedgerow_sandbox)
    stream = await client.aio.models.generate_content_stream(**asked("s/drop", LONG))
    assert await anext(stream)
    del stream
    assert await closed(hedgerow_sandbox, "s/drop")


async def test_closing_a_stream_closes_it(hedgerow_sandbox: SandboxProcess) -> None:
    client = racing(hedgerow_sandbox)
    stream = await client.aio.models.generate_content_stream(**asked("s/close", LONG))
    async with contextlib.aclosing(stream):
        assert await anext(stream)
    assert await closed(hedgerow_sandbox, "s/close")


async def test_cancelling_a_reader_closes_the_stream(hedgerow_sandbox: SandboxProcess) -> None:
    client = racing(hedgerow_sandbox)

    async def read() -> None:
        async for _ in await client.aio.models.generate_content_stream(**asked("s/cancel", LONG)):
            pass

    reader = asyncio.ensure_future(read())
    await eventually(lambda: hedgerow_sandbox.stats()["in_flight"] == 1)
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader
    assert await closed(hedgerow_sandbox, "s/cancel")


def test_a_loop_that_ends_in_the_midst_of_a_stream_leaves_nothing_open(hedgerow_sandbox: SandboxProcess) -> None:
    client = racing(hedgerow_sandbox)

    async def begin() -> object:
        stream = await client.aio.models.generate_content_stream(**asked("s/loop", LONG))
        await anext(stream)
        return stream

    kept = asyncio.run(begin())
    assert asyncio.run(closed(hedgerow_sandbox, "s/loop"))
    del kept


async def test_threads_that_leave_a_stream_close_it_too(hedgerow_sandbox: SandboxProcess) -> None:
    client = racing(hedgerow_sandbox)
    for _ in client.models.generate_content_stream(**asked("s/sync/break", LONG)):
        break
    assert await closed(hedgerow_sandbox, "s/sync/break")
    stream = client.models.generate_content_stream(**asked("s/sync/drop", LONG))
    assert next(stream)
    del stream
    assert await closed(hedgerow_sandbox, "s/sync/drop")
