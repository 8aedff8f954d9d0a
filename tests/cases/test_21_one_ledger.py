"""code_puppy PR 317: stream × SDK × HTTP retries made 45 calls on 429. One ledger per request bounds them all."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI, OpenAI
from tests.sdk.racing import SLOW, outcomes, scripted

import hedgerow
from hedgerow.testing.process import SandboxProcess

MESSAGES: Any = [{"role": "user", "content": "hi"}]
FAILS: dict[str, Any] = {
    "status": 500,
    "first_token_s": 0.0,
    "before_headers_s": 0.0,
}  # at once: a copy would meet the same outage
FAILS_LATE: dict[str, Any] = {"status": 500, "before_headers_s": 0.8}
Ask = Callable[..., Any]

both_ways = pytest.mark.parametrize("kind", [AsyncOpenAI, OpenAI], ids=["async", "sync"])


@pytest.fixture
async def hedged() -> AsyncIterator[Callable[..., Any]]:
    """Makes hedged clients, async or sync, and closes them at the end."""
    made: list[Any] = []

    def make(kind: type, sandbox: SandboxProcess, *, retries: int = 2, **policy: Any) -> Any:
        client = kind(base_url=f"{sandbox.url}/v1", api_key="k", max_retries=retries)
        made.append(hedgerow.hedged(client, policy=hedgerow.Policy(**{"trigger": "off", "budget": "off", **policy})))
        return made[-1]

    yield make
    for client in made:
        if isinstance(client, AsyncOpenAI):
            await client.close()
        else:
            client.close()


async def ask(client: Any, case: str, *attempts: dict[str, Any], **fields: Any) -> Any:
    def call() -> Any:
        return client.chat.completions.create(
            model="m", messages=MESSAGES, extra_headers=scripted(case, *attempts), **fields
        )

    return await call() if isinstance(client, AsyncOpenAI) else await asyncio.to_thread(call)


@both_ways
@pytest.mark.parametrize("fails", [FAILS, FAILS_LATE], ids=["at once", "late"])
async def test_our_attempts_spent_on_failures_are_not_multiplied_by_the_sdks_retries(
    kind: type, fails: dict[str, Any], hedgerow_sandbox: SandboxProcess, hedged: Callable[..., Any]
) -> None:
    """As many as the bare client's, and `max_backups` (2) over all tries; and the SDK is never told not to try again."""
    client, case = hedged(kind, hedgerow_sandbox), f"21/500/{kind.__name__}/{fails['before_headers_s']}"
    with pytest.raises(openai.InternalServerError) as raised:
        await ask(client, case, fails)
    assert len(outcomes(hedgerow_sandbox, case)) == 3 + 2
    assert raised.value.response.headers["hedgerow-attempts"] == "5"
    assert "x-should-retry" not in raised.value.response.headers


@both_ways
async def test_a_plain_429_is_left_to_the_sdks_back_off(
    kind: type, hedgerow_sandbox: SandboxProcess, hedged: Callable[..., Any]
) -> None:
    client = hedged(kind, hedgerow_sandbox, retries=1)
    with pytest.raises(openai.RateLimitError) as raised:
        await ask(client, f"21/429/{kind.__name__}", {"status": 429, "retry_after": 0.01})
    assert len(outcomes(hedgerow_sandbox, f"21/429/{kind.__name__}")) == 2
    assert "x-should-retry" not in raised.value.response.headers


@both_ways
async def test_what_the_provider_says_of_retries_of_a_429_is_passed_on(
    kind: type, hedgerow_sandbox: SandboxProcess, hedged: Callable[..., Any]
) -> None:
    client = hedged(kind, hedgerow_sandbox, trigger="first_token", delay=0.05, max_backups=1)
    pushed_back = {"status": 429, "await_arrivals": 2, "headers": {"x-should-retry": "false"}}
    with pytest.raises(openai.RateLimitError) as raised:
        await ask(client, f"21/said/{kind.__name__}", pushed_back)
    assert outcomes(hedgerow_sandbox, f"21/said/{kind.__name__}") == ["failed", "failed"]
    assert raised.value.response.headers["hedgerow-attempts"] == "2"
    assert raised.value.response.headers["x-should-retry"] == "false"


@both_ways
async def test_a_later_try_is_raced_only_with_what_the_first_has_left(
    kind: type, hedgerow_sandbox: SandboxProcess, hedged: Callable[..., Any]
) -> None:
    client = hedged(kind, hedgerow_sandbox, trigger="first_token", delay=0.05, max_backups=1)
    # Try 1: a 429, which starts nothing. Try 2: slow, rescued by the one backup that is left.
    answer = await ask(
        client,
        f"21/left/{kind.__name__}",
        {"status": 429, "retry_after": 0.01},
        SLOW,
        {"first_token_s": 0.01, "text": "ok"},
    )
    assert answer.choices[0].message.content == "ok"
    assert len(outcomes(hedgerow_sandbox, f"21/left/{kind.__name__}")) == 3


@both_ways
async def test_the_deadline_counts_from_the_first_try(
    kind: type, hedgerow_sandbox: SandboxProcess, hedged: Callable[..., Any]
) -> None:
    client = hedged(kind, hedgerow_sandbox, max_backups=0, timeout_s=0.3)
    with pytest.raises(openai.APITimeoutError):
        # The SDK waits about half a second before it tries again.
        await ask(client, f"21/deadline/{kind.__name__}", FAILS)
    assert len(outcomes(hedgerow_sandbox, f"21/deadline/{kind.__name__}")) == 1


@both_ways
async def test_requests_one_after_the_other_have_ledgers_of_their_own(
    kind: type, hedgerow_sandbox: SandboxProcess, hedged: Callable[..., Any]
) -> None:
    client = hedged(kind, hedgerow_sandbox)
    for number in range(3):
        with pytest.raises(openai.InternalServerError) as raised:
            await ask(client, f"21/own/{kind.__name__}/{number}", FAILS_LATE)
        sent = len(outcomes(hedgerow_sandbox, f"21/own/{kind.__name__}/{number}"))
        assert sent == 5
        assert raised.value.response.headers["hedgerow-attempts"] == "5"
