"""claude-code-hub 1281: people wanted the time-out for the first token without the race.

Right: two switches. The time-out works with the trigger off, with and without a replacement; the race works without a time-out.
"""

from itertools import pairwise
from typing import Any

import pytest
from tests.cases.support import NEVER_S, Hedge, Send, all_closed, recorded, times_out, whole_and_streamed
from tests.sdk.racing import QUICK, ask, outcomes, stream

from hedgerow.testing.process import SandboxProcess

STALLS: dict[str, dict[str, Any]] = {
    "no headers": {"before_headers_s": NEVER_S},
    "no content": {"first_token_s": NEVER_S},
    "only pings": {"first_token_s": NEVER_S, "pings": {"every_s": 0.01, "count": 5000}},
}
every_stall = pytest.mark.parametrize("stall", STALLS.values(), ids=STALLS)
TIME_OUT = {"trigger": "off", "first_token_timeout_s": 0.1}


@whole_and_streamed
@every_stall
async def test_without_backups_the_caller_gets_the_sdks_time_out(
    hedge: Hedge, hedgerow_sandbox: SandboxProcess, send: Send, stall: dict[str, Any]
) -> None:
    client = hedge(max_backups=0, **TIME_OUT)
    with times_out(client, "first_token_timeout"):
        await send(client, "32", stall)
    await all_closed(client, hedgerow_sandbox)
    assert outcomes(hedgerow_sandbox, "32") == ["disconnected"]
    (event,) = await recorded(client)
    assert (event.outcome, event.error) == ("failed", "first_token_timeout")


@whole_and_streamed
@every_stall
async def test_with_one_backup_the_attempt_is_replaced_and_never_raced(
    hedge: Hedge, hedgerow_sandbox: SandboxProcess, send: Send, stall: dict[str, Any]
) -> None:
    client = hedge(max_backups=1, **TIME_OUT)
    assert await send(client, "32", stall, QUICK | {"text": "in time"}) == "in time"
    await all_closed(client, hedgerow_sandbox)
    assert outcomes(hedgerow_sandbox, "32") == ["disconnected", "completed"]
    (event,) = await recorded(client)
    primary, backup = event.attempts
    assert (primary.outcome, primary.error, backup.reason) == ("failed", "first_token_timeout", "error")
    assert (event.plan, event.trigger_at_s) == ("off", None)


async def test_each_replacement_has_its_own_time_and_the_call_fails_when_all_are_used(
    hedge: Hedge, hedgerow_sandbox: SandboxProcess
) -> None:
    client = hedge(max_backups=2, **TIME_OUT)
    with times_out(client):
        await ask(client, "32", STALLS["no content"])
    await all_closed(client, hedgerow_sandbox)
    assert outcomes(hedgerow_sandbox, "32") == ["disconnected"] * 3
    (event,) = await recorded(client)
    starts = [attempt.started_s for attempt in event.attempts]
    assert all(later - earlier >= 0.1 for earlier, later in pairwise(starts))


@pytest.mark.parametrize("retries", [0, 1])
async def test_the_sdks_retries_see_an_ordinary_time_out(
    hedge: Hedge, hedgerow_sandbox: SandboxProcess, retries: int
) -> None:
    client = hedge(max_backups=0, options={"max_retries": retries}, **TIME_OUT)
    with times_out(client):
        await ask(client, "32", STALLS["no content"])
    await all_closed(client, hedgerow_sandbox)
    assert outcomes(hedgerow_sandbox, "32") == ["disconnected"] * (1 + retries)


@whole_and_streamed
async def test_a_call_within_its_time_is_left_alone(hedge: Hedge, hedgerow_sandbox: SandboxProcess, send: Send) -> None:
    client = hedge(trigger="off", first_token_timeout_s=5.0)
    await send(client, "32", {"first_token_s": 0.2}, QUICK)
    assert outcomes(hedgerow_sandbox, "32") == ["completed"]


async def test_after_the_first_token_a_long_stream_has_all_the_time_it_needs(
    hedge: Hedge, hedgerow_sandbox: SandboxProcess
) -> None:
    client = hedge(trigger="off", first_token_timeout_s=0.15)
    slow = {"first_token_s": 0.0, "token_s": 0.05, "tokens": 6, "text": "one two three four five six"}
    assert await stream(client, "32", slow) == slow["text"]
    assert outcomes(hedgerow_sandbox, "32") == ["completed"]


@whole_and_streamed
async def test_the_race_works_without_the_time_out(hedge: Hedge, send: Send) -> None:
    client = hedge()
    await send(client, "32", STALLS["no content"], QUICK)
    (event,) = await recorded(client)
    assert [(attempt.outcome, attempt.error) for attempt in event.attempts] == [("lost", None), ("won", None)]
    assert event.attempts[1].reason == "first_token"


@whole_and_streamed
async def test_both_together_race_first_and_time_out_later(
    hedge: Hedge, hedgerow_sandbox: SandboxProcess, send: Send
) -> None:
    client = hedge(max_backups=2, delay=0.05, first_token_timeout_s=0.15)
    stall = STALLS["no content"]
    assert await send(client, "32", stall, stall, QUICK | {"text": "third"}) == "third"
    (event,) = await recorded(client)
    assert [attempt.reason for attempt in event.attempts] == ["primary", "first_token", "error"]
    await all_closed(client, hedgerow_sandbox)
    assert outcomes(hedgerow_sandbox, "32") == ["disconnected", "disconnected", "completed"]
