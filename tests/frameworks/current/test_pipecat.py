"""Pipecat: frames through its pipeline, streamed text and a function that its service calls."""

from typing import Any

from pipecat.frames.frames import LLMContextFrame, LLMTextFrame
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.services.llm_service import FunctionCallParams
from pipecat.tests.utils import run_test
from tests.frameworks.conftest import SAID, Way, eventually

NAME = "Pipecat"
START_S = 60.0  # a busy machine's pipeline is slower to start than Pipecat's own tests expect


async def frames_of(model: Any, **context: Any) -> list[Any]:
    """The frames that follow one turn of the user."""
    asked = LLMContext([{"role": "user", "content": "hi"}], **context)
    down, _ = await run_test(model, frames_to_send=[LLMContextFrame(asked)], start_timeout=START_S)
    return list(down)


async def test_a_streamed_turn_is_rescued(way: tuple[Way, str]) -> None:
    rescue, name = way
    rescue.hang_then()
    frames = await frames_of(rescue.run(NAME, name)["llm"])
    assert "".join(frame.text for frame in frames if isinstance(frame, LLMTextFrame)) == SAID
    await rescue.assert_rescued()


async def test_a_function_is_called_once_with_fitting_arguments(way: tuple[Way, str]) -> None:
    called: list[tuple[str, int]] = []

    async def look_up_weather(params: FunctionCallParams, city: str, days: int) -> None:
        """The weather of the next days.

        Args:
            city: Where.
            days: How many.
        """
        called.append((city, days))
        await params.result_callback({"weather": "fine"})

    rescue, name = way
    rescue.hang_then({"first_token_s": 0.01, "tool_calls": 1})
    await frames_of(rescue.run(NAME, name)["llm"], tools=[look_up_weather])
    await eventually(lambda: called)
    assert called == [("city", 1)]
    await rescue.assert_rescued()
