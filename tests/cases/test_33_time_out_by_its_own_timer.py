"""LiteLLM 19909: a time-out for the first token was noticed only when the late chunk came.

Right: the timers are independent of what arrives. Headers and a role chunk that come at once, pings that keep coming, or
nothing at all: the time-out fires when it is due, and the late chunk, which would come after 30 s, is never waited for.
"""

from typing import Any

import pytest
from openai import AsyncOpenAI
from tests.cases.support import NEVER_S, Hedge, all_closed, chunk, opened, raw, recorded, then_stalls, times_out, tokens
from tests.sdk.racing import QUICK, ask, outcomes, stream

from hedgerow.testing.process import SandboxProcess

LIMIT_S = 0.2
BEFORE_CONTENT: dict[str, dict[str, Any]] = {
    "role chunk, then silence": {"first_token_s": NEVER_S},
    "headers, then silence": {"first_token_s": NEVER_S, "role_chunk": False},
    "pings without end": {"first_token_s": NEVER_S, "pings": {"every_s": 0.02, "count": 5000}},
    "empty deltas, then silence": then_stalls(raw(chunk({"role": "assistant"}), chunk({"content": ""}))),
    "role chunk in bits": {"first_token_s": NEVER_S, "chunk_bytes": 1},
}
TIME_OUTS = ["first_token_timeout_s", "attempt_timeout_s"]


@pytest.mark.parametrize("time_out", TIME_OUTS)
@pytest.mark.parametrize("stall", BEFORE_CONTENT.values(), ids=BEFORE_CONTENT)
async def test_the_stalled_attempt_is_replaced_before_its_late_chunk(
    hedge: Hedge, hedgerow_sandbox: SandboxProcess, stall: dict[str, Any], time_out: str
) -> None:
    client = hedge(trigger="off", max_backups=1, **{time_out: LIMIT_S})
    assert await stream(client, "33", stall, QUICK | {"text": "in time"}) == "in time"
    await all_closed(client, hedgerow_sandbox)
    assert outcomes(hedgerow_sandbox, "33") == ["disconnected", "completed"]
    assert tokens(hedgerow_sandbox, "33")[0] == 0
    (event,) = await recorded(client)
    stalled, replacement = event.attempts
    assert stalled.headers_s is not None
    assert (stalled.outcome, stalled.error) == ("failed", time_out.removesuffix("_s"))
    assert replacement.started_s >= LIMIT_S


@pytest.mark.parametrize("time_out", [*TIME_OUTS, "timeout_s"])
@pytest.mark.parametrize("stall", BEFORE_CONTENT.values(), ids=BEFORE_CONTENT)
async def test_without_a_replacement_the_caller_gets_the_time_out_then(
    hedge: Hedge, hedgerow_sandbox: SandboxProcess, stall: dict[str, Any], time_out: str
) -> None:
    client = hedge(trigger="off", max_backups=0, **{time_out: LIMIT_S})
    with times_out(client):
        await stream(client, "33", stall)
    await all_closed(client, hedgerow_sandbox)
    assert outcomes(hedgerow_sandbox, "33") == ["disconnected"]
    assert tokens(hedgerow_sandbox, "33") == [0]


async def test_a_late_first_token_of_a_backup_is_timed_from_the_backups_own_start(hedge: Hedge) -> None:
    client = hedge(delay=0.3, max_backups=1, first_token_timeout_s=0.6)
    # 0.4 s after the backup's start is 0.7 s after the call's: later than the primary's limit, within the backup's own.
    in_its_own_time = {"first_token_s": 0.4, "text": "backup"}
    assert await stream(client, "33", {"first_token_s": NEVER_S}, in_its_own_time) == "backup"
    (event,) = await recorded(client)
    assert [(attempt.outcome, attempt.error) for attempt in event.attempts] == [
        ("failed", "first_token_timeout"),
        ("won", None),
    ]


async def test_the_whole_calls_limit_fires_in_a_stalled_delivery(
    hedge: Hedge, hedgerow_sandbox: SandboxProcess
) -> None:
    client = hedge(trigger="off", timeout_s=LIMIT_S)
    stalls_later = {"first_token_s": 0.0, "token_s": 0.0, "tokens": 50, "stall": {"after": 3, "s": NEVER_S}}
    chunks = await opened(client, "33", stalls_later)
    with times_out(client):
        [_ async for _ in chunks]
    await all_closed(client, hedgerow_sandbox)
    assert (outcomes(hedgerow_sandbox, "33"), tokens(hedgerow_sandbox, "33")) == (["disconnected"], [3])
    (event,) = await recorded(client)
    assert event.outcome == "deadline"


@pytest.mark.parametrize("stall", [{"before_headers_s": NEVER_S}, {"first_token_s": NEVER_S}])
@pytest.mark.parametrize("time_out", [*TIME_OUTS, "timeout_s"])
async def test_calls_that_are_not_streamed_are_timed_alike(
    hedge: Hedge, hedgerow_sandbox: SandboxProcess, stall: dict[str, Any], time_out: str
) -> None:
    client: AsyncOpenAI = hedge(trigger="off", max_backups=0, **{time_out: LIMIT_S})
    with times_out(client):
        await ask(client, "33", stall)
    await all_closed(client, hedgerow_sandbox)
    assert outcomes(hedgerow_sandbox, "33") == ["disconnected"]
