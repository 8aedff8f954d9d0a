"""CLIProxyAPI PR 4980: `event: error` (overloaded) inside a 200 was taken for an answer, and its attempt for a success.

Right: before content it is the failure it stands for, status 529, and the next attempt starts at once; after content it is passed
on in the dialect, so that the SDK raises its own error, and the attempt counts as failed.
"""

from typing import Any

import pytest
from tests.sdk.adapters import ADAPTERS, Speak
from tests.sdk.racing import QUICK, SLOW, idle, outcomes

from hedgerow.testing.process import SandboxProcess

OVERLOADED = {"type": "overloaded_error", "message": "Overloaded"}
PATIENT = {"delay": 600.0}
SHAPES: dict[str, dict[str, Any]] = {
    "first of all": {"role_chunk": False},
    "after the opening": {},
    "after pings": {"first_token_s": 0.1, "pings": {"every_s": 0.02, "count": 3}},
    "without an end": {"end": "eof"},
    "byte by byte": {"chunk_bytes": 1, "line_end": "\r\n"},
}

# Gemini has no such error; its own are in the matrix of SDKs.
SPEAKING = [adapter for adapter in ADAPTERS if adapter.name != "gemini"]
each_sdk = pytest.mark.parametrize("adapter", SPEAKING, ids=lambda adapter: adapter.name)
each_manner = pytest.mark.parametrize("sync", [False, True], ids=["async", "sync"])


def overloaded(after: int, **script: Any) -> dict[str, Any]:
    return {
        "first_token_s": 0.0,
        "token_s": 0.0,
        "tokens": 9,
        "error_frame": {"after": after, "error": OVERLOADED},
        **script,
    }


@each_sdk
@each_manner
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
async def test_before_content_it_is_a_529_and_the_next_attempt_starts_at_once(
    hedgerow_sandbox: SandboxProcess, speak: Speak, shape: dict[str, Any]
) -> None:
    speaker = speak(**PATIENT)
    assert await speaker.stream("3/before", overloaded(0, **shape), {**QUICK, "text": "served"}) == "served"
    first, second = outcomes(hedgerow_sandbox, "3/before")
    assert first in ("failed", "disconnected")  # closed at the error frame, perhaps before the last of it was written
    assert second == "completed"
    (event,) = await speaker.events()
    assert [(each.outcome, each.status, each.reason) for each in event.attempts] == [
        ("failed", 529, "primary"),
        ("won", 200, "error"),
    ]


@each_sdk
@each_manner
async def test_from_a_backup_it_leaves_the_healthy_primary_alone(
    hedgerow_sandbox: SandboxProcess, speak: Speak
) -> None:
    speaker = speak(max_backups=1)
    healthy = {"await_arrivals": 2, "first_token_s": 0.2, "text": "healthy"}
    assert await speaker.stream("3/backup", healthy, overloaded(0)) == "healthy"
    await idle(hedgerow_sandbox)
    (event,) = await speaker.events()
    assert [(each.outcome, each.status) for each in event.attempts] == [("won", 200), ("failed", 529)]


@each_sdk
@each_manner
@pytest.mark.parametrize("end", ["done", "eof"])
async def test_after_content_it_is_passed_on_and_the_attempt_counts_as_failed(
    hedgerow_sandbox: SandboxProcess, speak: Speak, end: str
) -> None:
    speaker = speak(**PATIENT)
    stream = await speaker.opened("3/after", overloaded(5, end=end), SLOW)
    assert await stream.next()
    with pytest.raises(Exception, match="Overloaded"):
        await stream.rest()
    await idle(hedgerow_sandbox)
    assert outcomes(hedgerow_sandbox, "3/after") == ["failed"]
    (event,) = await speaker.events()
    assert (event.outcome, event.winner) == ("failed", None)
    assert [(each.outcome, each.status, each.error) for each in event.attempts] == [("failed", 529, "overloaded_error")]


@each_sdk
@each_manner
async def test_when_every_attempt_sends_it_the_caller_sees_it(speak: Speak) -> None:
    speaker = speak(max_backups=1, **PATIENT)
    with pytest.raises(Exception, match="Overloaded"):
        await speaker.stream("3/all", overloaded(0))
    (event,) = await speaker.events()
    assert (event.outcome, [each.status for each in event.attempts]) == ("failed", [529, 529])
