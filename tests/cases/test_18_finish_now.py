"""grpc-java 7222: the backups were throttled and the primary failed; the call hung until its deadline.

Right: no live attempt and none allowed means finish now, whatever forbids the next one: an empty budget, the number of
attempts, a hold-off, or a request that is not safe to run twice.
"""

from typing import Any

import httpx2
import openai
import pytest
from openai import AsyncOpenAI
from tests.cases.support import NEVER_S, Hedge, Send, all_closed, closed_port, recorded, whole_and_streamed
from tests.sdk.racing import ask, outcomes, stream

import hedgerow
from hedgerow.testing.process import SandboxProcess

# The call would wait this long if it hung: far longer than the test may last.
LIMITS = {"timeout_s": 600.0, "attempt_timeout_s": 500.0, "delay": 300.0}
FAILURES = {
    "500": {"status": 500},
    "503": {"status": 503},
    "529": {"status": 529},
    "429": {"status": 429},
    "408": {"status": 408},
    "reset": {"reset": True, "first_token_s": 0.0},
    "cut before the headers": {"cut_after": 0, "first_token_s": 0.0, "before_headers_s": NEVER_S},
}
LATE_FAILURE = {"status": 500, "before_headers_s": 0.8}  # later than the first back-off of an SDK
every_failure = pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)


async def empty(client: AsyncOpenAI) -> None:
    """Spend the two tokens of a budget of 0 on replacements that fail, which those of late failures are at once."""
    for number in range(2):
        with pytest.raises(openai.InternalServerError):
            await ask(client, f"18/spent/{number}", LATE_FAILURE)
    budget: Any = hedgerow.hedger_of(client).stats()["budget"]
    assert budget["bucket"] == 0


@whole_and_streamed
@every_failure
async def test_with_an_empty_budget_a_failed_primary_ends_the_call(
    hedge: Hedge, hedgerow_sandbox: SandboxProcess, send: Send, failure: dict[str, Any]
) -> None:
    client = hedge(budget=0.0, max_backups=1, **LIMITS)
    await empty(client)
    with pytest.raises(openai.APIError):
        await send(client, "18", failure)
    await all_closed(client, hedgerow_sandbox)
    assert len(outcomes(hedgerow_sandbox, "18")) == 1
    assert [event.outcome for event in await recorded(client, 3)] == ["failed"] * 3


@whole_and_streamed
async def test_a_primary_and_then_its_backup_fail_with_nothing_left_to_pay_a_third(
    hedge: Hedge, hedgerow_sandbox: SandboxProcess, send: Send
) -> None:
    client = hedge(budget=0.0, **(LIMITS | {"delay": 0.05}))
    with pytest.raises(openai.InternalServerError):
        await send(client, "18", {"status": 500, "before_headers_s": 0.15}, {"status": 502, "before_headers_s": 0.2})
    assert outcomes(hedgerow_sandbox, "18") == ["failed", "failed"]
    (event,) = await recorded(client)
    assert [attempt.reason for attempt in event.attempts] == ["primary", "first_token"]


@pytest.mark.parametrize(
    ("settings", "fields"),
    [
        pytest.param({"max_backups": 0}, {}, id="no backups by policy"),
        pytest.param({"max_backups": 1}, {}, id="all backups used"),
        pytest.param({"mode": "observe"}, {}, id="observed only"),
        pytest.param({}, {"store": True}, id="not safe to run twice"),
        pytest.param({"max_backups": 0, "trigger": "off"}, {}, id="switched off"),
    ],
)
async def test_whatever_forbids_the_next_attempt(
    hedge: Hedge, hedgerow_sandbox: SandboxProcess, settings: dict[str, Any], fields: dict[str, Any]
) -> None:
    client = hedge(**LIMITS, **settings)
    for send in (ask, stream):
        with pytest.raises(openai.InternalServerError):
            await send(client, f"18/{send.__name__}", LATE_FAILURE, **fields)
        assert len(outcomes(hedgerow_sandbox, f"18/{send.__name__}")) == 1 + settings.get("max_backups", 0)


@pytest.mark.library_only(
    reason="the connection that is refused would be the client's; tests/gateway has the gateway's"
)
async def test_a_refused_connection_with_nothing_else_to_try(hedge: Hedge) -> None:
    sdk = AsyncOpenAI(base_url=f"http://127.0.0.1:{closed_port()}/v1", api_key="k", max_retries=0)
    client = hedge(client=sdk, budget=0.0, max_backups=1, **LIMITS)
    for number in range(3):
        with pytest.raises(openai.APIConnectionError) as refused:
            await ask(client, f"18/{number}")
        assert isinstance(refused.value.__cause__, httpx2.ConnectError)
    assert [len(event.attempts) for event in await recorded(client, 3)] == [2, 2, 1]


async def test_an_empty_answer_that_was_kept_is_delivered_when_nothing_else_may_start(
    hedge: Hedge, hedgerow_sandbox: SandboxProcess
) -> None:
    client = hedge(max_backups=1, **(LIMITS | {"delay": 0.05}))
    empty_answer = {"first_token_s": 0.0, "text": "", "tokens": 0, "finish_reason": "length"}
    assert await ask(client, "18", {"status": 500, "before_headers_s": 0.2}, empty_answer) == ""
    assert outcomes(hedgerow_sandbox, "18") == ["failed", "completed"]
