"""sub2api PR 1007: failover after bytes had been sent: the client saw the beginning of two messages.

Right: after the commit never a silent switch. A stream that breaks ends in an error; no byte of another attempt follows, and none
is sent for it.
"""

from typing import Any

import openai
import pytest
from tests.cases.support import Hedge, all_closed, opened
from tests.sdk.racing import outcomes

from hedgerow.testing.process import SandboxProcess

TALKS: dict[str, Any] = {"first_token_s": 0.0, "token_s": 0.002, "tokens": 9, "text": "abcdefghi" * 4}
OTHER = {"first_token_s": 0.0, "text": "another answer altogether"}
BREAKS: dict[str, dict[str, Any]] = {
    "cut": {"cut_after": 4},
    "reset": {"cut_after": 4, "reset": True},
    "error frame": {"error_frame": {"after": 4, "error": {"type": "server_error", "message": "oops"}}},
    "silence": {"stall": {"after": 4, "s": 30.0}},
}


@pytest.mark.parametrize("upstream_stream", [False, True])
@pytest.mark.parametrize("breaks", BREAKS.values(), ids=BREAKS)
async def test_a_stream_that_breaks_ends_in_an_error_and_nothing_of_another_follows(
    hedge: Hedge, hedgerow_sandbox: SandboxProcess, breaks: dict[str, Any], upstream_stream: bool
) -> None:
    client = hedge(delay=5.0, stall_s=0.2, upstream_stream=upstream_stream)
    pieces: list[str] = []

    async def read() -> None:
        async for chunk in await opened(client, "6", TALKS | breaks, OTHER):
            pieces.append(chunk.choices[0].delta.content or "")

    with pytest.raises(openai.APIError):
        await read()
    seen = "".join(pieces)
    assert seen
    assert TALKS["text"].startswith(seen)
    await all_closed(client, hedgerow_sandbox)
    assert len(outcomes(hedgerow_sandbox, "6")) == 1
