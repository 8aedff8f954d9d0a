"""LiteLLM 37140, 13774: only streams were cancelled upstream; a call that was not streamed ran on, and was paid for, though its
caller had left.

Right: the same rule as for streams, for every API, whether the answer is awaited whole or streamed upstream and put together,
and also when a part of it has come.
"""

import asyncio
from typing import Any

import pytest
from tests.cases.support import MESSAGES, NEVER_S, Hedge, all_closed, recorded, tokens
from tests.sdk.adapters import ADAPTERS, Speak
from tests.sdk.racing import ask, eventually, idle, outcomes, scripted

from hedgerow.testing.process import SandboxProcess

HALF_WAY = {"first_token_s": 0.0, "token_s": 0.0, "tokens": 2_000, "stall": {"after": 1_000, "s": NEVER_S}}
MOMENTS: dict[str, dict[str, Any]] = {
    "before the headers": {"before_headers_s": NEVER_S},
    "while it is written": HALF_WAY,
}


@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: adapter.name)
@pytest.mark.parametrize("sync", [False])
@pytest.mark.parametrize("moment", MOMENTS.values(), ids=MOMENTS)
@pytest.mark.parametrize("upstream_stream", [False, True], ids=["whole upstream", "streamed upstream"])
async def test_a_call_that_is_not_streamed_ends_upstream_with_its_caller(
    hedgerow_sandbox: SandboxProcess, speak: Speak, moment: dict[str, Any], upstream_stream: bool
) -> None:
    speaker = speak(trigger="response", max_backups=1, upstream_stream=upstream_stream)
    await speaker.leave(False, hedgerow_sandbox, "11", moment, {"before_headers_s": NEVER_S})
    await idle(hedgerow_sandbox)
    assert outcomes(hedgerow_sandbox, "11") == ["disconnected", "disconnected"]
    assert max(tokens(hedgerow_sandbox, "11")) <= 1_000
    (event,) = await speaker.events()
    assert (event.outcome, event.stream, event.winner) == ("caller_left", False, None)


@pytest.mark.async_only(reason="only tasks can be cancelled")
async def test_so_does_a_call_that_may_not_be_hedged(hedge: Hedge, hedgerow_sandbox: SandboxProcess) -> None:
    client = hedge()
    call = asyncio.ensure_future(ask(client, "11", {"before_headers_s": NEVER_S}, store=True))
    await eventually(lambda: len(outcomes(hedgerow_sandbox, "11")) == 1)
    call.cancel()
    await asyncio.wait([call])
    await all_closed(client, hedgerow_sandbox)
    (event,) = await recorded(client)
    assert (event.outcome, event.plan) == ("caller_left", "not_safe:store")
    assert outcomes(hedgerow_sandbox, "11") == ["disconnected"]


async def test_the_sdks_own_time_out_ends_it_too(hedge: Hedge, hedgerow_sandbox: SandboxProcess) -> None:
    client = hedge(max_backups=1, options={"timeout": 1.0})
    with pytest.raises(Exception, match="timed out"):
        await client.chat.completions.create(
            model="m", messages=MESSAGES, extra_headers=scripted("11", {"before_headers_s": NEVER_S})
        )
    await all_closed(client, hedgerow_sandbox)
    assert outcomes(hedgerow_sandbox, "11") == ["disconnected", "disconnected"]
