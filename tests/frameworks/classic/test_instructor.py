"""Instructor: a declared model, whole and streamed, which the answer of a forced tool has to fit."""

import pytest
from pydantic import BaseModel, Field
from tests.frameworks.conftest import Way

from hedgerow import UnsupportedError, hedged

NAME = "Instructor"
USER = [{"role": "user", "content": "hi"}]
QUICK = {"first_token_s": 0.01}


class Day(BaseModel):
    of: int = Field(ge=3)


class Weather(BaseModel):
    city: str
    days: list[Day]


FITS = Weather(city="city", days=[Day(of=3)])


async def test_a_declared_answer_is_rescued(way: tuple[Way, str]) -> None:
    rescue, block = way
    rescue.hang_then(QUICK)
    client = rescue.run(NAME, block)["client"]
    answer = await client.chat.completions.create(model="m", response_model=Weather, messages=USER, max_retries=0)
    assert answer.model_dump() == FITS.model_dump()
    await rescue.assert_rescued()


async def test_a_partial_stream_is_rescued(way: tuple[Way, str]) -> None:
    rescue, block = way
    rescue.hang_then(QUICK)
    client = rescue.run(NAME, block)["client"]
    stream = client.chat.completions.create_partial(model="m", response_model=Weather, messages=USER, max_retries=0)
    parts = [part async for part in stream]
    assert Weather(**parts[-1].model_dump()) == FITS
    await rescue.assert_rescued()


async def test_an_answer_that_does_not_fit_is_asked_for_again_and_both_calls_are_rescued(way: tuple[Way, str]) -> None:
    rescue, block = way
    rescue.hang_then(QUICK | {"arguments": {"city": "Oslo"}}, QUICK)
    client = rescue.run(NAME, block)["client"]
    answer = await client.chat.completions.create(model="m", response_model=Weather, messages=USER, max_retries=1)
    assert answer.model_dump() == FITS.model_dump()
    await rescue.assert_rescued(2)


async def test_a_patched_client_is_refused(library: Way) -> None:
    with pytest.raises(UnsupportedError):
        hedged(library.run(NAME, "library")["client"])
