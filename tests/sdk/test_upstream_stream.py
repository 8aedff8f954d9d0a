"""upstream_stream: a call that did not ask for a stream is streamed upstream, and its caller cannot tell."""

import json
from typing import Any

import openai
import pytest
from tests.sdk.racing import ask, eventually, outcomes, plain, racing, scripted

import hedgerow
from hedgerow.testing.process import SandboxProcess

TEXT = "The quick brown fox jumps over the lazy dog. " * 4
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
MESSAGES = [{"role": "user", "content": "hi"}]


@pytest.mark.parametrize(
    ("script", "fields"),
    [
        ({"text": TEXT}, {}),
        ({"text": '{"a":1}', "tool_calls": 2}, {"tools": [TOOL]}),
        ({"text": TEXT, "n": 3}, {"n": 3}),
        ({"refusal": "no"}, {}),
        ({"text": TEXT, "finish_reason": "length", "service_tier": "priority"}, {}),
    ],
)
async def test_the_answer_is_the_one_the_api_would_have_given(
    hedgerow_sandbox: SandboxProcess, script: dict[str, Any], fields: dict[str, Any]
) -> None:
    answers = []
    async with plain(hedgerow_sandbox) as direct, racing(hedgerow_sandbox, delay=5.0, upstream_stream=True) as client:
        for each in (direct, client):
            headers = scripted("same/1", script)
            answer = await each.chat.completions.create(model="m", messages=MESSAGES, extra_headers=headers, **fields)
            answers.append(answer.model_dump(exclude={"id": True, "created": True}))
        asked, assembled = (without_ids(answer) for answer in answers)
        assert assembled == asked
        if fields != {
            "n": 3
        }:  # several choices cost several times as much: not hedged without a permission, but streamed
            (event,) = hedgerow.hedger_of(client).events
            assert (event.stream, event.upstream_stream) == (False, True)


def without_ids(answer: dict[str, Any]) -> dict[str, Any]:
    """Tool calls have new ids in every answer."""
    for choice in answer["choices"]:
        for call in choice["message"]["tool_calls"] or []:
            call["id"] = "id"
    return answer


async def test_a_stall_in_the_middle_is_rescued_though_the_first_token_came_in_time(
    hedgerow_sandbox: SandboxProcess,
) -> None:
    async with racing(
        hedgerow_sandbox, trigger="lag", delay=0.3, budget="off", upstream_stream=True, prior=None
    ) as client:
        for number in range(20):  # warm: b and tau are known
            await ask(client, f"warm/{number}", {"first_token_s": 0.02, "token_s": 0.002, "tokens": 40})
        stalled = {"first_token_s": 0.02, "token_s": 0.002, "tokens": 40, "stall": {"after": 20, "s": 20}}
        assert await ask(client, "stall/1", stalled, {"first_token_s": 0.02, "text": TEXT}) == TEXT
        await eventually(lambda: outcomes(hedgerow_sandbox, "stall/1") == ["disconnected", "completed"])
        event = list(hedgerow.hedger_of(client).events)[-1]
        assert [(a.outcome, a.reason) for a in event.attempts] == [("lost", "primary"), ("won", "lag")]
        assert event.attempts[0].tokens_seen > 0


async def test_a_long_answer_on_schedule_is_not_late(hedgerow_sandbox: SandboxProcess) -> None:
    async with racing(hedgerow_sandbox, trigger="lag", delay=0.3, budget="off", upstream_stream=True) as client:
        for number in range(20):
            await ask(client, f"short/{number}", {"first_token_s": 0.02, "token_s": 0.002, "tokens": 10})
        await ask(client, "long/1", {"first_token_s": 0.02, "token_s": 0.002, "tokens": 800})
        assert outcomes(hedgerow_sandbox, "long/1") == ["completed"]


async def test_a_provider_that_refuses_streams_is_asked_as_the_caller_asked_and_remembered(
    hedgerow_sandbox: SandboxProcess,
) -> None:
    refusal = {
        "error": {
            "message": "stream is not supported",
            "type": "invalid_request_error",
            "param": "stream",
            "code": None,
        }
    }
    refused = {"status": 400, "raw_body": json.dumps(refusal)}
    async with racing(hedgerow_sandbox, delay=5.0, upstream_stream=True) as client:
        assert await ask(client, "refuse/1", refused, {"text": "whole"}) == "whole"
        assert await ask(client, "refuse/2", {"text": "whole again"}) == "whole again"
        assert len(outcomes(hedgerow_sandbox, "refuse/1")) == 2
        events = list(hedgerow.hedger_of(client).events)
        assert [event.upstream_stream for event in events] == [False, False]
        assert hedgerow.hedger_of(client).stats()["requests"] == 2


async def test_an_error_inside_the_stream_is_an_http_error_to_a_caller_who_did_not_stream(
    hedgerow_sandbox: SandboxProcess,
) -> None:
    frame = {"error_frame": {"after": 3, "error": {"type": "overloaded_error", "message": "busy"}}, "tokens": 9}
    async with racing(hedgerow_sandbox, delay=5.0, upstream_stream=True) as client:
        with pytest.raises(openai.APIStatusError) as raised:
            await ask(client, "error/1", frame)
        assert raised.value.status_code == 529
        assert "busy" in str(raised.value)


@pytest.mark.parametrize("script", [{"cut_after": 5, "tokens": 9}, {"end": "eof", "tokens": 9}])
async def test_a_cut_stream_is_replaced_and_never_delivered_half(
    hedgerow_sandbox: SandboxProcess, script: dict[str, object]
) -> None:
    async with racing(hedgerow_sandbox, delay=5.0, upstream_stream=True) as client:
        assert await ask(client, f"cut/{len(script)}{script.get('end')}", script, {"text": TEXT}) == TEXT


async def test_a_caller_who_streams_gets_the_stream_untouched(hedgerow_sandbox: SandboxProcess) -> None:
    async with racing(hedgerow_sandbox, delay=5.0, upstream_stream=True) as client:
        chunks = await client.chat.completions.create(
            model="m", messages=MESSAGES, stream=True, extra_headers=scripted("untouched/1", {"tokens": 5})
        )
        assert [chunk async for chunk in chunks][-1].choices  # no usage chunk that nobody asked for
        (event,) = hedgerow.hedger_of(client).events
        assert event.upstream_stream is False
