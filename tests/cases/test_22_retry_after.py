"""hermes-agent PR 53918, pi PR 4991: Retry-After was ignored, or obeyed for 16 days.

Right: the target that asked is left alone until then, at most 120 s: no backup goes there for a late attempt. Another key or
base URL is another matter, and so is another model. The caller sees the header.
"""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI
from tests.cases.support import MESSAGES, Hedge, JumpingClock, recorded
from tests.provider_time import Watched
from tests.sdk.racing import QUICK, eventually, outcomes, plain, scripted

import hedgerow
from hedgerow.testing.process import SandboxProcess

SIXTEEN_DAYS_S = 16 * 86_400
ASKS = {
    "seconds": {"retry_after": SIXTEEN_DAYS_S},
    "milliseconds": {"headers": {"retry-after-ms": str(SIXTEEN_DAYS_S * 1000)}},
    "a date": {"retry_after": format_datetime(datetime.now(UTC) + timedelta(days=16), usegmt=True)},
}
BUDGET = {"budget": 1.0, "max_backups": 1}  # hold-offs belong to the budget; this one never runs short


async def call(client: AsyncOpenAI, case: str, *attempts: dict[str, Any], model: str = "m") -> str:
    answer = await client.chat.completions.create(
        model=model, messages=MESSAGES, extra_headers=scripted(case, *attempts)
    )
    return answer.choices[0].message.content or ""


async def pushed_back(client: AsyncOpenAI, status: int = 429, **asks: Any) -> openai.APIStatusError:
    """A call that the provider refuses, its replacement included."""
    with pytest.raises(openai.APIStatusError) as refused:
        await call(client, "22/pushed", {"status": status, **asks})
    assert refused.value.status_code == status
    return refused.value


async def is_backed_up(client: AsyncOpenAI, sandbox: SandboxProcess, case: str, **fields: Any) -> bool:
    """Does a late call get a backup now? It is late until it has one or has been refused one; then a request of somebody else's
    lets it end."""
    hedger, late = hedgerow.hedger_of(client), {"await_arrivals": 2, "first_token_s": 0.0}
    refused = sum(hedger.stats()["refusals"].values())
    called = asyncio.ensure_future(call(client, case, late, QUICK, **fields))
    await eventually(lambda: len(outcomes(sandbox, case)) > 1 or sum(hedger.stats()["refusals"].values()) > refused)
    backed_up = len(outcomes(sandbox, case)) > 1
    if not backed_up:
        async with plain(sandbox) as other:
            await call(other, case, late, QUICK)
    await called
    return backed_up


@pytest.mark.parametrize("asks", ASKS.values(), ids=ASKS)
async def test_sixteen_days_are_obeyed_for_120_seconds(
    hedge: Hedge, hedgerow_sandbox: SandboxProcess, asks: dict[str, Any]
) -> None:
    clock = JumpingClock()
    client = hedge(clock=clock, **BUDGET)
    await pushed_back(client, **asks)
    assert not await is_backed_up(client, hedgerow_sandbox, "22/at once")
    clock.jump(100.0)
    assert not await is_backed_up(client, hedgerow_sandbox, "22/after 100 s")
    clock.jump(20.0)
    assert await is_backed_up(client, hedgerow_sandbox, "22/after 120 s")
    refusals: Any = hedgerow.hedger_of(client).stats()["refusals"]
    assert refusals["rate_limited:127.0.0.1"] >= 2
    plans = [event.plan for event in await recorded(client, 4)]
    assert plans[1:] == ["rate_limited:127.0.0.1"] * 2 + ["hedge"]


@pytest.mark.parametrize(
    ("status", "asks", "held_s"),
    [
        pytest.param(429, {}, 30.0, id="429 that asks nothing"),
        pytest.param(503, {}, 30.0, id="503 that asks nothing"),
        pytest.param(529, {}, 30.0, id="529 that asks nothing"),
        pytest.param(503, {"retry_after": SIXTEEN_DAYS_S}, 120.0, id="503 that asks for days"),
        pytest.param(429, {"retry_after": 7}, 7.0, id="429 that asks for less"),
        pytest.param(429, {"retry_after": "soon"}, 30.0, id="429 that asks for nonsense"),
    ],
)
async def test_how_long_a_target_is_left_alone(
    hedge: Hedge, hedgerow_sandbox: SandboxProcess, status: int, asks: dict[str, Any], held_s: float
) -> None:
    clock = JumpingClock()
    client = hedge(clock=clock, **BUDGET)
    await pushed_back(client, status, **asks)
    clock.jump(held_s - 5.0)
    assert not await is_backed_up(client, hedgerow_sandbox, "22/before")
    clock.jump(5.0)
    assert await is_backed_up(client, hedgerow_sandbox, "22/after")


async def test_a_429_inside_a_200_counts_too(hedge: Hedge, hedgerow_sandbox: SandboxProcess) -> None:
    client = hedge(**BUDGET)
    frame = {"error_frame": {"after": 0, "error": {"code": "rate_limit_exceeded", "message": "slow down"}}}
    answer = await client.chat.completions.with_raw_response.create(
        model="m", messages=MESSAGES, extra_headers=scripted("22/pushed", frame)
    )
    assert "slow down" in answer.text
    assert outcomes(hedgerow_sandbox, "22/pushed") == ["failed"]
    assert not await is_backed_up(client, hedgerow_sandbox, "22/late")


async def test_a_backups_429_holds_its_target_off_too(
    hedge: Hedge, hedgerow_sandbox: SandboxProcess, watched: Watched
) -> None:
    client = hedge(**BUDGET)
    until_told = {"await_arrivals": 3, "first_token_s": 0.1, "text": "own"}
    called = asyncio.ensure_future(call(client, "22/backup", until_told, {"status": 429, "retry_after": 60}))
    await eventually(lambda: watched.heard_of["22/backup"] > 0)
    async with plain(hedgerow_sandbox) as other:
        await call(other, "22/backup", QUICK)
    assert await called == "own"
    assert not await is_backed_up(client, hedgerow_sandbox, "22/late")


async def test_other_models_are_not_held_off(hedge: Hedge, hedgerow_sandbox: SandboxProcess) -> None:
    client = hedge(**BUDGET)
    await pushed_back(client, retry_after=SIXTEEN_DAYS_S)
    assert await is_backed_up(client, hedgerow_sandbox, "22/other", model="another")
    assert not await is_backed_up(client, hedgerow_sandbox, "22/same")


async def test_the_caller_sees_the_header_and_the_sdk_does_not_wait_for_days(
    hedge: Hedge, hedgerow_sandbox: SandboxProcess
) -> None:
    client = hedge(options={"max_retries": 2}, **BUDGET)
    error = await pushed_back(client, retry_after=SIXTEEN_DAYS_S)
    assert isinstance(error, openai.RateLimitError)
    assert error.response.headers["retry-after"] == str(SIXTEEN_DAYS_S)
    assert "x-should-retry" not in error.response.headers
    assert outcomes(hedgerow_sandbox, "22/pushed") == ["failed"]


async def test_another_key_takes_the_backup_and_the_replacement(hedge: Hedge, hedgerow_sandbox: SandboxProcess) -> None:
    client = hedge(backup=hedgerow.Target(api_key="other", name="other-key"), **BUDGET)
    assert await call(client, "22/replaced", {"status": 429, "retry_after": SIXTEEN_DAYS_S}, {"text": "yes"}) == "yes"
    assert await is_backed_up(client, hedgerow_sandbox, "22/late")
    events = await recorded(client, 2)
    assert [attempt.target for event in events for attempt in event.attempts] == ["127.0.0.1", "other-key"] * 2


async def test_another_base_url_takes_the_backup_and_the_replacement(
    hedge: Hedge, hedgerow_sandbox: SandboxProcess, hedgerow_sandbox_factory: Callable[..., SandboxProcess]
) -> None:
    elsewhere = hedgerow_sandbox_factory()
    client = hedge(backup=hedgerow.Target(base_url=f"{elsewhere.url}/v1", api_key="k"), **BUDGET)
    async with plain(elsewhere) as other:
        await call(other, "22/replaced", QUICK)  # so that the script below goes on there with its second arrival
    assert await call(client, "22/replaced", {"status": 429, "retry_after": 60}, {"text": "yes"}) == "yes"
    late = asyncio.ensure_future(call(client, "22/late", {"await_arrivals": 2, "first_token_s": 0.0}))
    await eventually(lambda: len(outcomes(elsewhere, "22/late")) == 1)
    async with plain(hedgerow_sandbox) as other:
        await call(other, "22/late", QUICK)
    await late
    assert outcomes(hedgerow_sandbox, "22/replaced") == ["failed"]
    assert outcomes(hedgerow_sandbox, "22/late") == ["completed", "completed"]
    assert outcomes(elsewhere, "22/replaced") == ["completed", "completed"]
    assert len(outcomes(elsewhere, "22/late")) == 1


@pytest.mark.parametrize(
    "same",
    [
        pytest.param(lambda _: {"set": {"service_tier": "priority"}}, id="another tier"),
        pytest.param(lambda _: {"api_key": "k"}, id="the same key written out"),
        pytest.param(
            lambda sandbox: {"base_url": f"{sandbox.url}/v1", "api_key": "k", "set": {"service_tier": "priority"}},
            id="the same key and base URL written out",
        ),
    ],
)
async def test_a_target_of_the_same_key_and_base_url_is_no_way_round_a_429(
    hedge: Hedge, hedgerow_sandbox: SandboxProcess, same: Callable[[SandboxProcess], dict[str, Any]]
) -> None:
    client = hedge(backup=hedgerow.Target(**same(hedgerow_sandbox)), **BUDGET)
    with pytest.raises(openai.RateLimitError):
        await call(client, "22/pushed", {"status": 429, "retry_after": SIXTEEN_DAYS_S}, QUICK)
    assert outcomes(hedgerow_sandbox, "22/pushed") == ["failed"]
    assert not await is_backed_up(client, hedgerow_sandbox, "22/late")
