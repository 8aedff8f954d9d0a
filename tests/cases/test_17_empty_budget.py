"""failsafe-go 141: an empty budget killed attempts that were running.

Right: it only refuses new ones. What runs, runs on; and may win.
"""

import asyncio
from typing import Any

from tests.cases.support import NEVER_S, Hedge, Send, all_closed, recorded, whole_and_streamed
from tests.sdk.racing import ask, eventually, outcomes

import hedgerow
from hedgerow.testing.process import SandboxProcess

STUCK = {"first_token_s": NEVER_S}
RESCUE = {"first_token_s": 0.4, "text": "rescued"}
SLOW_BUT_SOUND = {"first_token_s": 0.2, "text": "by itself"}


@whole_and_streamed
async def test_running_backups_go_on_and_win_after_the_budget_has_run_out(
    hedge: Hedge, hedgerow_sandbox: SandboxProcess, send: Send
) -> None:
    client = hedge(budget=0.0)  # two tokens from the start, and never another
    rescued = [asyncio.ensure_future(send(client, f"17/{number}", STUCK, RESCUE)) for number in range(2)]
    await eventually(lambda: hedgerow_sandbox.stats()["started"] >= 2)
    hedger: Any = hedgerow.hedger_of(client)
    await eventually(lambda: hedger.stats()["budget"]["bucket"] == 0)
    assert await send(client, "17/late", SLOW_BUT_SOUND) == "by itself"
    assert await asyncio.gather(*rescued) == ["rescued", "rescued"]
    await all_closed(client, hedgerow_sandbox)
    assert outcomes(hedgerow_sandbox, "17/late") == ["completed"]
    assert [outcomes(hedgerow_sandbox, f"17/{number}") for number in range(2)] == [["disconnected", "completed"]] * 2
    assert set(hedger.stats()["refusals"]) == {"budget"}
    assert [event.plan for event in await recorded(client, 3)] == ["budget", "hedge", "hedge"]


@whole_and_streamed
async def test_a_refused_second_backup_leaves_the_two_that_run_alone(
    hedge: Hedge, hedgerow_sandbox: SandboxProcess, send: Send
) -> None:
    client = hedge(budget=0.05)  # a second backup needs five tokens
    primary, backup = {"await_arrivals": 2, "first_token_s": 0.45, "text": "primary"}, STUCK
    assert await send(client, "17", primary, backup, STUCK) == "primary"
    await all_closed(client, hedgerow_sandbox)
    assert hedgerow.hedger_of(client).stats()["refusals"] == {"budget": 1}
    assert outcomes(hedgerow_sandbox, "17") == ["completed", "disconnected"]


async def test_tokens_that_come_back_pay_for_new_attempts(hedge: Hedge, hedgerow_sandbox: SandboxProcess) -> None:
    client = hedge(budget=0.0)
    for number in range(6):  # each backup wins, so each token comes back
        assert await ask(client, f"17/{number}", STUCK, RESCUE | {"first_token_s": 0.0}) == "rescued"
    assert all(outcomes(hedgerow_sandbox, f"17/{number}")[1] == "completed" for number in range(6))
