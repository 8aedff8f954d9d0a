"""The same promises through every SDK: each API, synchronous and not, streamed and not."""

from typing import Any

import pytest
from tests.sdk.adapters import ADAPTERS, Speak
from tests.sdk.racing import QUICK, SLOW, eventually, outcomes

from hedgerow.testing.process import SandboxProcess

BUSY = {"type": "overloaded_error", "message": "busy"}
PATIENT = {"delay": 600.0}

each_sdk = pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: adapter.name)
each_manner = pytest.mark.parametrize("sync", [False, True], ids=["async", "sync"])
each_way = pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])


@each_sdk
@each_manner
@each_way
async def test_a_backup_wins_and_the_slow_primary_is_closed(
    hedgerow_sandbox: SandboxProcess, speak: Speak, streamed: bool
) -> None:
    speaker = speak(max_backups=1)
    assert await speaker.speak(streamed, "m/backup", SLOW, {**QUICK, "text": "rescued"}) == "rescued"
    await eventually(lambda: outcomes(hedgerow_sandbox, "m/backup") == ["disconnected", "completed"])
    (event,) = await speaker.events()
    assert (event.plan, event.winner, event.stream) == ("hedge", 1, streamed)
    assert [attempt.outcome for attempt in event.attempts] == ["lost", "won"]


@each_sdk
@each_manner
@each_way
async def test_a_primary_wins_and_the_backup_is_closed(
    hedgerow_sandbox: SandboxProcess, speak: Speak, streamed: bool
) -> None:
    speaker = speak(max_backups=1)
    late = {"await_arrivals": 2, "first_token_s": 0.2, "text": "first after all"}
    assert await speaker.speak(streamed, "m/primary", late, SLOW) == "first after all"
    await eventually(lambda: outcomes(hedgerow_sandbox, "m/primary") == ["completed", "disconnected"])
    (event,) = await speaker.events()
    assert [attempt.outcome for attempt in event.attempts] == ["won", "lost"]


@each_sdk
@each_manner
@each_way
async def test_when_all_fail_the_caller_gets_the_primarys_error(
    hedgerow_sandbox: SandboxProcess, speak: Speak, adapter: Any, streamed: bool
) -> None:
    speaker = speak(max_backups=1, **PATIENT)
    with pytest.raises(Exception) as raised:
        await speaker.speak(streamed, "m/fail", {"status": 503}, {"status": 500})
    assert adapter.status(raised.value) == 503
    assert outcomes(hedgerow_sandbox, "m/fail") == ["failed", "failed"]
    (event,) = await speaker.events()
    assert (event.outcome, [attempt.status for attempt in event.attempts]) == ("failed", [503, 500])


@each_sdk
@each_way
@pytest.mark.parametrize("sync", [False])
async def test_a_caller_who_is_cancelled_leaves_nothing_running(
    hedgerow_sandbox: SandboxProcess, speak: Speak, streamed: bool
) -> None:
    speaker = speak(max_backups=1)
    await speaker.leave(streamed, hedgerow_sandbox, "m/leave", SLOW, SLOW)
    await eventually(lambda: outcomes(hedgerow_sandbox, "m/leave") == ["disconnected", "disconnected"])
    (event,) = await speaker.events()
    assert event.outcome == "caller_left"


@each_sdk
@each_manner
async def test_a_stream_that_is_closed_early_ends_at_the_provider(
    hedgerow_sandbox: SandboxProcess, speak: Speak
) -> None:
    speaker = speak(trigger="off")
    stream = await speaker.opened("m/close", {"first_token_s": 0.01, "token_s": 0.05, "tokens": 500})
    assert await stream.next()
    await stream.close()
    await eventually(lambda: outcomes(hedgerow_sandbox, "m/close") == ["disconnected"])
    (event,) = await speaker.events()
    assert event.outcome == "caller_left"


@each_sdk
@each_manner
@each_way
async def test_an_error_inside_a_200_before_content_starts_the_next_attempt_at_once(
    hedgerow_sandbox: SandboxProcess, speak: Speak, streamed: bool
) -> None:
    speaker = speak(**PATIENT)
    busy = {"first_token_s": 0.0, "error_frame": {"after": 0, "error": BUSY}}
    assert await speaker.speak(streamed, "m/busy", busy, {**QUICK, "text": "served"}) == "served"
    first, second = outcomes(hedgerow_sandbox, "m/busy")
    assert first in ("failed", "disconnected")  # closed at the error frame, perhaps before the last of it was written
    assert second == "completed"
    (event,) = await speaker.events()
    assert [(attempt.outcome, attempt.status) for attempt in event.attempts] == [("failed", 529), ("won", 200)]


@each_sdk
@each_manner
@each_way
async def test_a_429_goes_to_the_caller_with_its_retry_after_and_never_to_the_same_key(
    hedgerow_sandbox: SandboxProcess, speak: Speak, adapter: Any, streamed: bool
) -> None:
    speaker = speak(**PATIENT)
    with pytest.raises(Exception) as raised:
        await speaker.speak(streamed, "m/429", {"status": 429, "retry_after": 7}, {**QUICK, "text": "no"})
    assert adapter.status(raised.value) == 429
    assert raised.value.response.headers["retry-after"] == "7"  # type: ignore[attr-defined]
    assert outcomes(hedgerow_sandbox, "m/429") == ["failed"]


@each_sdk
@each_manner
@each_way
async def test_an_answer_cut_before_content_is_replaced(
    hedgerow_sandbox: SandboxProcess, speak: Speak, streamed: bool
) -> None:
    speaker = speak(**PATIENT)
    cut = {"first_token_s": 0.0, "cut_after": 0}
    assert await speaker.speak(streamed, "m/cut", cut, {**QUICK, "text": "whole"}) == "whole"
    assert outcomes(hedgerow_sandbox, "m/cut") == ["failed", "completed"]


@each_sdk
@each_manner
async def test_a_whole_answer_cut_in_the_middle_is_replaced(hedgerow_sandbox: SandboxProcess, speak: Speak) -> None:
    speaker = speak(**PATIENT)
    cut = {"first_token_s": 0.0, "token_s": 0.0, "tokens": 9, "cut_after": 5}
    assert await speaker.ask("m/half", cut, {**QUICK, "text": "whole"}) == "whole"
    assert outcomes(hedgerow_sandbox, "m/half") == ["failed", "completed"]


@each_sdk
@each_manner
async def test_a_stream_cut_after_content_is_never_replaced_and_counts_as_failed(speak: Speak) -> None:
    speaker = speak(**PATIENT)
    stream = await speaker.opened("m/broken", {"first_token_s": 0.0, "token_s": 0.0, "tokens": 9, "cut_after": 5})
    said = await stream.next()
    assert said
    with pytest.raises(Exception):  # noqa: B017 every SDK shows a broken connection in its own way
        await stream.rest()
    (event,) = await speaker.events()
    assert (event.outcome, event.attempts[0].outcome, len(event.attempts)) == ("failed", "failed", 1)


@each_sdk
@each_manner
async def test_a_call_streamed_upstream_is_answered_whole(hedgerow_sandbox: SandboxProcess, speak: Speak) -> None:
    speaker = speak(upstream_stream=True)
    assert await speaker.ask("m/up", SLOW, {**QUICK, "text": "put together"}) == "put together"
    await eventually(lambda: outcomes(hedgerow_sandbox, "m/up") == ["disconnected", "completed"])
    (event,) = await speaker.events()
    assert (event.stream, event.upstream_stream) == (False, True)
    assert event.attempts[1].first_token_s is not None


@each_sdk
@each_manner
@pytest.mark.parametrize("script", [{"cut_after": 5, "tokens": 9}, {"end": "eof", "tokens": 9}], ids=["cut", "eof"])
async def test_a_stream_cut_upstream_is_replaced_and_never_delivered_half(speak: Speak, script: dict[str, Any]) -> None:
    speaker = speak(upstream_stream=True, **PATIENT)
    assert await speaker.ask("m/upcut", script, {**QUICK, "text": "whole"}) == "whole"


@each_sdk
@each_manner
async def test_an_error_inside_a_stream_upstream_is_an_http_error_to_the_caller(speak: Speak, adapter: Any) -> None:
    speaker = speak(upstream_stream=True, **PATIENT)
    script = {"tokens": 9, "error_frame": {"after": 3, "error": BUSY}}
    with pytest.raises(Exception, match="busy") as raised:
        await speaker.ask("m/uperror", script)
    assert adapter.status(raised.value) == 529
