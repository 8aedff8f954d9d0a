"""sglang PR 29251, model-hotel PR 1026: role chunks, pings and comments were taken for the first token, so that the stream of
a stuck provider won its race.

Right: only text, refusal, reasoning and tool deltas that are not empty count. All else neither commits nor calls off a backup.
"""

from typing import Any

import pytest
from tests.cases.support import NEVER_S, Hedge, all_closed, chunk, raw, recorded, then_stalls
from tests.sdk.racing import QUICK, outcomes, stream

from hedgerow.testing.process import SandboxProcess

AZURE_FIRST = {
    "id": "",
    "object": "",
    "created": 0,
    "model": "",
    "choices": [],
    "prompt_filter_results": [{"prompt_index": 0, "content_filter_results": {"hate": {"filtered": False}}}],
}
USAGE = {"prompt_tokens": 3, "completion_tokens": 0, "total_tokens": 3}
EMPTY_TOOL = {"index": 0, "function": {"arguments": ""}}

SILENT = {
    "headers only": {"role_chunk": False, "first_token_s": NEVER_S},
    "role chunk": {"first_token_s": NEVER_S},
    "pings": {"role_chunk": False, "first_token_s": NEVER_S, "pings": {"every_s": 0.01, "count": 5000}},
    "comment": then_stalls(": OPENROUTER PROCESSING\n\n"),
    "event: ping": then_stalls('event: ping\ndata: {"type": "ping"}\n\n'),
    "empty content": then_stalls(raw(chunk({"content": ""}), chunk({"content": None}), chunk({}))),
    "empty reasoning": then_stalls(raw(chunk({"reasoning_content": "", "reasoning": ""}))),
    "empty tool call": then_stalls(raw(chunk({"tool_calls": [EMPTY_TOOL]}), chunk({"tool_calls": []}))),
    "Azure's first chunk": then_stalls(raw(AZURE_FIRST, chunk({"role": "assistant", "content": ""}))),
    "finish reason only": then_stalls(raw(chunk({}, finish_reason="stop"))),
    "usage only": then_stalls(raw({**chunk({}), "choices": [], "usage": USAGE})),
    "half a content chunk": then_stalls('data: {"choices":[{"index":0,"delta":{"content":"hal'),
}
TELLING = {
    "text": {"tokens": 4},
    "reasoning": {"tokens": 4, "reasoning_tokens": 2},
    "tool call": {"tool_calls": 1},
    "refusal": {"refusal": "I would rather not say that."},
}


@pytest.mark.parametrize("script", SILENT.values(), ids=SILENT)
async def test_a_stream_without_content_neither_wins_nor_calls_off_the_backup(
    hedge: Hedge, hedgerow_sandbox: SandboxProcess, script: dict[str, Any]
) -> None:
    client = hedge()
    assert await stream(client, "4/silent", script, QUICK | {"text": "content"}) == "content"
    await all_closed(client, hedgerow_sandbox)
    assert outcomes(hedgerow_sandbox, "4/silent") == ["disconnected", "completed"]
    (event,) = await recorded(client)
    assert [attempt.outcome for attempt in event.attempts] == ["lost", "won"]
    assert event.attempts[0].headers_s is not None
    assert event.attempts[0].first_token_s is None


@pytest.mark.parametrize("script", TELLING.values(), ids=TELLING)
async def test_the_first_content_commits_however_long_the_rest_takes(
    hedge: Hedge, hedgerow_sandbox: SandboxProcess, script: dict[str, Any]
) -> None:
    client = hedge(delay=0.1)
    await stream(client, "4/telling", script | {"first_token_s": 0.0, "stall": {"after": 1, "s": 0.25}}, QUICK)
    assert outcomes(hedgerow_sandbox, "4/telling") == ["completed"]
    (event,) = await recorded(client)
    assert event.trigger_at_s is None
