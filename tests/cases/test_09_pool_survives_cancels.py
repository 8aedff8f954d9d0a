"""httpcore 1093 (1.0.9 wedges: every slot of the pool stuck): cancelled attempts ate the connection pool.

Right: a pool of ten under twenty workers serves hundreds of races whose losers and callers are cancelled at any moment, and
then ten plain calls (tests/sdk/test_many_races.py does many). A place that nobody gets is a pool time-out that says so. So it
is over httpx2 and for clients of classic httpx, whose own pool, httpcore's, is not used for that very reason. Threads cannot be
cancelled: they leave by a time-out, or a stream after its first chunk.
"""

import asyncio
import random
from collections.abc import Callable
from typing import Any

import httpx
import httpx2
import openai
import pytest
from openai import OpenAI
from tests.cases.support import MESSAGES, NEVER_S, Hedge, all_closed
from tests.sdk.racing import QUICK, ask, eventually, limits, plain, scripted, stream
from tests.sdk.threaded import in_thread

from hedgerow.clock import SystemClock
from hedgerow.testing.process import SandboxProcess

pytestmark = pytest.mark.library_only(reason="the pool is the SDK's; the gateway's own has no limit")

Places = Callable[..., dict[str, Any]]
STUCK = {"first_token_s": NEVER_S}
SLOWER = {"first_token_s": 0.1}
RACES_OF_THREADS = 400  # some five seconds; each is as many calls again as it has losers


@pytest.fixture(params=["httpx2", "httpx"])
def places(request: pytest.FixtureRequest) -> Places:
    """The options of a client with so many connections."""
    sync = request.node.callspec.params["hedge"] == "sync"

    def options(connections: int, **others: Any) -> dict[str, Any]:
        if request.param == "httpx2":
            return {"limits": limits(connections), **others}
        kind = httpx.Client if sync else httpx.AsyncClient
        inside = kind(limits=httpx.Limits(max_connections=connections), timeout=None)
        return {"http_client": inside, **others}

    return options


@pytest.mark.async_only(reason="callers leave by being cancelled; threads have the next test")
async def test_ten_places_twenty_workers_and_then_ten_plain_calls(
    hedge: Hedge, hedgerow_sandbox: SandboxProcess, places: Places
) -> None:
    client = hedge(delay=0.01, options=places(10), clock=SystemClock())
    numbers, rng = iter(range(300)), random.Random(3)

    async def worker() -> None:
        for number in numbers:
            send = ask if number % 2 else stream
            call = asyncio.ensure_future(send(client, f"9/{number}", SLOWER, QUICK))
            if rng.random() < 0.5:
                await asyncio.sleep(rng.random() * 0.03)
                call.cancel()
            await asyncio.wait([call])
            assert call.cancelled() or call.exception() is None

    await asyncio.gather(*(worker() for _ in range(20)))
    assert await asyncio.gather(*(ask(client, f"9/after/{n}", {"text": "here"}) for n in range(10))) == ["here"] * 10
    await all_closed(client, hedgerow_sandbox)


@pytest.mark.timeout(300)
@pytest.mark.sync_only(reason="callers leave as threads can; tasks have the test before")
async def test_ten_places_twenty_threads_and_then_ten_plain_calls(
    hedge: Hedge, hedgerow_sandbox: SandboxProcess
) -> None:
    client: Any = hedge(delay=0.01, options={"limits": limits(10)}, clock=SystemClock())
    numbers = iter(range(RACES_OF_THREADS))

    def worker() -> None:
        for number in numbers:
            one_of_a_thread(client.sync, number)

    await asyncio.gather(*(in_thread(worker) for _ in range(20)))
    assert await asyncio.gather(*(ask(client, f"9/after/{n}", {"text": "here"}) for n in range(10))) == ["here"] * 10
    await all_closed(client, hedgerow_sandbox)
    stats: Any = client.hedger.stats()
    assert stats["requests"] == sum(stats["outcomes"].values()) == RACES_OF_THREADS + 10
    assert stats["backups"] > RACES_OF_THREADS / 2


def one_of_a_thread(client: OpenAI, number: int) -> None:
    """Every other call is streamed, and every fourth of each kind is left by its caller."""
    rng, leaves = random.Random(number), number % 8 < 2
    fields: Any = {"model": "m", "messages": MESSAGES, "extra_headers": scripted(f"9/{number}", SLOWER, QUICK)}
    if number % 2:
        with client.chat.completions.create(stream=True, **fields) as chunks:
            for _ in chunks:
                if leaves:
                    break
    elif leaves:
        patience = httpx2.Timeout(NEVER_S, read=rng.uniform(0.001, 0.03))
        try:
            client.chat.completions.create(timeout=patience, **fields)
        except openai.APITimeoutError:
            pass
    else:
        client.chat.completions.create(**fields)


@pytest.mark.async_only(reason="the queue is left by cancelling; threads leave it by a pool time-out, in the next test")
async def test_callers_who_leave_the_queue_for_a_place_take_none(
    hedge: Hedge, hedgerow_sandbox: SandboxProcess, places: Places
) -> None:
    client = hedge(delay=0.01, options=places(2))
    stuck = [asyncio.ensure_future(ask(client, f"9/stuck/{n}", STUCK)) for n in range(2)]
    await eventually(lambda: hedgerow_sandbox.stats()["in_flight"] == 2)
    queued = [asyncio.ensure_future(ask(client, f"9/queued/{n}", QUICK)) for n in range(20)]
    await asyncio.sleep(0.05)
    for call in queued + stuck:
        call.cancel()
    await asyncio.wait(queued + stuck)
    assert await asyncio.gather(*(ask(client, f"9/after/{n}", {"text": "here"}) for n in range(2))) == ["here"] * 2
    await all_closed(client, hedgerow_sandbox)
    assert not any(case.startswith("9/queued") for case in hedgerow_sandbox.stats()["cases"])


async def test_callers_whose_patience_with_the_queue_ends_take_no_place(
    hedge: Hedge, hedgerow_sandbox: SandboxProcess
) -> None:
    client = hedge(max_backups=0, options={"limits": limits(2), "timeout": httpx2.Timeout(NEVER_S, pool=0.05)})
    until_another = {"await_arrivals": 2, "first_token_s": 0.0}
    busy = [asyncio.ensure_future(ask(client, f"9/busy/{n}", until_another)) for n in range(2)]
    await eventually(lambda: hedgerow_sandbox.stats()["in_flight"] == 2)
    queued = await asyncio.gather(*(ask(client, f"9/queued/{n}", QUICK) for n in range(20)), return_exceptions=True)
    assert {type(late) for late in queued} == {openai.APITimeoutError}
    async with plain(hedgerow_sandbox) as other:
        for number in range(2):
            await ask(other, f"9/busy/{number}", QUICK)
    await asyncio.gather(*busy)
    assert await asyncio.gather(*(ask(client, f"9/after/{n}", {"text": "here"}) for n in range(2))) == ["here"] * 2
    await all_closed(client, hedgerow_sandbox)
    assert not any(case.startswith("9/queued") for case in hedgerow_sandbox.stats()["cases"])


async def test_a_pool_time_out_says_so_by_name(hedge: Hedge, hedgerow_sandbox: SandboxProcess, places: Places) -> None:
    patience = httpx2.Timeout(NEVER_S, pool=0.05)
    client = hedge(options=places(1, timeout=patience), max_backups=1)
    until_another = {"await_arrivals": 2, "first_token_s": 0.0}
    busy = asyncio.ensure_future(ask(client, "9/busy", until_another))
    await eventually(lambda: hedgerow_sandbox.stats()["in_flight"] == 1)
    with pytest.raises(openai.APITimeoutError) as late:
        await ask(client, "9/late", QUICK)
    assert "1 of 1 busy" in str(late.value.__cause__)
    async with plain(hedgerow_sandbox) as other:  # a thread cannot be called off: it would try again in the next test
        await ask(other, "9/busy", QUICK)
    await busy
