"""Clients, scripts and patience for tests that race real SDK calls against the sandbox."""

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

import httpx2
from openai import AsyncOpenAI, DefaultAsyncHttpxClient

import hedgerow
from hedgerow.testing.process import SandboxProcess

PATIENCE_S = 60.0

SLOW = {"first_token_s": 20.0}  # what is raced has 20 s to come, on however busy a machine
QUICK = {"first_token_s": 0.01}


def plain(sandbox: SandboxProcess, **options: Any) -> AsyncOpenAI:
    """An unhedged client of the sandbox; `limits` sizes its pool."""
    limits = options.pop("limits", None)
    if limits is not None:
        options["http_client"] = DefaultAsyncHttpxClient(limits=limits)
    return AsyncOpenAI(**{"base_url": f"{sandbox.url}/v1", "api_key": "k", "max_retries": 0, **options})


def racing(sandbox: SandboxProcess, *, backup: Any = None, clock: Any = None, **settings: Any) -> AsyncOpenAI:
    """A hedged client that backs a call up after 50 ms, whatever it costs, unless the settings say otherwise."""
    policy = {"trigger": "first_token", "delay": 0.05, "budget": "off", **settings}
    return hedgerow.hedged(plain(sandbox), policy=hedgerow.Policy(**policy), backup=backup, clock=clock)


def scripted(case: str, *attempts: dict[str, Any]) -> dict[str, str]:
    """The headers by which a request steers its own fate; one script per arrival."""
    return {"x-sandbox-case": case, "x-sandbox-script": json.dumps(list(attempts))}


async def ask(client: AsyncOpenAI, case: str, *attempts: dict[str, Any], **fields: Any) -> str:
    """One call, not streamed; its text."""
    answer = await client.chat.completions.create(
        model="m", messages=[{"role": "user", "content": "hi"}], extra_headers=scripted(case, *attempts), **fields
    )
    return answer.choices[0].message.content or ""


async def stream(client: AsyncOpenAI, case: str, *attempts: dict[str, Any], **fields: Any) -> str:
    """One call, streamed and read to its end; its text."""
    chunks = await client.chat.completions.create(
        model="m",
        messages=[{"role": "user", "content": "hi"}],
        stream=True,
        extra_headers=scripted(case, *attempts),
        **fields,
    )
    return "".join([chunk.choices[0].delta.content or "" async for chunk in chunks if chunk.choices])


async def eventually(condition: Callable[[], bool], patience_s: float = PATIENCE_S) -> None:
    """Poll until it holds; fail after a generous while."""
    give_up_s = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < give_up_s, f"still not so after {patience_s} s"
        await asyncio.sleep(0.01)


def outcomes(sandbox: SandboxProcess, case: str) -> list[str]:
    """What the sandbox saw of each attempt of a case, in order of arrival."""
    return [entry["outcome"] for entry in sandbox.stats(case)["cases"][case]]


async def idle(sandbox: SandboxProcess) -> None:
    """Wait until the sandbox has nothing under way."""
    await eventually(lambda: sandbox.stats()["in_flight"] == 0)


def limits(connections: int) -> httpx2.Limits:
    """A pool of so many connections."""
    return httpx2.Limits(max_connections=connections, max_keepalive_connections=connections)
