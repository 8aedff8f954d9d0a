"""The OpenAI Agents SDK: responses that are not stored, whole and streamed, and both turns of a tool call."""

from collections.abc import Iterator
from typing import Any

import pytest
from agents import Runner, function_tool, set_default_openai_api, set_tracing_disabled
from tests.frameworks.conftest import ANSWERS, SAID, Way

NAME = "OpenAI Agents SDK"


@pytest.fixture(autouse=True, params=["responses", "chat_completions"])
def _api(request: pytest.FixtureRequest) -> Iterator[None]:
    set_tracing_disabled(True)  # traces would leave the machine
    set_default_openai_api(request.param)
    yield
    set_default_openai_api("responses")


async def test_an_agent_is_rescued(way: tuple[Way, str]) -> None:
    rescue, block = way
    rescue.hang_then()
    assert (await Runner.run(rescue.run(NAME, block)["agent"], "hi")).final_output == SAID
    await rescue.assert_rescued()


async def test_a_streamed_run_is_rescued(way: tuple[Way, str]) -> None:
    rescue, block = way
    rescue.hang_then()
    run = Runner.run_streamed(rescue.run(NAME, block)["agent"], "hi")
    events = [event.type async for event in run.stream_events()]
    assert "raw_response_event" in events
    assert run.final_output == SAID
    await rescue.assert_rescued()


async def test_both_turns_of_a_tool_call_are_rescued(way: tuple[Way, str]) -> None:
    rescue, block = way
    rescue.hang_then({"first_token_s": 0.01, "tool_calls": 1}, ANSWERS)
    asked: list[Any] = []

    @function_tool
    def look_up_weather(city: str, days: int) -> str:
        """The weather of the next days."""
        asked.append((city, days))
        return "fine"

    agent = rescue.run(NAME, block)["agent"].clone(tools=[look_up_weather])
    assert (await Runner.run(agent, "hi")).final_output == SAID
    assert asked == [("city", 1)]
    await rescue.assert_rescued(2)
