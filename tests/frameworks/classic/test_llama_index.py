"""LlamaIndex: sync and async, whole and streamed, a tool call."""

from typing import Any

from llama_index.core.tools import FunctionTool
from tests.frameworks.conftest import SAID, Way

NAME = "LlamaIndex"


def look_up_weather(city: str, days: int) -> str:
    """The weather of the next days."""
    return f"{city} {days}"


async def test_a_whole_answer_is_rescued(way: tuple[Way, str]) -> None:
    rescue, block = way
    rescue.hang_then()
    assert (await rescue.run(NAME, block)["llm"].acomplete("hi")).text == SAID
    await rescue.assert_rescued()


async def test_a_synchronous_answer_is_rescued(way: tuple[Way, str]) -> None:
    rescue, block = way
    rescue.hang_then()
    assert rescue.run(NAME, block)["llm"].complete("hi").text == SAID
    await rescue.assert_rescued()


async def test_a_stream_is_rescued(way: tuple[Way, str]) -> None:
    rescue, block = way
    rescue.hang_then()
    said = [part.delta async for part in await rescue.run(NAME, block)["llm"].astream_complete("hi")]
    assert "".join(said) == SAID
    await rescue.assert_rescued()


async def test_a_tool_call_is_rescued_and_its_arguments_fit(way: tuple[Way, str]) -> None:
    rescue, block = way
    rescue.hang_then({"first_token_s": 0.01, "tool_calls": 1})
    llm: Any = rescue.run(NAME, block)["llm"]
    answer = await llm.achat_with_tools([FunctionTool.from_defaults(look_up_weather)], "hi")
    (call,) = llm.get_tool_calls_from_response(answer)
    assert look_up_weather(**call.tool_kwargs) == "city 1"
    await rescue.assert_rescued()
