"""Closing ends the connection, so that the provider sees it: over TCP and TLS, for every loser and every caller who leaves.

What was closed is read from the sandbox, another process, and from the kernel's list of this process's sockets.
"""

import asyncio
import gc
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import openai
import psutil
import pytest
from openai import AsyncOpenAI, DefaultAsyncHttpxClient
from tests.provider_time import Watched
from tests.sdk.racing import QUICK, ask, eventually, outcomes, scripted, stream

import hedgerow
from hedgerow.testing.process import QUICK_PROFILE, SandboxProcess

NEVER_S = 200.0
PLANNED = 2_000

# The states an attempt may be in when it is closed; "whole" has no stream to be in the middle of.
NO_HEADERS: dict[str, Any] = {"before_headers_s": NEVER_S, "tokens": PLANNED}
NO_CONTENT: dict[str, Any] = {"first_token_s": NEVER_S, "tokens": PLANNED}
STALLED: dict[str, Any] = {"first_token_s": 0.0, "token_s": 0.0, "tokens": PLANNED, "stall": {"after": 3, "s": NEVER_S}}
FLOWING: dict[str, Any] = {"first_token_s": 0.0, "token_s": 0.02, "tokens": PLANNED}

WAITING = {
    "whole, waiting for headers": (ask, NO_HEADERS),
    "stream before headers": (stream, NO_HEADERS),
    "stream before content": (stream, NO_CONTENT),
}
READING = {"stream stalled in the middle": (stream, STALLED), "stream flowing": (stream, FLOWING)}
waiting = pytest.mark.parametrize(("send", "script"), WAITING.values(), ids=WAITING)
everywhere = pytest.mark.parametrize(("send", "script"), (WAITING | READING).values(), ids=WAITING | READING)


class Bench:
    """A sandbox over TCP or TLS, hedged clients of it, and what it saw of them."""

    def __init__(self, sandbox: SandboxProcess) -> None:
        self.sandbox = sandbox
        self.tls = sandbox.url.startswith("https")
        self._trusted = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # of its own: reading all authorities takes long
        if self.tls:
            self._trusted.load_verify_locations(cadata=sandbox.certificate())

    @asynccontextmanager
    async def hedged(self, **settings: Any) -> AsyncIterator[AsyncOpenAI]:
        """A client that may send one backup, after 50 ms. On the way out its sockets must be gone, every one."""
        gc.collect()
        before = self.sockets()
        http = DefaultAsyncHttpxClient(verify=self._trusted)
        sdk = AsyncOpenAI(base_url=f"{self.sandbox.url}/v1", api_key="k", max_retries=0, http_client=http)
        policy = {"trigger": "first_token", "delay": 0.05, "budget": "off", "max_backups": 1, **settings}
        client = hedgerow.hedged(sdk, policy=hedgerow.Policy(**policy))
        try:
            yield client
            hedger: Any = hedgerow.hedger_of(client)
            await eventually(lambda: hedger.stats()["in_flight"] == hedger.stats()["losers_open"] == 0)
        finally:
            await client.close()
        await eventually(lambda: self.sockets() <= before)

    def sockets(self) -> set[tuple[int, Any]]:
        """This process's connections to the sandbox, from the kernel."""
        port = int(self.sandbox.url.rpartition(":")[2])
        return {
            (each.fd, each.laddr)
            for each in psutil.Process().net_connections("tcp")
            if each.raddr and each.raddr.port == port
        }

    async def expect(self, case: str, *ends: str) -> None:
        """How the attempts of a case ended at the provider; those it lost a client to wrote next to nothing."""
        await eventually(lambda: self.sandbox.stats()["in_flight"] == 0)
        assert outcomes(self.sandbox, case) == list(ends)
        for attempt in self.sandbox.stats()["cases"][case]:
            if attempt["outcome"] == "disconnected":
                assert attempt["tokens"] < PLANNED / 4


@pytest.fixture(params=["tcp", "tls"], scope="module")
def served(request: pytest.FixtureRequest) -> Iterator[SandboxProcess]:
    with SandboxProcess(profile=QUICK_PROFILE, tls=request.param == "tls") as sandbox:
        yield sandbox


@pytest.fixture
def bench(served: SandboxProcess, watched: Watched) -> Bench:
    served.reset()
    watched.sandboxes.append(served)
    return Bench(served)


@waiting
async def test_a_primary_that_loses_is_closed(bench: Bench, send: Any, script: dict[str, Any]) -> None:
    async with bench.hedged() as client:
        assert await send(client, "c", script, QUICK | {"text": "backup"}) == "backup"
        await bench.expect("c", "disconnected", "completed")


@waiting
async def test_a_backup_that_loses_is_closed(bench: Bench, send: Any, script: dict[str, Any]) -> None:
    async with bench.hedged() as client:
        assert (
            await send(client, "c", {"await_arrivals": 2, "first_token_s": 0.15, "text": "primary"}, script)
            == "primary"
        )
        await bench.expect("c", "completed", "disconnected")


@pytest.mark.parametrize("loser", [0, 1])
async def test_a_loser_whose_whole_answer_is_half_read_is_closed(bench: Bench, loser: int) -> None:
    async with bench.hedged(trigger="response") as client:
        # Headers at once and a body that does not come: what an upstream does that streams under a buffered call.
        halfway = {
            "cut_after": PLANNED // 2,
            "half_open": True,
            "first_token_s": 0.0,
            "token_s": 0.0,
            "tokens": PLANNED,
        }
        sound = {
            "await_arrivals": 2,
            "first_token_s": 0.2 if loser else 0.0,
            "tokens": 3,
            "token_s": 0.0,
            "text": "sound",
        }
        attempts = [sound, halfway] if loser else [halfway, sound]
        assert await ask(client, "c", *attempts) == "sound"
        hedger: Any = hedgerow.hedger_of(client)
        await eventually(lambda: hedger.stats()["losers_open"] == hedger.stats()["in_flight"] == 0)
        assert len(bench.sockets()) == 1  # the winner's, back in the pool
    await eventually(lambda: not bench.sockets())


@everywhere
@pytest.mark.parametrize("racing", [False, True])
async def test_a_caller_who_leaves_closes_every_attempt(
    bench: Bench, send: Any, script: dict[str, Any], racing: bool
) -> None:
    async with bench.hedged(delay=0.05 if racing else 600.0) as client:
        attempts = [NO_CONTENT, script] if racing else [script]
        call = asyncio.ensure_future(send(client, "c", *attempts))
        await eventually(lambda: len(outcomes(bench.sandbox, "c")) == len(attempts))
        await asyncio.sleep(0.02)
        call.cancel()
        await asyncio.wait([call])
        assert call.cancelled()
        await bench.expect("c", *["disconnected"] * len(attempts))


async def test_a_caller_who_closes_the_stream_in_the_middle_is_seen(bench: Bench) -> None:
    async with bench.hedged() as client:
        chunks = await client.chat.completions.create(
            model="m",
            messages=[{"role": "user", "content": "hi"}],
            stream=True,
            extra_headers=scripted("c", NO_CONTENT, FLOWING),
        )
        await anext(chunks)
        await chunks.close()
        await bench.expect("c", "disconnected", "disconnected")


@everywhere
@pytest.mark.parametrize("racing", [False, True])
async def test_the_deadline_closes_every_attempt(bench: Bench, send: Any, script: dict[str, Any], racing: bool) -> None:
    async with bench.hedged(delay=0.05 if racing else 600.0, timeout_s=0.2) as client:
        attempts = [NO_CONTENT, script] if racing else [script]
        with pytest.raises(openai.APITimeoutError):
            await send(client, "c", *attempts)
        await bench.expect("c", *["disconnected"] * len(attempts))


@waiting
async def test_a_resend_closes_the_late_attempt(bench: Bench, send: Any, script: dict[str, Any]) -> None:
    async with bench.hedged(on_trigger="resend") as client:
        assert await send(client, "c", script, QUICK | {"text": "again"}) == "again"
        await bench.expect("c", "disconnected", "completed")


@waiting
async def test_an_attempt_that_runs_out_of_time_is_closed(bench: Bench, send: Any, script: dict[str, Any]) -> None:
    async with bench.hedged(trigger="off", attempt_timeout_s=0.1) as client:
        assert await send(client, "c", script, QUICK | {"text": "next"}) == "next"
        await bench.expect("c", "disconnected", "completed")


async def test_closing_the_client_with_races_under_way_leaves_no_socket(bench: Bench) -> None:
    async with bench.hedged() as client:
        calls = [asyncio.ensure_future(stream(client, f"c/{n}", NO_CONTENT, FLOWING)) for n in range(8)]
        await eventually(lambda: bench.sandbox.stats()["started"] == 16)
        for call in calls:
            call.cancel()
        await asyncio.wait(calls)
    await eventually(lambda: bench.sandbox.stats()["in_flight"] == 0)
    assert bench.sandbox.stats()["disconnected"] == 16


@pytest.mark.parametrize("send", [ask, stream])
@pytest.mark.parametrize("attempts", [[QUICK], [NO_CONTENT, QUICK]], ids=["no race", "a race"])
async def test_the_winners_connection_is_reused_by_the_next_call(
    bench: Bench, send: Callable[..., Any], attempts: list[dict[str, Any]]
) -> None:
    async with bench.hedged() as client:
        for number in range(3):
            await send(client, f"c/{number}", *attempts)
        hedger: Any = hedgerow.hedger_of(client)
        await eventually(lambda: len(hedger.events) == 3)
        first, *later = list(hedger.events)
        assert first.attempts[0].connection == "new"
        assert [event.attempts[0].connection for event in later] == ["reused", "reused"]
        assert len(bench.sockets()) == 1  # the losers' are gone
