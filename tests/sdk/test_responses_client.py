"""client.responses of a hedged OpenAI client: what is stored, what is not, and the SDK's own conveniences."""

from typing import Any

import pytest
from openai import AsyncOpenAI
from tests.sdk.racing import QUICK, SLOW, eventually, outcomes, plain, scripted

import hedgerow
from hedgerow.testing.process import SandboxProcess

CALL: Any = {"model": "m", "input": "hi"}
TOOL: Any = {"type": "function", "name": "note", "parameters": {"type": "object"}, "strict": False}


def racing(sandbox: SandboxProcess, **settings: Any) -> AsyncOpenAI:
    policy = hedgerow.Policy(**{"trigger": "first_token", "delay": 0.05, "budget": "off", "max_backups": 1, **settings})
    return hedgerow.hedged(plain(sandbox), policy=policy)


@pytest.mark.parametrize(
    ("fields", "settings", "plan"),
    [
        ({}, {}, "not_safe:store"),
        ({"store": True}, {}, "not_safe:store"),
        ({"store": False}, {}, "hedge"),
        ({}, {"allow": ["store"]}, "hedge"),
        ({"background": True, "store": False}, {}, "not_safe:background"),
        ({"conversation": "conv_1"}, {"allow": ["store"]}, "not_safe:conversation"),
        ({"previous_response_id": "resp_1", "store": False}, {}, "hedge"),
        ({"tools": [{"type": "web_search"}], "store": False}, {}, "not_safe:server_tools"),
        ({"tools": [{"type": "web_search"}], "store": False}, {"allow": ["server_tools"]}, "hedge"),
    ],
    ids=str,
)
async def test_what_would_be_left_twice_is_not_sent_twice(
    hedgerow_sandbox: SandboxProcess, fields: dict[str, Any], settings: dict[str, Any], plan: str
) -> None:
    async with racing(hedgerow_sandbox, **settings) as client:
        slow = {"first_token_s": 0.3, "text": "first"} if plan != "hedge" else SLOW
        headers = scripted("r/plan", slow, {**QUICK, "text": "second"})
        answer = await client.responses.create(**CALL, **fields, extra_headers=headers)
        assert answer.output_text == ("second" if plan == "hedge" else "first")
        (event,) = hedgerow.hedger_of(client).events
        assert (event.plan, event.dialect) == (plan, "openai_responses")


async def test_the_sdks_stream_helper_is_rescued_too(hedgerow_sandbox: SandboxProcess) -> None:
    script = {**QUICK, "text": '{"note":"x"}', "tool_calls": 2, "reasoning_tokens": 3}
    async with racing(hedgerow_sandbox) as client:
        call = {**CALL, "store": False, "tools": [TOOL]}
        async with client.responses.stream(**call, extra_headers=scripted("r/helper", SLOW, script)) as stream:
            response = await stream.get_final_response()
        assert [item.type for item in response.output] == ["reasoning", "function_call", "function_call"]
        assert {item.arguments for item in response.output if item.type == "function_call"} == {'{"note":"x"}'}
        await eventually(lambda: outcomes(hedgerow_sandbox, "r/helper") == ["disconnected", "completed"])


@pytest.mark.parametrize(
    "script",
    [
        {"text": "The quick brown fox. " * 9, "reasoning_tokens": 4},
        {"tool_calls": 2, "text": '{"a":1}'},
        {"refusal": "no"},
        {"text": "cut short", "finish_reason": "length", "service_tier": "priority"},
        {"text": ""},
        {"text": "x", "usage": {"cached": 1, "reasoning": 3}},
    ],
    ids=str,
)
async def test_a_call_streamed_upstream_gets_the_answer_the_api_would_have_given(
    hedgerow_sandbox: SandboxProcess, script: dict[str, Any]
) -> None:
    answers: list[dict[str, Any]] = []
    async with plain(hedgerow_sandbox) as direct, racing(hedgerow_sandbox, delay=5.0, upstream_stream=True) as client:
        for number, each in enumerate((direct, client)):
            headers = scripted(f"{number}/same", script)  # the same draws for both
            answer = await each.responses.create(**CALL, store=False, extra_headers=headers)
            answers.append(answer.model_dump(exclude={"id", "created_at", "completed_at"}))
        (event,) = hedgerow.hedger_of(client).events
        assert (event.stream, event.upstream_stream) == (False, True)
    asked, assembled = (without_ids(answer) for answer in answers)
    assert assembled == asked


async def test_a_stored_response_is_not_streamed_upstream_either_but_goes_as_it_was_asked(
    hedgerow_sandbox: SandboxProcess,
) -> None:
    async with racing(hedgerow_sandbox, upstream_stream=True) as client:
        await client.responses.create(**CALL, extra_headers=scripted("r/stored", QUICK))
        (event,) = hedgerow.hedger_of(client).events
        assert (event.plan, event.upstream_stream) == ("not_safe:store", False)


async def test_a_count_is_rescued(hedgerow_sandbox: SandboxProcess) -> None:
    async with racing(hedgerow_sandbox) as client:
        headers = scripted("r/count", SLOW, QUICK)
        count = await client.responses.input_tokens.count(model="m", input="twelve chars", extra_headers=headers)
        assert count.input_tokens == 3
        await eventually(lambda: outcomes(hedgerow_sandbox, "r/count") == ["disconnected", "completed"])


def without_ids(value: Any) -> Any:
    """Items and calls have new ids in every answer."""
    if isinstance(value, dict):
        return {name: without_ids(inner) for name, inner in value.items() if name not in ("id", "call_id")}
    return [without_ids(inner) for inner in value] if isinstance(value, list) else value
