"""LangChain: OpenAI and Anthropic, sync and async, whole and streamed, tools; Gemini through the gateway."""

from typing import Any

import pytest
from langchain_anthropic import _client_utils
from langchain_core.tools import tool
from tests.frameworks.conftest import SAID, Way

NAME = "LangChain"
BLOCKS = [
    ("library", "library"),
    ("gateway", "gateway"),
    ("library", "library-anthropic"),
    ("gateway", "gateway-anthropic"),
    ("gateway", "gateway-gemini"),
]


@pytest.fixture(autouse=True)
def _clients_of_this_loop() -> None:
    """langchain-anthropic keeps one HTTP client for all models of an address, and each test has a loop of its own: the next one
    would meet connections of a closed loop, hedged or not."""
    _client_utils._get_default_async_httpx_client.cache_clear()


@tool
def look_up_weather(city: str, days: int) -> str:
    """The weather of the next days."""
    return f"{city} {days}"


@pytest.fixture(params=BLOCKS, ids=lambda each: each[1])
def called(request: pytest.FixtureRequest) -> tuple[Way, str]:
    way, block = request.param
    return request.getfixturevalue(way), block


async def test_a_whole_answer_is_rescued(called: tuple[Way, str]) -> None:
    rescue, block = called
    rescue.hang_then()
    assert (await rescue.run(NAME, block)["llm"].ainvoke("hi")).text == SAID
    await rescue.assert_rescued()


async def test_a_synchronous_answer_is_rescued(called: tuple[Way, str]) -> None:
    rescue, block = called
    rescue.hang_then()
    assert rescue.run(NAME, block)["llm"].invoke("hi").text == SAID
    await rescue.assert_rescued()


async def test_a_stream_is_rescued(called: tuple[Way, str]) -> None:
    rescue, block = called
    rescue.hang_then()
    chunks = [chunk async for chunk in rescue.run(NAME, block)["llm"].astream("hi")]
    assert "".join(chunk.text for chunk in chunks) == SAID
    await rescue.assert_rescued()


async def test_a_tool_call_is_rescued_and_its_arguments_fit(called: tuple[Way, str]) -> None:
    rescue, block = called
    rescue.hang_then({"first_token_s": 0.01, "tool_calls": 1})
    model: Any = rescue.run(NAME, block)["llm"].bind_tools([look_up_weather])
    (call,) = (await model.ainvoke("hi")).tool_calls
    assert (call["name"], look_up_weather.invoke(call["args"])) == ("look_up_weather", "city 1")
    await rescue.assert_rescued()
