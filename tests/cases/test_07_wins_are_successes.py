"""Azure SDK for Rust PR 4432: "hedge won" was recorded on paths that end in an error.

Right: wins ≤ successes. A backup that won the commit, but whose stream was then cut, broken off or left, is no win: not in the
counters, not in the event, and its token does not come back to the budget.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
import openai
import pytest
from openai import AsyncOpenAI
from tests.cases.support import NEVER_S, Hedge, all_closed, opened, recorded, times_out
from tests.sdk.racing import QUICK, outcomes, stream

import hedgerow
from hedgerow.testing.process import SandboxProcess

STUCK = {"first_token_s": NEVER_S}
TALKS = {"first_token_s": 0.0, "token_s": 0.005, "tokens": 8}
ENDLESS = TALKS | {"tokens": 1000, "stall": {"after": 3, "s": NEVER_S}}
BREAKS = {
    "cut": TALKS | {"cut_after": 3},
    "reset": TALKS | {"cut_after": 3, "reset": True},
    "error frame": TALKS | {"error_frame": {"after": 3, "error": {"type": "server_error", "message": "oops"}}},
    "ends without its end": TALKS | {"cut_after": 8},
    "finish reason error": TALKS | {"finish_reason": "error"},
}
Leave = Callable[[AsyncOpenAI], Awaitable[None]]


async def closes(client: AsyncOpenAI) -> None:
    chunks = await opened(client, "7", STUCK, ENDLESS)
    await anext(chunks)
    await chunks.close()


async def is_cancelled(client: AsyncOpenAI) -> None:
    began = asyncio.Event()

    async def read() -> None:
        async for _ in await opened(client, "7", STUCK, ENDLESS):
            began.set()

    reading = asyncio.ensure_future(read())
    await began.wait()
    reading.cancel()
    await asyncio.wait([reading])
    assert reading.cancelled()


async def runs_out_of_time(client: AsyncOpenAI) -> None:
    with times_out(client):
        [_ async for _ in await opened(client, "7", STUCK, ENDLESS)]


async def expect_no_win(client: AsyncOpenAI, sandbox: SandboxProcess, outcome: str) -> None:
    await all_closed(client, sandbox)
    (event,) = await recorded(client)
    stats: Any = hedgerow.hedger_of(client).stats()
    assert (event.outcome, event.winner, stats["backup_wins"]) == (outcome, None, 0)
    assert event.attempts[1].outcome != "won"
    assert stats["backups"] == 1
    assert stats["outcomes"]["answered"] == 0
    assert stats["budget"]["losing_backups"] == 1
    assert stats["budget"]["bucket"] == pytest.approx(2 + 0.05 - 1)


@pytest.mark.parametrize("script", BREAKS.values(), ids=BREAKS)
async def test_a_backup_whose_stream_breaks_has_not_won(
    hedge: Hedge, hedgerow_sandbox: SandboxProcess, script: dict[str, Any]
) -> None:
    client = hedge(budget=0.05)
    try:
        await stream(client, "7", STUCK, script)
    except (openai.APIError, httpx2.TransportError):
        pass  # what the SDK makes of a broken stream is its own affair
    await expect_no_win(client, hedgerow_sandbox, "failed")


@pytest.mark.parametrize("leave", [closes, is_cancelled])
@pytest.mark.async_only(reason="the caller leaves by cancelling")
async def test_a_backup_whose_stream_is_left_has_not_won(
    hedge: Hedge, hedgerow_sandbox: SandboxProcess, leave: Leave
) -> None:
    client = hedge(budget=0.05)
    await leave(client)
    await expect_no_win(client, hedgerow_sandbox, "caller_left")
    assert outcomes(hedgerow_sandbox, "7") == ["disconnected", "disconnected"]


async def test_a_backup_whose_stream_outlives_the_deadline_has_not_won(
    hedge: Hedge, hedgerow_sandbox: SandboxProcess
) -> None:
    client = hedge(budget=0.05, timeout_s=0.4)
    await runs_out_of_time(client)
    await expect_no_win(client, hedgerow_sandbox, "deadline")


async def test_a_backup_that_delivers_its_whole_answer_has_won_and_is_refunded(hedge: Hedge) -> None:
    client = hedge(budget=0.05)
    await stream(client, "7", STUCK, QUICK)
    (event,) = await recorded(client)
    stats: Any = hedgerow.hedger_of(client).stats()
    assert (event.outcome, event.winner, stats["backup_wins"]) == ("answered", 1, 1)
    assert stats["budget"]["losing_backups"] == 0
    assert stats["budget"]["bucket"] == pytest.approx(2 + 0.05)


async def test_wins_never_outnumber_successes(hedge: Hedge, hedgerow_sandbox: SandboxProcess) -> None:
    client = hedge()
    kinds = [*BREAKS.values(), QUICK, QUICK, {"status": 500}]
    calls = [stream(client, f"7/{n}", STUCK, kinds[n % len(kinds)], QUICK) for n in range(40)]
    ended = await asyncio.gather(*calls, return_exceptions=True)
    await all_closed(client, hedgerow_sandbox)
    stats: Any = hedgerow.hedger_of(client).stats()
    events = await recorded(client, 40)
    assert stats["backup_wins"] == sum(event.winner not in (None, 0) for event in events)
    assert stats["backup_wins"] <= stats["outcomes"]["answered"] <= sum(isinstance(end, str) for end in ended)
