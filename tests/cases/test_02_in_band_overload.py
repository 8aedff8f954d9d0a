"""oh-my-pi 9812: a full queue answered 200, one in-band 503 and `[DONE]`, which was taken for an empty success.

Right: an in-band error before content is a failed attempt; the next starts at once, without waiting for any trigger. Where
none may start, the caller gets the error and not an empty answer.
"""

import openai
import pytest
from openai import AsyncOpenAI
from tests.cases.support import MESSAGES, Hedge, Send, opened, recorded, whole_and_streamed
from tests.sdk.racing import QUICK, outcomes, scripted

from hedgerow.testing.process import SandboxProcess

ERRORS = {
    "number": {"code": 503, "message": "queue full"},
    "number as text": {"code": "503", "message": "queue full"},
    "name": {"type": "service_unavailable_error", "message": "queue full"},
    "overloaded": {"type": "overloaded_error", "message": "queue full"},
    "server error": {"type": "server_error", "message": "queue full"},
    "no name at all": {"message": "queue full"},
}
PATIENT = {"delay": 600.0}


def full_queue(error: dict[str, object], **script: object) -> dict[str, object]:
    return {"first_token_s": 0.0, "error_frame": {"after": 0, "error": error}, **script}


@whole_and_streamed
@pytest.mark.parametrize("error", ERRORS.values(), ids=ERRORS)
async def test_the_next_attempt_starts_at_once(
    hedge: Hedge, hedgerow_sandbox: SandboxProcess, send: Send, error: dict[str, object]
) -> None:
    client = hedge(**PATIENT)
    assert await send(client, "2/queue", full_queue(error), QUICK | {"text": "served"}) == "served"
    assert outcomes(hedgerow_sandbox, "2/queue") == ["failed", "completed"]
    (event,) = await recorded(client)
    assert [(attempt.outcome, attempt.reason) for attempt in event.attempts] == [
        ("failed", "primary"),
        ("won", "error"),
    ]
    assert event.attempts[0].status in (500, 503, 529)


@pytest.mark.parametrize(
    "shape", [{"role_chunk": False}, {"end": "eof"}, {"final_newline": False}, {"line_end": "\r\n"}]
)
async def test_however_the_stream_around_the_error_looks(
    hedge: Hedge, hedgerow_sandbox: SandboxProcess, shape: dict[str, object]
) -> None:
    client = hedge(**PATIENT)
    chunks = await opened(client, "2/shape", full_queue(ERRORS["number"], **shape), QUICK | {"text": "served"})
    assert "".join([each.choices[0].delta.content or "" async for each in chunks if each.choices]) == "served"
    assert outcomes(hedgerow_sandbox, "2/shape") == ["failed", "completed"]


@whole_and_streamed
async def test_even_while_nothing_is_known_of_the_provider(hedge: Hedge, send: Send) -> None:
    client = hedge(delay="p95", budget=0.05)
    assert await send(client, "2/cold", full_queue(ERRORS["number"]), QUICK | {"text": "served"}) == "served"
    (event,) = await recorded(client)
    assert event.plan == "cold"


async def test_a_queue_that_stays_full_is_an_error_for_a_streaming_caller(
    hedge: Hedge, hedgerow_sandbox: SandboxProcess
) -> None:
    client = hedge(**PATIENT)
    chunks = await opened(client, "2/full", full_queue(ERRORS["number"]))
    with pytest.raises(openai.APIError, match="queue full"):
        [_ async for _ in chunks]
    await expect_failure(client, hedgerow_sandbox, attempts=3)


async def test_a_queue_that_stays_full_shows_its_error_to_a_buffered_caller(
    hedge: Hedge, hedgerow_sandbox: SandboxProcess
) -> None:
    client = hedge(max_backups=0, **PATIENT)
    answer = await client.chat.completions.with_raw_response.create(
        model="m", messages=MESSAGES, extra_headers=scripted("2/full", full_queue(ERRORS["number"]))
    )
    assert "queue full" in answer.text
    await expect_failure(client, hedgerow_sandbox, attempts=1)


async def expect_failure(client: AsyncOpenAI, sandbox: SandboxProcess, *, attempts: int) -> None:
    """Counted as a failure here, and so many attempts there."""
    (event,) = await recorded(client)
    assert (event.outcome, event.winner) == ("failed", None)
    assert outcomes(sandbox, "2/full") == ["failed"] * attempts
