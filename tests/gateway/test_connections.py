"""Spare connections: what a closed loser took with it is there again for the next race, and nobody gets more than he needs."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import httpx2
from tests.gateway.running import Running
from tests.gateway.upstreams import answer
from tests.sdk.racing import PATIENCE_S, QUICK, eventually, scripted

from hedgerow.clock import ManualClock
from hedgerow.gateway.addresses import Origin
from hedgerow.gateway.connection import Answer
from hedgerow.gateway.connections import Connections
from hedgerow.race.attempt import Attempt

Start = Callable[..., Any]

CHAT = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
ASKED = b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n{}"
ANSWER = answer(b'{"choices":[{"index":0,"finish_reason":"stop","message":{"content":"yes"}}]}')
HALF_AN_ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf"
MOST_RACES = 30
SETTLED_S = 0.2


class Mute:
    """A provider that never answers, unless a test says so. `heard`: what came over each connection, in order; `open`: how many
    stand now; `says`: said at once on a connection, unasked; `answers`: to any request."""

    def __init__(self) -> None:
        self.port, self.open, self.says, self.answers = 0, 0, b"", b""
        self.heard: list[bytes] = []
        self.writers: list[asyncio.StreamWriter] = []

    @property
    def silent(self) -> int:
        return self.heard.count(b"")

    def has_silent(self, count: int) -> bool:
        return self.silent == count

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = len(self.heard)
        self.heard.append(b"")
        self.writers.append(writer)
        self.open += 1
        writer.write(self.says)
        try:
            while data := await reader.read(65_536):
                self.heard[number] += data
                writer.write(self.answers)
        except ConnectionError:
            pass
        finally:
            self.open -= 1
            writer.close()


@asynccontextmanager
async def mute() -> AsyncIterator[tuple[Mute, asyncio.Server]]:
    provider = Mute()
    server = await asyncio.start_server(provider.serve, "127.0.0.1", 0)
    provider.port = server.sockets[0].getsockname()[1]
    try:
        yield provider, server
    finally:
        server.close()
        for writer in provider.writers:
            writer.close()
        await asyncio.gather(*(writer.wait_closed() for writer in provider.writers), return_exceptions=True)


async def in_front_of(provider: Mute, start: Start) -> Running:
    target = {"name": "t", "dialect": "openai", "base_url": f"http://127.0.0.1:{provider.port}/v1", "api_key": "k"}
    route = {"path": "/v1/*", "targets": ["t"], "policy": "soon"}
    return await start({"max_backups": 0}, target=[target], route=[route])


async def ask_and_leave(gateway: Running, provider: Mute) -> None:
    """A client that leaves when its request is at the provider's: its attempt is cut off as a loser is."""
    before = sum(map(len, provider.heard))
    _, writer = await asyncio.open_connection("127.0.0.1", int(gateway.url.rpartition(":")[2]))
    writer.write(ASKED)
    await eventually(lambda: sum(map(len, provider.heard)) > before)
    calls = len(list(gateway.hedger.events))
    writer.close()
    await writer.wait_closed()
    await eventually(lambda: len(list(gateway.hedger.events)) > calls)


def connections_of(gateway: Running) -> list[str | None]:
    """Of the last request's attempts: "new" or "reused"."""
    return [attempt.connection for attempt in list(gateway.hedger.events)[-1].attempts]


async def test_after_a_closed_loser_the_next_race_finds_both_connections_open(
    start: Start,
) -> None:
    gateway = await start()
    seen: list[list[str | None]] = []
    async with httpx2.AsyncClient(timeout=PATIENCE_S) as client:
        while ["reused", "reused"] not in seen:  # a spare one may come a moment after a race that follows at once
            assert len(seen) < MOST_RACES, seen
            headers = scripted(f"race-{len(seen)}", {"first_token_s": 30.0}, QUICK)
            got = await client.post(f"{gateway.url}/v1/chat/completions", json=CHAT, headers=headers)
            assert got.status_code == 200
            await eventually(lambda: len(list(gateway.hedger.events)) > len(seen))
            seen.append(connections_of(gateway))
    assert seen[0] == ["new", "new"]


async def test_one_spare_connection_takes_the_place_of_one_that_was_cut_off_and_carries_nothing(start: Start) -> None:
    async with mute() as (provider, _):
        gateway = await in_front_of(provider, start)
        for leaving in range(1, 6):
            await ask_and_leave(gateway, provider)
            await eventually(lambda: provider.open == 1 and provider.silent == 1)
            assert connections_of(gateway) == ["new" if leaving == 1 else "reused"]
            assert len(provider.heard) == leaving + 1


async def test_calls_that_end_well_get_no_spare_connection(start: Start) -> None:
    async with mute() as (provider, _), httpx2.AsyncClient(timeout=PATIENCE_S) as client:
        provider.answers = ANSWER
        gateway = await in_front_of(provider, start)
        for _ in range(5):
            got = await client.post(f"{gateway.url}/v1/chat/completions", json=CHAT)
            assert got.status_code == 200
        assert len(provider.heard) == 1


async def test_a_target_that_takes_no_more_connections_gets_no_spare_one_and_calls_go_on(start: Start) -> None:
    async with mute() as (provider, server):
        gateway = await in_front_of(provider, start)
        await ask_and_leave(gateway, provider)
        await eventually(lambda: provider.silent == 1)
        server.close()
        await ask_and_leave(gateway, provider)
        await eventually(lambda: provider.open == 0)
        async with httpx2.AsyncClient(timeout=PATIENCE_S) as client:
            got = await client.post(f"{gateway.url}/v1/chat/completions", json=CHAT)
        assert got.status_code == 502


async def test_what_a_target_says_on_a_spare_connection_is_nobodys_answer(start: Start) -> None:
    async with mute() as (provider, _), httpx2.AsyncClient(timeout=PATIENCE_S) as client:
        gateway = await in_front_of(provider, start)
        unasked = answer(b"too late", "content-type: text/plain", status="408 Request Timeout")
        _, writer = await asyncio.open_connection("127.0.0.1", int(gateway.url.rpartition(":")[2]))
        writer.write(ASKED)
        await eventually(lambda: any(provider.heard))
        provider.says = unasked
        writer.close()
        await eventually(lambda: provider.silent == 1)
        await asyncio.sleep(SETTLED_S)  # for what it says to arrive
        provider.says, provider.answers = b"", ANSWER
        got = await client.post(f"{gateway.url}/v1/chat/completions", json=CHAT)
        assert got.status_code == 200
        assert got.json()["choices"][0]["message"]["content"] == "yes"
        assert connections_of(gateway) == ["new"]


async def test_no_spare_connection_is_opened_for_what_was_needed_minutes_ago() -> None:
    clock = ManualClock()
    async with mute() as (provider, _):
        provider.answers = HALF_AN_ANSWER
        connections = Connections(clock)

        async def call() -> Answer:
            origin = Origin(tls=False, host="127.0.0.1", port=provider.port)
            return await connections.ask(origin, "POST", ASKED, b"", Attempt(0, 0, "primary", clock))

        for spare, answered in enumerate([await call(), await call()], start=1):
            await answered.close()
            await eventually(partial(provider.has_silent, spare))
        clock.advance(200.0)
        await eventually(lambda: provider.open == 0)  # the two have rested for too long
        for _ in range(2):
            await (await call()).close()
            await asyncio.sleep(SETTLED_S)  # for a second connection that should not come
            assert connections.resting == provider.open == 1
        await connections.close()
