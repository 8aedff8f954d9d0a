"""Every SDK through the gateway: they change their base URL and nothing else."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import anthropic
import openai
import pytest
from google import genai
from tests.gateway.running import Running
from tests.sdk.adapters import ADAPTERS, Speaker
from tests.sdk.racing import QUICK, SLOW, eventually, outcomes

from hedgerow.testing.process import SandboxProcess

BUSY = {"type": "overloaded_error", "message": "busy"}
PATIENT = {"delay": 600.0}

# Google's SDK leaves a stream that it has been told to close open until its loop ends.
CLOSING = [adapter for adapter in ADAPTERS if adapter.name != "gemini"]

each_sdk = pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: adapter.name)
each_manner = pytest.mark.parametrize("sync", [False, True], ids=["async", "sync"])
each_way = pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])

Start = Callable[..., Any]


@pytest.fixture
async def speak(start: Start, adapter: Any, sync: bool) -> Any:
    """Starts a gateway with a policy, and makes an SDK's client that only knows its address."""
    made: list[Speaker] = []

    async def make(**policy: Any) -> tuple[Speaker, Running]:
        gateway = await start(policy)
        made.append(Speaker(adapter, adapter.plain(SimpleNamespace(url=gateway.url), sync), sync))
        return made[-1], gateway

    yield make
    for speaker in made:
        await speaker.shut()


async def event_of(gateway: Running) -> Any:
    await eventually(lambda: len(list(gateway.hedger.events)) == 1)
    (event,) = gateway.hedger.events
    return event


@each_sdk
@each_manner
@each_way
async def test_a_backup_wins_and_the_slow_primary_is_closed(
    hedgerow_sandbox: SandboxProcess, speak: Any, streamed: bool
) -> None:
    speaker, gateway = await speak(max_backups=1)
    assert await speaker.speak(streamed, "g/backup", SLOW, {**QUICK, "text": "rescued"}) == "rescued"
    await eventually(lambda: outcomes(hedgerow_sandbox, "g/backup") == ["disconnected", "completed"])
    event = await event_of(gateway)
    assert (event.plan, event.winner, event.stream, event.measured_at, event.policy) == (
        "hedge",
        1,
        streamed,
        "gateway",
        "soon",
    )
    assert [attempt.outcome for attempt in event.attempts] == ["lost", "won"]


@each_sdk
@each_manner
@each_way
async def test_a_primary_wins_and_the_backup_is_closed(
    hedgerow_sandbox: SandboxProcess, speak: Any, streamed: bool
) -> None:
    speaker, gateway = await speak(max_backups=1)
    late = {"await_arrivals": 2, "first_token_s": 0.1, "text": "first after all"}
    assert await speaker.speak(streamed, "g/primary", late, SLOW) == "first after all"
    await eventually(lambda: outcomes(hedgerow_sandbox, "g/primary") == ["completed", "disconnected"])
    assert [attempt.outcome for attempt in (await event_of(gateway)).attempts] == ["won", "lost"]


@each_sdk
@each_manner
@each_way
async def test_when_all_fail_the_client_gets_the_primarys_error(
    hedgerow_sandbox: SandboxProcess, speak: Any, adapter: Any, streamed: bool
) -> None:
    speaker, _ = await speak(max_backups=1, **PATIENT)
    with pytest.raises(Exception) as raised:
        # Late: what fails at once is left to the SDK, which has tries left.
        await speaker.speak(streamed, "g/fail", *({"status": status, "before_headers_s": 0.8} for status in (503, 500)))
    assert adapter.status(raised.value) == 503
    assert outcomes(hedgerow_sandbox, "g/fail") == ["failed", "failed"]


@each_sdk
@each_way
@pytest.mark.parametrize("sync", [False])
async def test_a_client_that_leaves_before_content_leaves_nothing_running(
    hedgerow_sandbox: SandboxProcess, speak: Any, streamed: bool
) -> None:
    speaker, gateway = await speak(max_backups=1)
    await speaker.leave(streamed, hedgerow_sandbox, "g/leave", SLOW, SLOW)
    await eventually(lambda: outcomes(hedgerow_sandbox, "g/leave") == ["disconnected", "disconnected"])
    assert (await event_of(gateway)).outcome == "caller_left"


@pytest.mark.parametrize("adapter", CLOSING, ids=lambda adapter: adapter.name)
@each_manner
async def test_a_client_that_leaves_a_stream_ends_it_at_the_provider(
    hedgerow_sandbox: SandboxProcess, speak: Any
) -> None:
    speaker, gateway = await speak(trigger="off")
    stream = await speaker.opened("g/close", {"first_token_s": 0.01, "token_s": 0.05, "tokens": 500})
    assert await stream.next()
    await stream.close()
    await eventually(lambda: outcomes(hedgerow_sandbox, "g/close") == ["disconnected"])
    assert (await event_of(gateway)).outcome == "caller_left"


@each_sdk
@each_manner
@each_way
async def test_an_error_inside_a_200_before_content_is_replaced(speak: Any, streamed: bool) -> None:
    speaker, gateway = await speak(**PATIENT)
    busy = {"first_token_s": 0.0, "error_frame": {"after": 0, "error": BUSY}}
    assert await speaker.speak(streamed, "g/busy", busy, {**QUICK, "text": "served"}) == "served"
    event = await event_of(gateway)
    assert [(attempt.outcome, attempt.status) for attempt in event.attempts] == [("failed", 529), ("won", 200)]


@each_sdk
@each_manner
async def test_a_stream_cut_after_content_ends_in_the_dialects_own_error(speak: Any) -> None:
    speaker, gateway = await speak(**PATIENT)
    cut = {"first_token_s": 0.0, "token_s": 0.0, "tokens": 9, "cut_after": 5, "chunk_bytes": 7}
    stream = await speaker.opened("g/broken", cut)
    assert await stream.next()
    with pytest.raises((openai.OpenAIError, anthropic.APIError, genai.errors.APIError)) as raised:
        await stream.rest()
    assert "broke off" in str(raised.value)
    event = await event_of(gateway)
    assert (event.outcome, event.attempts[0].outcome, len(event.attempts)) == ("failed", "failed", 1)


@each_sdk
@each_manner
async def test_a_call_streamed_upstream_is_answered_whole(speak: Any) -> None:
    speaker, gateway = await speak(upstream_stream=True)
    assert await speaker.ask("g/up", SLOW, {**QUICK, "text": "put together"}) == "put together"
    event = await event_of(gateway)
    assert (event.stream, event.upstream_stream) == (False, True)
