"""A thousand races (`make soak`: five thousand), losers cancelled and callers leaving at random: nothing is left, no pool wedges.

What is left is read where it cannot be talked away: the sandbox's own counters (another process), the kernel's count of this
process's descriptors, and asyncio's list of tasks.
"""

import asyncio
import gc
import random
from typing import Any

import httpx
import psutil
import pytest
from openai import AsyncOpenAI
from tests.sdk.racing import ask, eventually, idle, limits, plain, racing, scripted, stream

import hedgerow
from hedgerow.clock import SystemClock
from hedgerow.testing.process import SandboxProcess

MANY = pytest.param(5_000, marks=pytest.mark.soak)
WORKERS = 40
TEN_PLACES = [
    pytest.param(lambda: {"limits": limits(10)}, id="httpx2"),
    pytest.param(
        lambda: {"http_client": httpx.AsyncClient(limits=httpx.Limits(max_connections=10))},
        id="httpx",
        marks=pytest.mark.soak,  # half a minute; case 9 has some hundred of them
    ),
]
SHAPES = [
    [{"first_token_s": 0.25}, {"first_token_s": 0.005}],  # the backup wins
    [{"first_token_s": 0.04}, {"first_token_s": 0.25}],  # the primary wins a race
    [{"first_token_s": 0.002}],  # no race
    [{"status": 500}, {"first_token_s": 0.005}],  # a failure is replaced
    [{"first_token_s": 0.25}, {"status": 503}, {"first_token_s": 0.005}],
    [{"first_token_s": 0.002, "tokens": 4, "stall": {"after": 2, "s": 0.4}}, {"first_token_s": 0.002}],
]


async def one_call(client: AsyncOpenAI, number: int, rng: random.Random) -> None:
    shape = rng.choice(SHAPES)
    send = stream if rng.random() < 0.5 else ask
    call = asyncio.ensure_future(send(client, f"many/{number}", *shape))
    if rng.random() < 0.3:
        await asyncio.sleep(rng.random() * 0.06)
        call.cancel()
    await asyncio.wait([call])
    if not call.cancelled():
        assert call.exception() is None


async def break_off(client: AsyncOpenAI, number: int, rng: random.Random) -> None:
    """Streams that are left after the first chunk: closed, or just forgotten."""
    chunks = await client.chat.completions.create(
        model="m",
        messages=[{"role": "user", "content": "hi"}],
        stream=True,
        extra_headers=scripted(f"left/{number}", {"first_token_s": 0.002, "token_s": 0.2, "tokens": 50}),
    )
    async for _ in chunks:
        break
    if rng.random() < 0.5:
        await chunks.close()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("races", [1_000, MANY])
async def test_after_many_races_nothing_is_left(hedgerow_sandbox: SandboxProcess, races: int) -> None:
    me, rng = psutil.Process(), random.Random(7)
    async with plain(hedgerow_sandbox) as warm:
        await ask(warm, "warm/0", {})  # whatever the SDK opens once
    gc.collect()
    base_descriptors, base_tasks = me.num_fds(), len(asyncio.all_tasks())
    client = racing(hedgerow_sandbox, delay=0.02, clock=SystemClock())
    numbers = iter(range(races))

    async def worker() -> None:
        for number in numbers:
            await (break_off if number % 10 == 0 else one_call)(client, number, rng)

    await asyncio.gather(*(worker() for _ in range(WORKERS)))
    gc.collect()
    hedger = hedgerow.hedger_of(client)
    await idle(hedgerow_sandbox)
    await eventually(lambda: hedger.stats()["in_flight"] == 0)
    stats, seen = hedger.stats(), hedgerow_sandbox.stats()
    assert races * 0.9 < stats["requests"] <= races  # a call cancelled before it began was none
    assert stats["backups"] > races / 10  # how many depends on how busy the machine is
    assert stats["losers_open"] == 0
    assert sum(stats["outcomes"].values()) == stats["requests"]
    attempts = [attempt for case in seen["cases"].values() for attempt in case]
    assert all(attempt["ended_s"] is not None for attempt in attempts)
    assert sum(attempt["outcome"] == "disconnected" for attempt in attempts) > races / 10
    await client.close()
    await eventually(lambda: len(asyncio.all_tasks()) <= base_tasks)
    await eventually(lambda: me.num_fds() <= base_descriptors)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("races", [1_000, MANY])
@pytest.mark.parametrize("options", TEN_PLACES)
async def test_a_pool_of_ten_with_twenty_workers_never_wedges(
    hedgerow_sandbox: SandboxProcess, options: Any, races: int
) -> None:
    client = hedgerow.hedged(
        plain(hedgerow_sandbox, **options()),
        policy=hedgerow.Policy(trigger="first_token", delay=0.02, budget="off", max_backups=1),
        clock=SystemClock(),
    )
    numbers, rng = iter(range(races)), random.Random(9)

    async def worker() -> None:
        for number in numbers:
            await one_call(client, number, rng)

    await asyncio.gather(*(worker() for _ in range(20)))
    for number in range(10):
        assert await ask(client, f"after/{number}", {"text": "still here"}) == "still here"
    await client.close()
