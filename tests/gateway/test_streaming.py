"""Streams through the gateway: keep-alive before the first token, bytes as they come, errors in the dialect's own words."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any
from urllib.parse import urlsplit

import httpx2
import openai
import pytest
from tests.gateway.running import Running
from tests.sdk.racing import QUICK, ask, eventually, idle, outcomes, scripted, stream

from hedgerow.clock import ScaledClock, SystemClock
from hedgerow.testing.process import SandboxProcess

Start = Callable[..., Any]

PATHS = {
    "openai": "/v1/chat/completions",
    "anthropic": "/v1/messages",
    "gemini": "/v1beta/models/g:streamGenerateContent?alt=sse",
}
CHAT = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": True, "max_tokens": 1000}
FASTER = 0.02  # the gateway's clock: 15 s of waiting are 0.3 s


async def body_of(gateway: Running, script: list[dict[str, Any]], path: str = PATHS["openai"]) -> tuple[int, str]:
    body = {"contents": [{"parts": [{"text": "hi"}]}]} if "v1beta" in path else CHAT
    async with httpx2.AsyncClient(timeout=30.0) as client:
        got = await client.post(gateway.url + path, json=body, headers=scripted("k", *script))
        return got.status_code, got.text


@pytest.fixture
async def sdk() -> AsyncIterator[Callable[[Running], openai.AsyncOpenAI]]:
    """OpenAI's client of a gateway, closed after the test."""
    async with AsyncExitStack() as clients:

        def make(gateway: Running) -> openai.AsyncOpenAI:
            client = openai.AsyncOpenAI(base_url=f"{gateway.url}/v1", api_key="k", max_retries=0)
            clients.push_async_callback(client.close)
            return client

        yield make


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
async def test_a_long_silence_is_bridged_with_comments_that_commit_to_no_attempt(
    start: Start, hedgerow_sandbox: SandboxProcess, path: str
) -> None:
    gateway = await start({"delay": 50.0, "max_backups": 1}, clock=ScaledClock(FASTER))  # a backup after two comments
    status, text = await body_of(gateway, [{"first_token_s": 20.0}, {"first_token_s": 0.5, "text": "yes"}], path)
    assert status == 200
    assert text.startswith(": still waiting for the first token\n\n" * 2)
    assert "yes" in text
    await eventually(lambda: outcomes(hedgerow_sandbox, "k") == ["disconnected", "completed"])


@pytest.mark.parametrize("dialect", PATHS)
async def test_after_a_comment_the_failure_of_all_attempts_is_an_error_in_the_stream(
    start: Start, dialect: str
) -> None:
    gateway = await start({"max_backups": 0}, clock=ScaledClock(FASTER))
    busy = {"type": "overloaded_error", "message": "queue full"}
    status, text = await body_of(
        gateway, [{"status": 503, "before_headers_s": 0.5, "error_frame": {"error": busy}}], PATHS[dialect]
    )
    assert status == 200
    comment, frame, *_ = text.split("\n\n")
    assert comment == ": still waiting for the first token"
    assert json.loads(frame.rpartition("data: ")[2])["error"] == busy
    assert frame.startswith("event: error" if dialect == "anthropic" else "data: ")


async def test_after_a_comment_a_time_out_is_an_error_in_the_stream_too(start: Start, sdk: Any) -> None:
    gateway = await start({"timeout_s": 25.0, "max_backups": 0}, clock=ScaledClock(FASTER))
    with pytest.raises(openai.APIError, match="timeout_s"):
        await stream(sdk(gateway), "k", {"first_token_s": 20.0})


async def test_a_time_out_before_anything_was_sent_is_a_504_that_is_not_to_be_tried_again(
    start: Start, sdk: Any
) -> None:
    gateway = await start({"timeout_s": 0.3, "max_backups": 0})
    for send in (ask, stream):
        with pytest.raises(openai.InternalServerError) as raised:
            await send(sdk(gateway), "k", {"first_token_s": 20.0})
        assert raised.value.status_code == 504
        assert raised.value.response.headers["x-should-retry"] == "false"


async def test_a_provider_that_cannot_be_reached_is_a_502_without_an_address_in_it(start: Start, sdk: Any) -> None:
    nowhere = {"name": "t", "dialect": "openai", "base_url": "http://127.0.0.1:9/v1", "api_key": "their-key"}
    gateway = await start(target=[nowhere], route=[{"path": "/v1/*", "targets": ["t"], "policy": "soon"}])
    with pytest.raises(openai.InternalServerError) as raised:
        await ask(sdk(gateway), "k", QUICK)
    assert raised.value.status_code == 502
    assert "their-key" not in str(raised.value)
    assert "127.0.0.1" not in str(raised.value)


async def test_a_stream_that_falls_silent_ends_in_an_error(
    start: Start, sdk: Any, hedgerow_sandbox: SandboxProcess
) -> None:
    gateway = await start({"stall_s": 0.3})
    with pytest.raises(openai.APIError, match="broke off"):
        await stream(
            sdk(gateway), "k", {"first_token_s": 0.0, "token_s": 0.0, "tokens": 9, "stall": {"after": 4, "s": 30}}
        )
    await eventually(lambda: outcomes(hedgerow_sandbox, "k") == ["disconnected"])
    (event,) = gateway.hedger.events
    assert event.outcome == "failed"


async def test_a_stream_that_ends_without_its_end_says_so(start: Start, sdk: Any) -> None:
    gateway = await start()
    with pytest.raises(openai.APIError, match="before its end"):
        await stream(
            sdk(gateway), "k", {"first_token_s": 0.0, "token_s": 0.0, "tokens": 9, "end": "eof", "finish_reason": None}
        )


async def test_the_first_token_is_timed_at_the_provider_and_at_the_client(start: Start, sdk: Any) -> None:
    gateway = await start(clock=SystemClock())  # what is measured is to be compared with the sandbox's own clock
    await stream(sdk(gateway), "k", {"first_token_s": 0.1})
    (event,) = gateway.hedger.events
    assert event.first_token_s is not None
    assert event.first_delivered_s is not None
    assert 0.1 <= event.first_token_s <= event.first_delivered_s


async def test_a_proxy_in_front_is_told_not_to_buffer(start: Start) -> None:
    gateway = await start()
    async with httpx2.AsyncClient() as client:
        got = await client.post(gateway.url + PATHS["openai"], json=CHAT)
    assert got.headers["x-accel-buffering"] == "no"
    assert "content-encoding" not in got.headers


def reader_of(gateway: Running, case: str) -> socket.socket:
    """Has asked for a very long stream at full speed, and reads nothing of it."""
    url = urlsplit(gateway.url)
    body = json.dumps(CHAT | {"max_tokens": 200_000}).encode()
    script = {"first_token_s": 0.0, "token_s": 0.0, "tokens": 200_000}
    head = {"host": "localhost", "content-length": str(len(body)), **scripted(case, script)}
    lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
    reader = socket.create_connection((url.hostname, url.port))
    reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    reader.sendall(f"POST {PATHS['openai']} HTTP/1.1\r\n{lines}\r\n".encode() + body)
    return reader


async def test_a_slow_reader_holds_the_provider_back_and_nothing_piles_up(
    start: Start, hedgerow_sandbox: SandboxProcess
) -> None:
    gateway = await start({"trigger": "off"})
    with reader_of(gateway, "slow"):
        written: list[int] = [-1]

        def stands_still() -> bool:
            now = hedgerow_sandbox.stats()["cases"].get("slow", [{"tokens": 0}])[0]["tokens"]
            still = now == written[-1] and now > 0
            written.append(now)
            return still

        await asyncio.sleep(0.5)
        while not stands_still():
            await asyncio.sleep(0.5)
        assert 0 < written[-1] < 100_000
    await idle(hedgerow_sandbox)
    assert outcomes(hedgerow_sandbox, "slow") == ["disconnected"]


async def test_a_client_that_takes_nothing_for_too_long_is_cut_off_and_its_stream_ended(
    start: Start, hedgerow_sandbox: SandboxProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hedgerow.gateway.patience.READING_PAUSE_S", 0.3)
    gateway = await start({"trigger": "off"})
    with reader_of(gateway, "stuck"):
        await eventually(lambda: outcomes(hedgerow_sandbox, "stuck") == ["disconnected"])
        await eventually(lambda: gateway.hedger.stats()["in_flight"] == 0)
