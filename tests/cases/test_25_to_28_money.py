"""Money, on the wire: what events say of a cost, against the sandbox's own bill.

25. sub2api 4408: a loser that delivered nothing was billed in full. Right: cost is a range.
26. llmr 48: a dropped call's cost was missing, and the total was still called exact. Right: totals carry their kind.
27. llmgateway PR 3331: a client that left before the usage frame counted as zero. Right: what was seen is counted.
28. TokenHub PR 47: moving a conversation to another account lost its prompt cache. Right: large cached prompts are not backed up
    elsewhere by default. (The arithmetic of all four is in tests/unit/cost/test_money_cases.py.)
"""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from openai import AsyncOpenAI
from tests.cases.support import all_closed, opened
from tests.sdk.racing import eventually, outcomes, plain, scripted

import hedgerow
from hedgerow.testing.process import SandboxProcess

SLOW = {"first_token_s": 20.0, "tokens": 30}
QUICK = {"first_token_s": 0.01, "tokens": 30}
PROMPT: Any = [{"role": "user", "content": "Tell me a story of some length, please. " * 20}]
PRICES = [hedgerow.PriceRule(model="m", input=1.0, output=4.0)]  # those of the sandbox's quick profile


@pytest.fixture
async def client(hedgerow_sandbox: SandboxProcess) -> AsyncIterator[AsyncOpenAI]:
    policy = hedgerow.Policy(trigger="first_token", delay=0.05, budget="off", max_backups=1)
    async with hedgerow.hedged(plain(hedgerow_sandbox), policy=policy, prices=PRICES) as hedged:
        yield hedged


async def told(client: AsyncOpenAI) -> hedgerow.Event:
    """The event of the only call, once it is over."""
    hedger = hedgerow.hedger_of(client)
    await eventually(lambda: hedger.stats()["in_flight"] == 0)
    (event,) = hedger.events
    return event


async def test_25_a_loser_that_delivered_nothing_is_a_range_that_holds_either_way_of_billing(
    client: AsyncOpenAI, hedgerow_sandbox: SandboxProcess
) -> None:
    await client.chat.completions.create(model="m", messages=PROMPT, extra_headers=scripted("25", SLOW, QUICK))
    await all_closed(client, hedgerow_sandbox)
    event = await told(client)
    (lost,) = [entry for entry in hedgerow_sandbox.stats()["cases"]["25"] if entry["outcome"] == "disconnected"]
    so_far_usd = lost["input_tokens"] * 1e-6
    full_usd = so_far_usd + lost["planned_tokens"] * 4e-6
    loser = event.attempts[0]
    assert loser.cost_low_usd is not None
    assert loser.cost_high_usd is not None
    assert loser.cost_low_usd <= so_far_usd * 1.05
    assert loser.cost_high_usd >= full_usd * 0.95


async def test_26_a_total_with_an_estimate_in_it_is_called_an_estimate(client: AsyncOpenAI) -> None:
    await client.chat.completions.create(model="m", messages=PROMPT, extra_headers=scripted("26", SLOW, QUICK))
    event = await told(client)
    assert "estimated" in (event.price_source or "")
    assert event.cost_low_usd != event.cost_high_usd


async def test_27_a_caller_who_leaves_before_the_usage_frame_has_cost_what_was_seen(client: AsyncOpenAI) -> None:
    chunks = await opened(client, "27", {"first_token_s": 0.0, "token_s": 0.01, "tokens": 400})
    for _ in range(30):
        await anext(chunks)
    await chunks.close()
    event = await told(client)
    assert event.attempts[0].tokens_seen >= 20
    assert event.cost_low_usd is not None
    assert event.cost_low_usd >= 20 * 4e-6


async def test_28_a_large_cached_prompt_is_backed_up_at_home_not_elsewhere(
    hedgerow_sandbox: SandboxProcess, hedgerow_sandbox_factory: Callable[..., SandboxProcess]
) -> None:
    elsewhere = hedgerow_sandbox_factory()
    policy = hedgerow.Policy(trigger="first_token", delay=0.05, budget="off", max_backups=1)
    backup = hedgerow.Target(base_url=f"{elsewhere.url}/v1", api_key="theirs")
    cached = {**QUICK, "usage": {"input_tokens": 9000, "output_tokens": 30, "cached_tokens": 8000}}
    async with hedgerow.hedged(plain(hedgerow_sandbox), policy=policy, backup=backup) as client:

        async def call(case: str, *scripts: dict[str, Any]) -> None:
            await client.chat.completions.create(model="m", messages=PROMPT, extra_headers=scripted(case, *scripts))

        await call("28/small", {"first_token_s": 0.3}, QUICK)
        assert len(outcomes(elsewhere, "28/small")) == 1
        for number in range(10):
            await call(f"28/cached/{number}", cached)
        await call("28/large", SLOW, QUICK)
        assert outcomes(elsewhere, "28/large") == []
        await eventually(lambda: outcomes(hedgerow_sandbox, "28/large") == ["disconnected", "completed"])
