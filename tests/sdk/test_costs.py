"""What a request cost, as its event tells: measured, bounded, or unknown; never 0 for want of knowing."""

import pytest
from tests.sdk.racing import QUICK, SLOW, ask, eventually, plain, stream

import hedgerow
from hedgerow.testing.process import SandboxProcess

PRICES = [hedgerow.PriceRule(model="m", input=1.0, output=2.0)]
SOON = hedgerow.Policy(trigger="first_token", delay=0.05, budget="off", max_backups=1)


async def test_a_lone_call_costs_what_the_provider_counted(hedgerow_sandbox: SandboxProcess) -> None:
    async with hedgerow.hedged(plain(hedgerow_sandbox), prices=PRICES) as client:
        await ask(client, "lone/1", {"tokens": 10})
        (event,) = hedgerow.hedger_of(client).events
        attempt = event.attempts[0]
        assert attempt.input_tokens is not None
        cost_usd = (attempt.input_tokens * 1.0 + attempt.output_tokens * 2.0) / 1e6
        assert event.winner_cost_usd == pytest.approx(cost_usd)
        assert event.cost_low_usd == event.cost_high_usd == pytest.approx(cost_usd)
        assert event.price_source == "user"


async def test_a_loser_costs_between_its_input_and_a_long_answer(hedgerow_sandbox: SandboxProcess) -> None:
    async with hedgerow.hedged(plain(hedgerow_sandbox), prices=PRICES, policy=SOON) as client:
        await ask(client, "race/1", SLOW, {**QUICK, "tokens": 20})
        (event,) = hedgerow.hedger_of(client).events
        loser, winner = event.attempts
        assert loser.outcome == "lost"
        assert 0 < loser.cost_low_usd < loser.cost_high_usd  # type: ignore[operator]
        assert event.cost_low_usd == pytest.approx(loser.cost_low_usd + winner.cost_low_usd)
        assert event.cost_high_usd == pytest.approx(loser.cost_high_usd + winner.cost_high_usd)
        assert "estimated" in (event.price_source or "")


async def test_a_total_with_an_unknown_price_in_it_is_unknown_and_says_so(hedgerow_sandbox: SandboxProcess) -> None:
    async with hedgerow.hedged(plain(hedgerow_sandbox), policy=SOON) as client:
        await ask(client, "unknown/1", {})
        (event,) = hedgerow.hedger_of(client).events
        assert (event.cost_low_usd, event.cost_high_usd, event.winner_cost_usd) == (None, None, None)
        assert "unknown" in (event.price_source or "")


async def test_a_caller_who_leaves_before_the_usage_is_not_free(hedgerow_sandbox: SandboxProcess) -> None:
    async with hedgerow.hedged(plain(hedgerow_sandbox), prices=PRICES) as client:
        chunks = await client.chat.completions.create(
            model="m",
            messages=[{"role": "user", "content": "Say hello to everybody, one after the other."}],
            stream=True,
            extra_headers={"x-sandbox-case": "left/1", "x-sandbox-script": '[{"tokens":500,"token_s":0.01}]'},
        )
        async for _ in chunks:
            break
        await chunks.close()
        await eventually(lambda: hedgerow.hedger_of(client).stats()["in_flight"] == 0)
        (event,) = hedgerow.hedger_of(client).events
        assert event.outcome == "caller_left"
        assert event.cost_low_usd is not None
        assert event.cost_low_usd > 0


async def test_prices_are_loaded_in_the_background_and_events_come_all_the_same(
    hedgerow_sandbox: SandboxProcess,
) -> None:
    seen: list[hedgerow.Event] = []
    async with hedgerow.hedged(plain(hedgerow_sandbox)) as client:
        hedgerow.hedger_of(client).subscribe(seen.append)
        for number in range(5):
            await stream(client, f"many/{number}", {})
    assert len(seen) == 5
