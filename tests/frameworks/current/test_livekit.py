"""LiveKit Agents: streams of text and tool calls, its own OpenAI and Anthropic plugins."""

from typing import Any

import pytest
from livekit.agents import function_tool, llm
from tests.frameworks.conftest import SAID, Way

NAME = "LiveKit Agents"
TOOL_CALL = {"first_token_s": 0.01, "tool_calls": 1}


@function_tool
async def look_up_weather(city: str, days: int) -> str:
    """The weather of the next days."""
    return f"{city} {days}"


async def said(model: Any, **asked: Any) -> tuple[str, list[Any]]:
    """The text of one streamed turn, and its tool calls."""
    turn = llm.ChatContext.empty()
    turn.add_message(role="user", content="hi")
    text, calls = "", []
    async with model.chat(chat_ctx=turn, **asked) as stream:
        async for chunk in stream:
            if chunk.delta:
                text += chunk.delta.content or ""
                calls += chunk.delta.tool_calls
    return text, calls


async def test_a_streamed_turn_is_rescued(way: tuple[Way, str]) -> None:
    rescue, name = way
    rescue.hang_then()
    model = rescue.run(NAME, name)["llm"]
    assert await said(model) == (SAID, [])
    await rescue.assert_rescued()
    await model.aclose()


async def test_a_tool_call_is_rescued_and_its_arguments_fit(way: tuple[Way, str]) -> None:
    rescue, name = way
    rescue.hang_then(TOOL_CALL)
    model = rescue.run(NAME, name)["llm"]
    _, (call,) = await said(model, tools=[look_up_weather])
    assert call.name == "look_up_weather"
    made = llm.utils.prepare_function_arguments(fnc=look_up_weather, json_arguments=call.arguments)
    assert (await look_up_weather(*made[0], **made[1])) == "city 1"
    await rescue.assert_rescued()
    await model.aclose()


@pytest.mark.parametrize("answer", [None, TOOL_CALL], ids=["text", "tool"])
async def test_its_anthropic_plugin_is_rescued(library: Way, answer: Any) -> None:
    library.hang_then(*([answer] if answer else []))
    model = library.run(NAME, "library-anthropic")["llm"]
    text, calls = await said(model, tools=[look_up_weather])
    assert (text, [call.name for call in calls]) == (("", ["look_up_weather"]) if answer else (SAID, []))
    await library.assert_rescued()
    await model.aclose()
