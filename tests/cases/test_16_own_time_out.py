"""hedge-python (tried): the caller's own time-out during the race left both attempts running.

Right: whatever ends the caller's wait, every attempt is closed, from the first moment on, streaming or not (promise 4). A task's
wait ends when it is cancelled, a thread's by the SDK's own time-out (or Ctrl-C: tests/sdk/test_sync_client.py).
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
from tests.cases.through_gateway import OfGateway
from tests.sdk.racing import ask, eventually, outcomes, scripted

import hedgerow
from hedgerow.testing.process import SandboxProcess

WAIT_S = 0.3
WAIT_FOR_BOTH_S = 4.0  # of a client who knows nothing of the race behind the gateway: by then a backup has been sent
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


Call, UnderWay = Callable[[], Awaitable[None]], Callable[[], bool]


async def asyncio_timeout(call: Call, under_way: UnderWay) -> None:
    patience = asyncio.timeout(None)
    ends = once(under_way, lambda: patience.reschedule(0.0))
    with pytest.raises(TimeoutError):
        async with patience:
            await call()
    await ends


async def wait_for(call: Call, under_way: UnderWay) -> None:
    task = asyncio.ensure_future(call())
    await eventually(under_way)  # its time-out cannot be put off
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(task, 0.01)


async def anyio_fail_after(call: Call, under_way: UnderWay) -> None:
    async def bounded() -> None:
        with anyio.fail_after(None) as patience:
            ends = once(under_way, lambda: setattr(patience, "deadline", 0.0))
            try:
                await call()
            finally:
                await asyncio.wait([ends])

    with pytest.raises(TimeoutError):
        await bounded()


async def task_cancelled(call: Call, under_way: UnderWay) -> None:
    task = asyncio.ensure_future(call())
    await eventually(under_way)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()


def once(under_way: UnderWay, end: Callable[[], None]) -> asyncio.Task[None]:
    """Let the caller's time-out run out when its attempts are where they should be, however long that takes."""

    async def wait() -> None:
        await eventually(under_way)
        end()

    return asyncio.ensure_future(wait())


def are_under_way(sandbox: SandboxProcess, attempts: list[dict[str, Any]]) -> bool:
    """All have reached the provider; what fails has, and what flows does."""
    seen = sandbox.stats()["cases"].get("16", [])
    return len(seen) == len(attempts) and all(
        entry["outcome"] == "failed" if attempt.get("status") else entry["tokens"] >= 2 or "tokens" not in attempt
        for attempt, entry in zip(attempts, seen, strict=True)
    )


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


@pytest.mark.async_only(reason="only tasks can be cancelled; the SDK's own time-out is tried with both below")
@pytest.mark.parametrize(("leave", "moment"), EVERY, ids=lambda part: part if isinstance(part, str) else part.__name__)
async def test_the_callers_time_out_closes_every_attempt(
    hedge: Hedge, hedgerow_sandbox: SandboxProcess, leave: Any, moment: str
) -> None:
    send, settings, attempts = MOMENTS[moment]
    client = hedge(**settings)
    await leave(lambda: send(client, *attempts), lambda: are_under_way(hedgerow_sandbox, attempts))
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    await expect_left(client, hedgerow_sandbox, attempts)


@pytest.mark.async_only(reason="only tasks can be cancelled; the SDK's own time-out is tried with both below")
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


# What flows on in mid-stream runs into no time-out.
RUN_OUT = [moment for moment in MOMENTS if FLOWS not in MOMENTS[moment][2]]


@pytest.mark.parametrize("moment", RUN_OUT)
async def test_the_sdks_own_read_time_out_closes_them_too(
    request: pytest.FixtureRequest, hedge: Hedge, hedgerow_sandbox: SandboxProcess, moment: str
) -> None:
    send, settings, attempts = MOMENTS[moment]
    through_gateway = request.node.callspec.params["hedge"] == "gateway"
    wait_s = WAIT_FOR_BOTH_S if through_gateway and len(attempts) > 1 else WAIT_S
    client = hedge(**{**settings, "max_backups": len(attempts) - 1}, options={"timeout": read_within(wait_s)})
    with pytest.raises(openai.APITimeoutError):
        await send(client, *attempts)
    await all_closed(client, hedgerow_sandbox)
    assert outcomes(hedgerow_sandbox, "16") == [
        "failed" if attempt.get("status") else "disconnected" for attempt in attempts
    ]
    (event,) = await recorded(client)
    outcome = (
        "caller_left" if isinstance(client, OfGateway) else "failed"
    )  # whose client's time-out it is, a gateway cannot see
    assert (event.outcome, event.winner) == (outcome, None)
    assert {attempt.outcome for attempt in event.attempts} <= {outcome, "failed", "lost"}


@pytest.mark.parametrize("moment_s", [0.001, 0.01, 0.048, 0.05, 0.052, 0.06])
async def test_a_read_time_out_at_any_moment_around_the_start_and_the_trigger(
    hedge: Hedge, hedgerow_sandbox: SandboxProcess, moment_s: float
) -> None:
    client = hedge(**EAGER, options={"timeout": read_within(moment_s)})
    late = await asyncio.gather(*(ask(client, f"16/{number}", LATE) for number in range(20)), return_exceptions=True)
    assert {type(each) for each in late} == {openai.APITimeoutError}
    await all_closed(client, hedgerow_sandbox)
    seen = hedgerow_sandbox.stats()
    assert seen["disconnected"] == seen["started"]


def read_within(seconds: float) -> httpx2.Timeout:
    """Patient with everything else: a busy machine may take its time to connect."""
    return httpx2.Timeout(NEVER_S, read=seconds)


async def test_a_response_that_is_opened_raw_and_left_is_closed(hedge: Hedge, hedgerow_sandbox: SandboxProcess) -> None:
    client = hedge(**EAGER)
    async with client.chat.completions.with_streaming_response.create(
        model="m", messages=MESSAGES, stream=True, extra_headers=scripted("16", NO_CONTENT, FLOWS)
    ) as response:
        assert response.status_code == 200
    await expect_left(client, hedgerow_sandbox, [NO_CONTENT, FLOWS])
    assert hedgerow.hedger_of(client).stats()["in_flight"] == 0
