"""Haystack's OpenAIChatGenerator: sync and async, streamed, a tool call."""

from typing import Annotated, Any

from haystack.dataclasses import ChatMessage
from haystack.tools import tool
from tests.frameworks.conftest import SAID, Way

NAME = "Haystack"
USER = [ChatMessage.from_user("hi")]


@tool
def look_up_weather(city: Annotated[str, "where"], days: Annotated[int, "how many"]) -> str:
    """The weather of the next days."""
    return f"{city} {days}"


async def test_an_answer_is_rescued(way: tuple[Way, str]) -> None:
    rescue, block = way
    rescue.hang_then()
    made = await rescue.run(NAME, block)["generator"].run_async(USER)
    assert made["replies"][0].text == SAID
    await rescue.assert_rescued()


async def test_a_synchronous_answer_is_rescued(way: tuple[Way, str]) -> None:
    rescue, block = way
    rescue.hang_then()
    assert rescue.run(NAME, block)["generator"].run(USER)["replies"][0].text == SAID
    await rescue.assert_rescued()


async def test_a_stream_is_rescued(way: tuple[Way, str]) -> None:
    rescue, block = way
    rescue.hang_then()
    said: list[str] = []

    async def on_chunk(chunk: Any) -> None:
        said.append(chunk.content)

    await rescue.run(NAME, block)["generator"].run_async(USER, streaming_callback=on_chunk)
    assert "".join(said) == SAID
    await rescue.assert_rescued()


async def test_a_tool_call_is_rescued_and_its_arguments_fit(way: tuple[Way, str]) -> None:
    rescue, block = way
    rescue.hang_then({"first_token_s": 0.01, "tool_calls": 1})
    made = await rescue.run(NAME, block)["generator"].run_async(USER, tools=[look_up_weather])
    (call,) = made["replies"][0].tool_calls
    assert (call.tool_name, look_up_weather.invoke(**call.arguments)) == ("look_up_weather", "city 1")
    await rescue.assert_rescued()
