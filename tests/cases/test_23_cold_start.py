"""hedge-python (tried): a delay of 10 ms for the first 20 calls and after 60 s of idleness, so that those were all doubled.

Right: no duplicate while cold: not before enough samples, not after an idle hour, not in a new process (promise 6). Backups
are counted where they would arrive.
"""

import asyncio
from typing import Any

import pytest
from openai import AsyncOpenAI
from tests.cases.support import NEVER_S, Hedge, JumpingClock, recorded
from tests.sdk.racing import QUICK, ask, eventually, outcomes, plain, stream

import hedgerow
from hedgerow.testing.process import SandboxProcess

ENOUGH = 20
HOUR_S = 3600.0
SLOW = {"first_token_s": 0.3}
NEVER = {"first_token_s": NEVER_S}
BY_QUANTILE = {"delay": "p95+50ms", "max_backups": 1}


def backups(sandbox: SandboxProcess) -> int:
    """Arrivals beyond the first of each case."""
    return sum(len(attempts) - 1 for attempts in sandbox.stats()["cases"].values())


async def calls(client: AsyncOpenAI, name: str, count: int, *attempts: dict[str, Any], send: Any = ask) -> None:
    """So many calls at once, each a case of its own."""
    await asyncio.gather(*(send(client, f"23/{name}/{number}", *attempts) for number in range(count)))


@pytest.mark.parametrize("send", [ask, stream], ids=["whole", "streamed"])
@pytest.mark.parametrize("trigger", ["first_token", "response"])
async def test_the_first_twenty_calls_are_not_doubled_however_slow(
    hedge: Hedge, hedgerow_sandbox: SandboxProcess, send: Any, trigger: str
) -> None:
    client = hedge(trigger=trigger, **BY_QUANTILE)
    await calls(client, "first", ENOUGH - 1, QUICK, send=send)
    await calls(client, "slow", 1, SLOW, send=send)
    assert backups(hedgerow_sandbox) == 0
    assert {event.plan for event in await recorded(client, ENOUGH)} == {"cold"}
    # The twenty-first is known to be late.
    await send(client, "23/late", {"first_token_s": 20.0}, QUICK)
    assert outcomes(hedgerow_sandbox, "23/late") == ["disconnected", "completed"]


async def test_a_burst_before_anything_is_known_is_not_doubled(hedge: Hedge, hedgerow_sandbox: SandboxProcess) -> None:
    client = hedge(**BY_QUANTILE)
    await calls(client, "burst", 60, SLOW)
    assert backups(hedgerow_sandbox) == 0


async def test_what_began_cold_stays_cold_though_others_have_ended_by_then(
    hedge: Hedge, hedgerow_sandbox: SandboxProcess
) -> None:
    client = hedge(**BY_QUANTILE)
    slow = asyncio.ensure_future(ask(client, "23/began cold", SLOW))
    await calls(client, "meanwhile", 2 * ENOUGH, {"first_token_s": 0.0})
    await slow
    assert len(outcomes(hedgerow_sandbox, "23/began cold")) == 1


async def test_after_an_idle_hour_usual_calls_are_not_doubled(hedge: Hedge, hedgerow_sandbox: SandboxProcess) -> None:
    clock = JumpingClock()
    client = hedge(clock=clock, delay="p95+300ms", max_backups=1)
    await calls(client, "before", ENOUGH, QUICK)
    clock.jump(HOUR_S)
    await calls(client, "after", ENOUGH, QUICK)
    assert backups(hedgerow_sandbox) == 0
    await ask(client, "23/late", {"first_token_s": 20.0}, QUICK)
    assert outcomes(hedgerow_sandbox, "23/late") == ["disconnected", "completed"]


async def test_a_window_in_time_that_has_run_empty_is_cold_again(
    hedge: Hedge, hedgerow_sandbox: SandboxProcess
) -> None:
    clock = JumpingClock()
    client = hedge(clock=clock, window="30m", **BY_QUANTILE)
    await calls(client, "before", 2 * ENOUGH, QUICK)
    clock.jump(HOUR_S)
    doubled_before = backups(hedgerow_sandbox)
    await calls(client, "after", ENOUGH, SLOW)
    assert backups(hedgerow_sandbox) == doubled_before
    assert {event.plan for event in (await recorded(client, 3 * ENOUGH))[-ENOUGH:]} == {"cold"}


async def test_idle_time_fills_no_bucket_so_a_slow_morning_is_bounded(
    hedge: Hedge, hedgerow_sandbox: SandboxProcess
) -> None:
    clock = JumpingClock()
    client = hedge(clock=clock, budget=0.05, max_backups=1)
    await calls(client, "evening", 2 * ENOUGH, QUICK)
    clock.jump(12 * HOUR_S)
    # Each waits for a third request of its case, which the test sends when all have asked for a backup: a backup that won would
    # be paid back.
    until_told, hedger = {"await_arrivals": 3, "first_token_s": 0.0}, hedgerow.hedger_of(client)
    morning = asyncio.ensure_future(calls(client, "morning", 40, until_told, NEVER))
    await eventually(lambda: backups(hedgerow_sandbox) + sum(hedger.stats()["refusals"].values()) >= 40)
    sent = backups(hedgerow_sandbox)
    async with plain(hedgerow_sandbox) as other:
        for number in range(40):
            for _ in range(2):
                await ask(other, f"23/morning/{number}", QUICK)
    await morning
    assert 1 <= sent <= 2 + 0.05 * 80
    budget: Any = hedger.stats()["budget"]
    assert budget["requests"] == 80


async def test_a_new_process_begins_cold(hedge: Hedge, hedgerow_sandbox: SandboxProcess) -> None:
    await calls(hedge(**BY_QUANTILE), "old", 2 * ENOUGH, QUICK)
    doubled_before = backups(hedgerow_sandbox)
    await calls(hedge(**BY_QUANTILE), "new", ENOUGH, SLOW)
    assert backups(hedgerow_sandbox) == doubled_before
