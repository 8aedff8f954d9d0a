"""DSPy through the gateway: a plain call, an async one, and a signature whose answer is read back."""

import dspy
import pytest
from tests.frameworks.conftest import SAID, Way

NAME = "DSPy"


@pytest.fixture(autouse=True)
def _no_cache() -> None:
    """It would answer the second test out of the first one's answer."""
    dspy.configure_cache(enable_disk_cache=False, enable_memory_cache=False)


async def test_a_call_is_rescued(gateway: Way) -> None:
    gateway.hang_then()
    assert _text(gateway.run(NAME, "gateway")["lm"]("hi")) == SAID
    await gateway.assert_rescued()


async def test_an_asynchronous_call_is_rescued(gateway: Way) -> None:
    gateway.hang_then()
    assert _text(await gateway.run(NAME, "gateway")["lm"].acall("hi")) == SAID
    await gateway.assert_rescued()


async def test_a_signature_is_rescued(gateway: Way) -> None:
    gateway.hang_then({"first_token_s": 0.01, "text": f"[[ ## answer ## ]]\n{SAID}\n\n[[ ## completed ## ]]"})
    lm = gateway.run(NAME, "gateway")["lm"]
    with dspy.context(lm=lm):
        assert dspy.Predict("question -> answer")(question="hi").answer == SAID
    await gateway.assert_rescued()


def _text(said: list[object]) -> object:
    first = said[0]
    return first["text"] if isinstance(first, dict) else first
