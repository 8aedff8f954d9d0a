"""Pydantic AI: agents with and without a tool, a declared output, streams; OpenAI, Anthropic and Google."""

from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai.models.openai import OpenAIResponsesModel
from tests.frameworks.conftest import ANSWERS, SAID, Way

NAME = "Pydantic AI"
BLOCKS = [
    ("library", "library"),
    ("gateway", "gateway"),
    ("library", "library-anthropic"),
    ("gateway", "gateway-gemini"),
    ("library", "library-gemini"),
]


class Weather(BaseModel):
    city: str
    days: list[int]


@pytest.fixture(params=BLOCKS, ids=lambda each: each[1])
def called(request: pytest.FixtureRequest) -> tuple[Way, str]:
    way, block = request.param
    return request.getfixturevalue(way), block


async def test_an_agent_is_rescued(called: tuple[Way, str]) -> None:
    rescue, block = called
    rescue.hang_then()
    assert (await rescue.run(NAME, block)["agent"].run("hi")).output == SAID
    await rescue.assert_rescued()


async def test_a_stream_is_rescued(called: tuple[Way, str]) -> None:
    rescue, block = called
    rescue.hang_then()
    async with rescue.run(NAME, block)["agent"].run_stream("hi") as run:
        assert await run.get_output() == SAID
    await rescue.assert_rescued()


async def test_both_turns_of_a_tool_call_are_rescued(called: tuple[Way, str]) -> None:
    rescue, block = called
    rescue.hang_then({"first_token_s": 0.01, "tool_calls": 1}, ANSWERS)
    asked: list[Any] = []
    agent = rescue.run(NAME, block)["agent"]

    @agent.tool_plain
    def look_up_weather(city: str, days: int) -> str:
        """The weather of the next days."""
        asked.append((city, days))
        return "fine"

    assert (await agent.run("hi")).output == SAID
    assert asked == [("city", 1)]
    await rescue.assert_rescued(2)


async def test_a_declared_output_is_rescued(called: tuple[Way, str]) -> None:
    """Asked for as a tool that must be called, or as the form of the answer: the sandbox does either without a script."""
    rescue, block = called
    rescue.hang_then({"first_token_s": 0.01})
    run = await rescue.run(NAME, block)["agent"].run("hi", output_type=Weather)
    assert run.output == Weather(city="city", days=[1])
    await rescue.assert_rescued()


async def test_responses_that_are_not_stored_are_rescued(library: Way) -> None:
    library.hang_then()
    made = library.run(NAME, "library")
    model = OpenAIResponsesModel("gpt-5.6-mini", provider=made["provider"])
    assert (await made["agent"].run("hi", model=model, model_settings={"openai_store": False})).output == SAID
    await library.assert_rescued()
