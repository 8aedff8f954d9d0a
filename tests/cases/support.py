"""What the cases share: whole and streamed calls alike, a clock that jumps, and what the sandbox and the events say."""

import json
import socket
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any

import httpx2
import openai
import pytest
from openai import AsyncOpenAI
from tests.cases.through_gateway import OfGateway
from tests.provider_time import ProviderClock
from tests.sdk.racing import ask, eventually, scripted, stream

import hedgerow
from hedgerow.testing.process import SandboxProcess

Hedge = Callable[..., AsyncOpenAI]
Send = Callable[..., Awaitable[str]]
Handle = Callable[[httpx2.Request], Awaitable[httpx2.Response]]  # what a transport does

NEVER_S = 200.0  # longer than any test waits: whatever has this in its script is closed, or the test fails
MESSAGES: Any = [{"role": "user", "content": "hi"}]

whole_and_streamed = pytest.mark.parametrize("send", [ask, stream], ids=["whole", "streamed"])


class JumpingClock(ProviderClock):
    """Real time that can be set forward: idle hours and hold-offs pass at once, sockets and timers stay real."""

    def __init__(self) -> None:
        super().__init__()
        self._jumped_s = 0.0

    def utc(self) -> datetime:
        return super().utc() + timedelta(seconds=self._jumped_s)

    def jump(self, seconds: float) -> None:
        """Let so much time have passed. Only between calls: timers that are set do not notice."""
        self._jumped_s += seconds
        self.set_forward(seconds)


def times_out(client: AsyncOpenAI, why: str = "") -> Any:
    """A block in which a call runs out of a time-out of the policy. The library's caller sees the SDK's own, the gateway's client
    a 504, or an error in the stream that has begun."""
    if not isinstance(client, OfGateway):
        return pytest.raises(openai.APITimeoutError, check=lambda error: why in str(error.__cause__))
    return pytest.raises(
        openai.APIError, match=why or "timeout", check=lambda error: getattr(error, "status_code", 504) == 504
    )


def raw(*events: object) -> str:
    """A stream's bytes, one event each; strings as they are, the rest as JSON data."""
    return "".join(event if isinstance(event, str) else f"data: {json.dumps(event)}\n\n" for event in events)


def chunk(delta: dict[str, Any], **choice: Any) -> dict[str, Any]:
    """A chunk of a chat completion with this delta."""
    choices = [{"index": 0, "delta": delta, "finish_reason": None, **choice}]
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": choices}


def then_stalls(body: str) -> dict[str, Any]:
    """A script: these bytes at once, then nothing."""
    return {"raw_body": body, "first_token_s": 0.0, "stall": {"after": 1, "s": NEVER_S}}


async def opened(client: AsyncOpenAI, case: str, *attempts: dict[str, Any], **fields: Any) -> Any:
    """A streamed call that has begun; its chunks are the caller's to read."""
    headers = scripted(case, *attempts)
    return await client.chat.completions.create(
        model="m", messages=MESSAGES, stream=True, extra_headers=headers, **fields
    )


async def recorded(client: AsyncOpenAI, count: int = 1) -> list[hedgerow.Event]:
    """The events of a hedged client, once so many calls are over and closed."""
    hedger = hedgerow.hedger_of(client)
    await eventually(lambda: len(list(hedger.events)) >= count)
    return list(hedger.events)


async def all_closed(client: AsyncOpenAI, sandbox: SandboxProcess) -> None:
    """Nothing runs: here as the hedger counts it, there as the provider sees it."""
    hedger = hedgerow.hedger_of(client)
    await eventually(lambda: hedger.stats()["in_flight"] == 0 and hedger.stats()["losers_open"] == 0)
    await eventually(lambda: sandbox.stats()["in_flight"] == 0)


def tokens(sandbox: SandboxProcess, case: str) -> list[int]:
    """How many tokens the sandbox has written for each attempt of a case."""
    return [entry["tokens"] for entry in sandbox.stats()["cases"].get(case, [])]


def closed_port() -> int:
    """A loopback port that refuses connections."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]
