"""LiteLLM PR 31499: the caller had left before the first byte, and the upstream call ran on.

Right: both attempts end at once, whoever leaves and however: a task that is cancelled, an SDK of the gateway's that closes its
connection, a bare socket that is closed or reset. Nothing is sent afterwards either.
"""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from tests.cases.support import NEVER_S, Hedge, Send, all_closed, recorded, whole_and_streamed
from tests.gateway.raw_client import LEAVING, RawClient
from tests.sdk.adapters import ADAPTERS, Speak
from tests.sdk.racing import eventually, idle, outcomes

from hedgerow.testing.process import SandboxProcess

Start = Callable[..., Any]  # the fixture of this name: a gateway with these settings
SILENCE: dict[str, dict[str, Any]] = {
    "before the headers": {"before_headers_s": NEVER_S},
    "before content": {"first_token_s": NEVER_S},
    "among pings": {"first_token_s": NEVER_S, "pings": {"every_s": 0.02, "count": 5000}},
}
each_silence = pytest.mark.parametrize("silence", SILENCE.values(), ids=SILENCE)
each_sdk = pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: adapter.name)
each_way = pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])


@each_sdk
@each_way
@each_silence
@pytest.mark.parametrize("sync", [False])
async def test_a_cancelled_call_ends_both_attempts(
    hedgerow_sandbox: SandboxProcess, speak: Speak, streamed: bool, silence: dict[str, Any]
) -> None:
    speaker = speak(max_backups=1)
    await speaker.leave(streamed, hedgerow_sandbox, "10", silence, silence)
    await idle(hedgerow_sandbox)
    assert outcomes(hedgerow_sandbox, "10") == ["disconnected", "disconnected"]
    (event,) = await speaker.events()
    assert (event.outcome, event.winner) == ("caller_left", None)


@whole_and_streamed
@pytest.mark.async_only(reason="only tasks can be cancelled")
async def test_a_call_that_is_left_before_it_is_late_gets_no_backup(
    hedge: Hedge, hedgerow_sandbox: SandboxProcess, send: Send
) -> None:
    client = hedge(delay=15.0)
    call = asyncio.ensure_future(send(client, "10", SILENCE["before content"]))
    await eventually(lambda: len(outcomes(hedgerow_sandbox, "10")) == 1)
    call.cancel()
    await asyncio.wait([call])
    await all_closed(client, hedgerow_sandbox)
    (event,) = await recorded(client)
    assert (event.outcome, event.trigger_at_s) == ("caller_left", None)
    assert outcomes(hedgerow_sandbox, "10") == ["disconnected"]


@each_way
@each_silence
@pytest.mark.parametrize("how", LEAVING)
async def test_a_connection_to_the_gateway_that_ends_ends_both_attempts(
    start: Start, hedgerow_sandbox: SandboxProcess, streamed: bool, silence: dict[str, Any], how: str
) -> None:
    gateway = await start({"max_backups": 1})
    client = await RawClient.connect(gateway.url)
    try:
        await client.chat("10", silence, silence, stream=streamed)
        await eventually(lambda: len(outcomes(hedgerow_sandbox, "10")) == 2)
        client.leave(how)
        await idle(hedgerow_sandbox)
    finally:
        client.close()
    assert outcomes(hedgerow_sandbox, "10") == ["disconnected", "disconnected"]
    await eventually(lambda: len(list(gateway.hedger.events)) == 1)
    (event,) = gateway.hedger.events
    assert event.outcome == "caller_left"
