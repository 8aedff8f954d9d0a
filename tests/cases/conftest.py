"""The hedged clients of the cases: made on request, closed after the test."""

import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest
from openai import AsyncOpenAI, DefaultAsyncHttpxClient
from tests.cases.support import Hedge
from tests.sdk.racing import plain

import hedgerow
from hedgerow.testing.process import SandboxProcess


@pytest.fixture
async def hedge(hedgerow_sandbox: SandboxProcess) -> AsyncIterator[Hedge]:
    """Makes hedged clients of the sandbox that back a call up after 50 ms, whatever it costs, unless the settings say
    otherwise. `client`: the SDK client to hedge, in place of a plain one with `options`."""
    async with AsyncExitStack() as clients:

        def make(
            *,
            backup: Any = None,
            clock: Any = None,
            client: AsyncOpenAI | None = None,
            options: Any = None,
            **settings: Any,
        ) -> AsyncOpenAI:
            client = client or plain(hedgerow_sandbox, **_with_cheap_http(options or {}))
            policy = hedgerow.Policy(**{"trigger": "first_token", "delay": 0.05, "budget": "off", **settings})
            hedged = hedgerow.hedged(client, policy=policy, backup=backup, clock=clock)
            clients.push_async_callback(hedged.close)
            return hedged

        yield make


def _with_cheap_http(options: dict[str, Any]) -> dict[str, Any]:
    """An HTTP client that trusts no certificate authority: reading them all takes longer than most of these tests."""
    if "limits" in options:
        return options
    return {"http_client": DefaultAsyncHttpxClient(verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)), **options}
