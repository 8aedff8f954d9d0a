"""Clients that leave, at any moment and in any way: whatever was done for them ends, and nothing of it is left in the gateway."""

import asyncio
import gc
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.gateway.raw_client import CHAT, LEAVING, RawClient, request_of
from tests.gateway.running import Running, config_of, gateway_in_loop
from tests.sdk.racing import QUICK, eventually, idle, outcomes, scripted

from hedgerow.testing.process import SandboxProcess

Start = Callable[..., Any]

NEVER_S = 200.0
READERS = 1_000
PILES, MOST_BYTES_PER_READER = 20, 2_000_000  # of the 50 MB that each is sent
FLOWING = {"first_token_s": 0.0, "token_s": 0.01, "tokens": 3_000}
STALLED = {"first_token_s": 0.0, "tokens": 9, "token_s": 0.0, "stall": {"after": 3, "s": NEVER_S}}
STUCK = {"first_token_s": NEVER_S}
MOMENTS: dict[str, tuple[bool, list[dict[str, Any]]]] = {
    "whole, before the headers": (False, [{"before_headers_s": NEVER_S}]),
    "whole, during a race": (False, [{"before_headers_s": NEVER_S}, STUCK]),
    "whole, after a backup failed": (False, [STUCK, {"status": 500}]),
    "streamed, before the headers": (True, [{"before_headers_s": NEVER_S}]),
    "streamed, before content": (True, [STUCK]),
    "streamed, during a race": (True, [STUCK, {"before_headers_s": NEVER_S}]),
    "streamed, after a backup failed": (True, [STUCK, {"status": 500}]),
    "mid-stream, tokens flow": (True, [FLOWING]),
    "mid-stream, tokens stall": (True, [STALLED]),
    "mid-stream, a backup won": (True, [STUCK, FLOWING]),
}
every_way_to_leave = pytest.mark.parametrize("how", LEAVING)


@asynccontextmanager
async def nothing_left(gateway: Running, sandbox: SandboxProcess) -> AsyncIterator[None]:
    """What the block begins ends with it: tasks, sockets, races; and the gateway still answers."""
    assert await answered(gateway, "before")
    gc.collect()
    tasks, descriptors = len(asyncio.all_tasks()), in_use(gateway)
    yield
    await idle(sandbox)
    stats = gateway.hedger.stats
    await eventually(lambda: stats()["in_flight"] == 0 and stats()["losers_open"] == 0)
    await eventually(lambda: not gateway.server.server_state.connections and not gateway.server.server_state.tasks)
    await eventually(lambda: len(asyncio.all_tasks()) <= tasks)
    await eventually(lambda: in_use(gateway) <= descriptors)
    assert await answered(gateway, "after")


def in_use(gateway: Running) -> int:
    """Descriptors, but for the connections to targets that are kept ready for the next calls."""
    return psutil.Process().num_fds() - gateway.house.connections.resting


async def answered(gateway: Running, case: str) -> bool:
    client = await RawClient.connect(gateway.url)
    try:
        headers = {"connection": "close", **scripted(case, QUICK | {"text": "well answered"})}
        await client.send(request_of("/v1/chat/completions", CHAT, **headers))
        return b"well answered" in await client.read_to_end()
    finally:
        client.close()


@pytest.mark.parametrize("moment", MOMENTS)
@every_way_to_leave
async def test_whenever_and_however_a_client_leaves_everything_ends(
    start: Start, hedgerow_sandbox: SandboxProcess, moment: str, how: str
) -> None:
    streamed, attempts = MOMENTS[moment]
    gateway = await start({"max_backups": len(attempts) - 1})
    async with nothing_left(gateway, hedgerow_sandbox):
        client = await RawClient.connect(gateway.url)
        try:
            await client.chat("leave", *attempts, stream=streamed)
            await eventually(lambda: len(outcomes(hedgerow_sandbox, "leave")) == len(attempts))
            if moment.startswith("mid-stream"):
                await client.read_until(b"content")
            client.leave(how)
            await idle(hedgerow_sandbox)
        finally:
            client.close()
    failed = [attempt.get("status") for attempt in attempts]
    assert outcomes(hedgerow_sandbox, "leave") == ["failed" if status else "disconnected" for status in failed]
    assert [event.outcome for event in gateway.hedger.events] == ["answered", "caller_left", "answered"]


@pytest.mark.parametrize("share", [0.05, 0.5, 0.97])
@every_way_to_leave
async def test_half_a_request_is_no_request(
    start: Start, hedgerow_sandbox: SandboxProcess, share: float, how: str
) -> None:
    gateway = await start()
    whole = request_of("/v1/chat/completions", CHAT | {"x": "y" * 300})
    async with nothing_left(gateway, hedgerow_sandbox):
        client = await RawClient.connect(gateway.url)
        await client.send(whole[: int(len(whole) * share)])
        await eventually(lambda: len(gateway.server.server_state.connections) >= 1)
        client.leave(how)
        await eventually(lambda: not gateway.server.server_state.connections)
        client.close()
    assert hedgerow_sandbox.stats()["started"] == 2


@every_way_to_leave
async def test_who_stops_reading_and_leaves_ends_it_though_much_is_still_to_be_written(
    start: Start, hedgerow_sandbox: SandboxProcess, how: str
) -> None:
    gateway = await start({"trigger": "off"})
    async with nothing_left(gateway, hedgerow_sandbox):
        client = await RawClient.connect(gateway.url, receive_bytes=4096)
        try:
            await client.chat("flood", {"first_token_s": 0.0, "token_s": 0.0, "tokens": 200_000}, stream=True)
            await client.read_until(b"content")
            await stands_still(hedgerow_sandbox)
            client.leave(how)
            await idle(hedgerow_sandbox)
        finally:
            client.close()
    assert outcomes(hedgerow_sandbox, "flood") == ["disconnected"]


@pytest.mark.alone
async def test_what_slow_readers_do_not_take_piles_up_nowhere(start: Start, hedgerow_sandbox: SandboxProcess) -> None:
    gateway, me = await start({"trigger": "off"}), psutil.Process()
    async with nothing_left(gateway, hedgerow_sandbox):
        before_bytes = me.memory_info().rss
        clients = [await RawClient.connect(gateway.url, receive_bytes=4096) for _ in range(PILES)]
        for client in clients:
            await client.chat("flood", {"first_token_s": 0.0, "token_s": 0.0, "tokens": 200_000}, stream=True)
        await asyncio.gather(*(client.read_until(b"content") for client in clients))
        await stands_still(hedgerow_sandbox)
        assert me.memory_info().rss - before_bytes < PILES * MOST_BYTES_PER_READER
        assert hedgerow_sandbox.stats()["in_flight"] == PILES
        for client in clients:
            client.leave()


async def stands_still(sandbox: SandboxProcess) -> None:
    """Wait until the provider writes no more of what it still has."""
    before = -1
    while (now := sum(entry["tokens"] for entry in sandbox.stats()["cases"]["flood"])) != before:
        before = now
        await asyncio.sleep(0.3)


@pytest.mark.alone
@pytest.mark.timeout(240)
async def test_a_thousand_readers_that_stop_and_vanish_leave_nothing(
    tmp_path: Path, many_sockets: int, hedgerow_sandbox_factory: Callable[..., SandboxProcess]
) -> None:
    readers = min(READERS, many_sockets // 3 - 100)
    sandbox = hedgerow_sandbox_factory()
    script = {"first_token_s": 0.0, "token_s": 0.0, "tokens": 1_500, "stall": {"after": 1_400, "s": 10 * NEVER_S}}
    async with gateway_in_loop(tmp_path, config_of(sandbox, {"trigger": "off"})) as gateway:
        async with nothing_left(gateway, sandbox):
            clients: list[RawClient] = []
            for number in range(readers):
                clients.append(await RawClient.connect(gateway.url, receive_bytes=4096))
                await clients[-1].chat(f"slow/{number % 10}", script, stream=True)
            await eventually(lambda: sandbox.stats()["in_flight"] == readers, patience_s=60.0)
            await asyncio.gather(*(client.read_until(b"content") for client in clients))
            await eventually(lambda: gateway.hedger.stats()["in_flight"] == readers)
            for number, client in enumerate(clients):
                client.leave(LEAVING[number % len(LEAVING)])
            await eventually(lambda: sandbox.stats()["in_flight"] == 0, patience_s=60.0)
            for client in clients:
                client.close()
        assert sandbox.stats()["disconnected"] == readers
        assert gateway.hedger.stats()["outcomes"]["caller_left"] == readers


@pytest.fixture
def many_sockets() -> Iterator[int]:
    """How many this process may open, once it has asked for more."""
    resource = pytest.importorskip("resource", reason="limits are POSIX's")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 10_000 if hard == resource.RLIM_INFINITY else min(10_000, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    yield max(soft, wanted)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
