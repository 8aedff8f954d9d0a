"""hedge-python (tried): the caller's own time-out during the race left both attempts running.

Right: whatever ends the caller's wait, every attempt is closed, from the first moment on, streaming or not (promise 4).
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import httpx2
import openai
import pytest
from openai import AsyncOpenAI
from tests.cases.support import MESSAGES, NEVER_S, Hedge, all_closed, opened, recorded, tokens
from tests.sdk.racing import ask, outcomes, scripted

import hedgerow
from hedgerow.testing.process import SandboxProcess

WAIT_S = 0.15
LATE = {"before_headers_s": NEVER_S}
NO_CONTENT = {"first_token_s": NEVER_S}
FLOWS = {"first_token_s": 0.0, "token_s": 0.01, "tokens": 5_000}
PATIENT, EAGER = {"delay": 600.0}, {"delay": 0.05, "max_backups": 1}


async def whole(client: AsyncOpenAI, *attempts: dict[str, Any]) -> None:
    await ask(client, "16", *attempts)


async def streamed(client: AsyncOpenAI, *attempts: dict[str, Any]) -> None:
    async for _ in await opened(client, "16", *attempts):
        pass


MOMENTS = {
    "whole, before the headers, no race": (whole, PATIENT, [LATE]),
    "whole, during the race": (whole, EAGER, [LATE, LATE]),
    "whole, during the race, bodies awaited": (whole, EAGER, [NO_CONTENT, NO_CONTENT]),
    "whole, after the backup failed": (whole, EAGER, [LATE, {"status": 500}]),
    "streamed, before the headers, no race": (streamed, PATIENT, [LATE]),
    "streamed, during the race before any headers": (streamed, EAGER, [LATE, LATE]),
    "streamed, during the race with one's headers": (streamed, EAGER, [LATE, NO_CONTENT]),
    "streamed, during the race with both's headers": (streamed, EAGER, [NO_CONTENT, NO_CONTENT]),
    "streamed, mid-stream of the primary": (streamed, PATIENT, [FLOWS]),
    "streamed, mid-stream of the backup": (streamed, EAGER, [NO_CONTENT, FLOWS]),
    "streamed, mid-stream of a stalled backup": (
        streamed,
        EAGER,
        [NO_CONTENT, FLOWS | {"stall": {"after": 2, "s": NEVER_S}}],
    ),
}


async def asyncio_timeout(call: Callable[[], Awaitable[None]]) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(WAIT_S):
            await call()


async def wait_for(call: Callable[[], Awaitable[None]]) -> None:
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(call(), WAIT_S)


async def anyio_fail_after(call: Callable[[], Awaitable[None]]) -> None:
    with pytest.raises(TimeoutError):
        with anyio.fail_after(WAIT_S):
            await call()


async def task_cancelled(call: Callable[[], Awaitable[None]]) -> None:
    task = asyncio.ensure_future(call())
    await asyncio.sleep(WAIT_S)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()


IN_A_RACE = (
    "whole, during the race",
    "streamed, during the race with one's headers",
    "streamed, mid-stream of the backup",
)
EVERY = [(asyncio_timeout, moment) for moment in MOMENTS] + [
    (leave, moment) for leave in (wait_for, anyio_fail_after, task_cancelled) for moment in IN_A_RACE
]


async def expect_left(client: AsyncOpenAI, sandbox: SandboxProcess, attempts: list[dict[str, Any]]) -> None:
    await all_closed(client, sandbox)
    seen = outcomes(sandbox, "16")
    assert seen == ["failed" if attempt.get("status") else "disconnected" for attempt in attempts]
    assert max(tokens(sandbox, "16")) < 2_500
    (event,) = await recorded(client)
    assert (event.outcome, event.winner) == ("caller_left", None)
    assert {attempt.outcome for attempt in event.attempts} <= {"caller_left", "lost", "failed"}


@pytest.mark.parametrize(("leave", "moment"), EVERY, ids=lambda part: part if isinstance(part, str) else part.__name__)
async def test_the_callers_time_out_closes_every_attempt(
    hedge: Hedge, hedgerow_sandbox: SandboxProcess, leave: Any, moment: str
) -> None:
    send, settings, attempts = MOMENTS[moment]
    client = hedge(**settings)
    await leave(lambda: send(client, *attempts))
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    await expect_left(client, hedgerow_sandbox, attempts)


@pytest.mark.parametrize("moment_s", [0.0, 0.001, 0.048, 0.05, 0.052, 0.06])
async def test_at_any_moment_around_the_start_and_the_trigger(
    hedge: Hedge, hedgerow_sandbox: SandboxProcess, moment_s: float
) -> None:
    client = hedge(**EAGER)
    calls = [asyncio.ensure_future(ask(client, f"16/{number}", LATE)) for number in range(20)]
    await asyncio.sleep(moment_s)
    for call in calls:
        call.cancel()
    await asyncio.wait(calls)
    assert all(call.cancelled() for call in calls)
    await all_closed(client, hedgerow_sandbox)
    seen = hedgerow_sandbox.stats()
    assert seen["disconnected"] == seen["started"]


async def test_the_sdks_own_read_time_out_closes_them_too(hedge: Hedge, hedgerow_sandbox: SandboxProcess) -> None:
    client = hedge(**EAGER, options={"timeout": httpx2.Timeout(0.2)})
    with pytest.raises(openai.APITimeoutError):
        await ask(client, "16", LATE, LATE)
    await all_closed(client, hedgerow_sandbox)
    assert outcomes(hedgerow_sandbox, "16") == ["disconnected", "disconnected"]


async def test_a_response_that_is_opened_raw_and_left_is_closed(hedge: Hedge, hedgerow_sandbox: SandboxProcess) -> None:
    client = hedge(**EAGER)
    async with client.chat.completions.with_streaming_response.create(
        model="m", messages=MESSAGES, stream=True, extra_headers=scripted("16", NO_CONTENT, FLOWS)
    ) as response:
        assert response.status_code == 200
    await expect_left(client, hedgerow_sandbox, [NO_CONTENT, FLOWS])
    assert hedgerow.hedger_of(client).stats()["in_flight"] == 0
