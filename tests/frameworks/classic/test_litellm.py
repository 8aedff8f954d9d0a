"""LiteLLM's SDK: whole and streamed, a tool call; Anthropic and Gemini through the gateway."""

import json
from typing import Any

import pytest
from tests.frameworks.conftest import SAID, Way

NAME = "LiteLLM"
BLOCKS = [
    ("library", "library"),
    ("gateway", "gateway"),
    ("gateway", "gateway-anthropic"),
    ("gateway", "gateway-gemini"),
]
USER = [{"role": "user", "content": "hi"}]
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS: list[Any] = [{"type": "function", "function": {"name": "look_up_weather", "parameters": SCHEMA}}]


@pytest.fixture(params=BLOCKS, ids=lambda each: each[1])
def called(request: pytest.FixtureRequest) -> tuple[Way, str]:
    way, block = request.param
    return request.getfixturevalue(way), block


async def test_a_whole_answer_is_rescued(called: tuple[Way, str]) -> None:
    rescue, block = called
    rescue.hang_then()
    answer = await rescue.run(NAME, block)["ask"](messages=USER)
    assert answer.choices[0].message.content == SAID
    await rescue.assert_rescued()


async def test_a_stream_is_rescued(called: tuple[Way, str]) -> None:
    rescue, block = called
    rescue.hang_then()
    stream = await rescue.run(NAME, block)["ask"](messages=USER, stream=True)
    assert "".join([chunk.choices[0].delta.content or "" async for chunk in stream]) == SAID
    await rescue.assert_rescued()


async def test_a_tool_call_is_rescued_and_its_arguments_fit(called: tuple[Way, str]) -> None:
    rescue, block = called
    rescue.hang_then({"first_token_s": 0.01, "tool_calls": 1})
    answer = await rescue.run(NAME, block)["ask"](messages=USER, tools=TOOLS)
    (call,) = answer.choices[0].message.tool_calls
    assert (call.function.name, json.loads(call.function.arguments)) == ("look_up_weather", {"city": "city"})
    await rescue.assert_rescued()
