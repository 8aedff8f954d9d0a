"""bhope/hedge 3, hedge-python 2: one statistic per host mixed short and 100k-token calls, so that every long call was late.

Right: statistics are kept per target, model, stream, tools, effort and class of input size; many fast calls of one kind make
no call of another kind late.
"""

import asyncio
from typing import Any

import pytest
from openai import AsyncOpenAI
from tests.cases.support import Hedge, recorded
from tests.sdk.racing import outcomes, scripted

import hedgerow
from hedgerow.testing.process import SandboxProcess

FAST = {"first_token_s": 0.0, "token_s": 0.0}
UNUSUAL_BUT_FINE = {"first_token_s": 0.3}
TOOLS = [{"type": "function", "function": {"name": "look_up", "parameters": {"type": "object"}}}]


def words(tokens: int) -> dict[str, Any]:
    """A prompt of about so many tokens."""
    return {"messages": [{"role": "user", "content": "word" * tokens}]}


KINDS = {
    "100k tokens": (words(10), words(100_000)),
    "20k tokens": (words(10), words(20_000)),
    "4k tokens": (words(10), words(4_000)),
    "another model": ({"model": "small"}, {"model": "large"}),
    "not streamed": ({"stream": True}, {"stream": False}),
    "streamed": ({"stream": False}, {"stream": True}),
    "with tools": ({}, {"tools": TOOLS}),
    "without tools": ({"tools": TOOLS}, {}),
    "more effort": ({"reasoning_effort": "low"}, {"reasoning_effort": "high"}),
    "effort at all": ({}, {"reasoning_effort": "high"}),
}


async def call(client: AsyncOpenAI, case: str, fields: dict[str, Any], *attempts: dict[str, Any]) -> None:
    answer: Any = await client.chat.completions.create(
        **{"model": "m", **words(10), **fields}, extra_headers=scripted(case, *attempts)
    )
    if fields.get("stream"):
        async for _ in answer:
            pass


@pytest.fixture
async def by_quantile(hedge: Hedge) -> AsyncOpenAI:
    return hedge(delay="p95+50ms", max_backups=1)


@pytest.mark.parametrize(("usual", "other"), KINDS.values(), ids=KINDS)
async def test_many_fast_calls_of_one_kind_make_no_call_of_another_late(
    by_quantile: AsyncOpenAI, hedgerow_sandbox: SandboxProcess, usual: dict[str, Any], other: dict[str, Any]
) -> None:
    for batch in range(3):
        await asyncio.gather(*(call(by_quantile, f"24/{batch}/{n}", usual, FAST) for n in range(10)))
    await call(by_quantile, "24/other", other, UNUSUAL_BUT_FINE)
    assert outcomes(hedgerow_sandbox, "24/other") == ["completed"]
    assert (await recorded(by_quantile, 31))[-1].plan == "cold"
    await call(by_quantile, "24/usual", usual, {"first_token_s": 20.0}, FAST)
    assert outcomes(hedgerow_sandbox, "24/usual") == ["disconnected", "completed"]


async def test_embeddings_say_nothing_about_chat(by_quantile: AsyncOpenAI, hedgerow_sandbox: SandboxProcess) -> None:
    for _ in range(25):
        await by_quantile.embeddings.create(model="m", input="short")
    await call(by_quantile, "24/chat", {}, UNUSUAL_BUT_FINE)
    assert outcomes(hedgerow_sandbox, "24/chat") == ["completed"]


async def test_each_kind_is_listed_with_its_own_quantiles(by_quantile: AsyncOpenAI) -> None:
    await asyncio.gather(*(call(by_quantile, f"24/short/{n}", {}, FAST) for n in range(5)))
    await call(by_quantile, "24/long", words(100_000), UNUSUAL_BUT_FINE)
    keys: Any = hedgerow.hedger_of(by_quantile).stats()["keys"]
    by_size = {key["size"]: key for key in keys}
    assert (by_size["1k"]["n"], by_size["more"]["n"]) == (5, 1)
    assert by_size["more"]["first_token"]["p50"] >= 0.3 > by_size["1k"]["first_token"]["p50"]
