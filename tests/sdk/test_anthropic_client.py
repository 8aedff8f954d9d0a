"""hedged(Anthropic()), hedged(AsyncAnthropic()): keys, targets, time-outs and the SDK's own conveniences."""

from collections.abc import Callable
from typing import Any

import anthropic
import httpx2
import pytest
from anthropic import Anthropic, AsyncAnthropic
from tests.sdk.racing import QUICK, SLOW, eventually, outcomes, scripted

import hedgerow
from hedgerow.testing.process import SandboxProcess
from hedgerow.transports.targets import request_for

SOON = hedgerow.Policy(trigger="first_token", delay=0.05, budget="off", max_backups=1)
CALL: Any = {"model": "claude-x", "max_tokens": 500, "messages": [{"role": "user", "content": "hi"}]}
TOOL: Any = {"name": "note", "input_schema": {"type": "object"}}


def plain(sandbox: SandboxProcess, **options: Any) -> AsyncAnthropic:
    return AsyncAnthropic(**{"base_url": sandbox.url, "api_key": "k", "max_retries": 0, **options})


@pytest.mark.parametrize(
    "credentials", [{"api_key": "mine"}, {"api_key": None, "auth_token": "mine"}], ids=["key", "token"]
)
async def test_each_kind_of_credential_stays_with_the_client(
    hedgerow_sandbox: SandboxProcess, credentials: dict[str, Any]
) -> None:
    sent: list[str] = []

    async def hook(request: httpx2.Request) -> None:
        sent.append(request.headers["authorization"])

    http_client = anthropic.DefaultAsyncHttpxClient(event_hooks={"request": [hook]})
    original = plain(hedgerow_sandbox, http_client=http_client, **credentials)
    async with hedgerow.hedged(original, policy=SOON) as client:
        answer = await client.messages.create(**CALL, extra_headers=scripted("a/key", SLOW, {**QUICK, "text": "yes"}))
        assert answer.content[0].text == "yes"
        assert sent == ["Bearer mine"]
        assert (client.api_key, client.auth_token) == (original.api_key, original.auth_token)


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"x-api-key": "mine"}, {"x-api-key": "theirs"}),
        ({"authorization": "Bearer mine"}, {"authorization": "Bearer theirs"}),
    ],
)
def test_a_targets_key_goes_where_the_client_puts_its_own(headers: dict[str, str], expected: dict[str, str]) -> None:
    url = "https://api.anthropic.com/v1/messages?beta=true"
    private = {"anthropic-workspace-id": "w", "anthropic-user-profile-id": "p", "anthropic-version": "2026-10-21"}
    request = httpx2.Request("POST", url, headers={**headers, **private}, content=b"{}")
    sent = request_for(hedgerow.Target(base_url="https://eu.example", api_key="theirs"), request, b"{}")
    assert str(sent.url) == "https://eu.example/v1/messages?beta=true"
    assert {name: sent.headers[name] for name in expected} == expected
    assert sent.headers["anthropic-version"] == "2026-10-21"
    assert not {"anthropic-workspace-id", "anthropic-user-profile-id"} & set(sent.headers)
    without_key = request_for(hedgerow.Target(base_url="https://eu.example"), request, b"{}")
    assert b"mine" not in b" ".join(value for _, value in without_key.headers.raw)


@pytest.mark.parametrize("base_url", ["https://eu.example", "https://eu.example/", "https://eu.example/v1"])
def test_a_version_in_a_targets_base_url_is_not_doubled(base_url: str) -> None:
    vertex = "/v1/projects/p/locations/l/publishers/anthropic/models/claude-x:rawPredict"
    for path in ("/v1/messages", "/v1/messages/count_tokens", vertex):
        request = httpx2.Request("POST", f"https://api.example{path}", content=b"{}")
        assert str(request_for(hedgerow.Target(base_url=base_url), request, b"{}").url) == f"https://eu.example{path}"


async def test_a_backup_goes_to_a_target_whose_base_url_is_what_the_sdk_takes(
    hedgerow_sandbox_factory: Callable[..., SandboxProcess],
) -> None:
    here, there = hedgerow_sandbox_factory(time_scale=100.0), hedgerow_sandbox_factory()
    backup = hedgerow.Target(base_url=there.url, api_key="theirs", set={"model": "claude-there"})
    async with hedgerow.hedged(plain(here), policy=SOON, backup=backup) as client:
        headers = scripted("a/target", {"first_token_s": 0.05, "text": "there"})
        answer = await client.messages.create(**CALL, extra_headers=headers)
        assert (answer.content[0].text, answer.model) == ("there", "claude-there")
        await eventually(lambda: outcomes(here, "a/target") == ["disconnected"])
        assert outcomes(there, "a/target") == ["completed"]


async def test_the_sdks_stream_helper_and_its_beta_calls_are_rescued_too(hedgerow_sandbox: SandboxProcess) -> None:
    script = {**QUICK, "text": '{"note":"x"}', "tool_calls": 1, "reasoning_tokens": 3}
    async with hedgerow.hedged(plain(hedgerow_sandbox), policy=SOON) as client:
        call = {**CALL, "tools": [TOOL]}
        async with client.messages.stream(**call, extra_headers=scripted("a/helper", SLOW, script)) as stream:
            message = await stream.get_final_message()
        assert [block.type for block in message.content] == ["thinking", "tool_use"]
        assert message.content[1].input == {"note": "x"}
        beta = await client.beta.messages.create(
            **call, betas=["some-beta"], extra_headers=scripted("a/beta", SLOW, script)
        )
        assert beta.content[1].input == {"note": "x"}
        for case in ("a/helper", "a/beta"):
            await eventually(lambda case=case: outcomes(hedgerow_sandbox, case) == ["disconnected", "completed"])
        assert [event.tools for event in hedgerow.hedger_of(client).events] == [True, True]


@pytest.mark.parametrize("streamed", [False, True])
async def test_claude_on_vertex_is_rescued_too(hedgerow_sandbox: SandboxProcess, streamed: bool) -> None:
    original = anthropic.AsyncAnthropicVertex(
        region="eu", project_id="p", access_token="t", base_url=f"{hedgerow_sandbox.url}/v1", max_retries=0
    )
    async with hedgerow.hedged(original, policy=SOON) as client:
        headers = scripted("a/vertex", SLOW, {**QUICK, "text": "rescued"})
        answer = await client.messages.create(**CALL, stream=streamed, extra_headers=headers)
        if streamed:
            assert "message_stop" in [event.type async for event in answer]
        else:
            assert answer.content[0].text == "rescued"
        await eventually(lambda: outcomes(hedgerow_sandbox, "a/vertex") == ["disconnected", "completed"])
        (event,) = hedgerow.hedger_of(client).events
        assert (event.plan, event.model, event.stream) == ("hedge", "claude-x", streamed)


async def test_a_count_is_rescued_and_costs_nothing_and_a_batch_goes_through_unhedged(
    hedgerow_sandbox: SandboxProcess,
) -> None:
    async with hedgerow.hedged(plain(hedgerow_sandbox), policy=SOON) as client:
        headers = scripted("a/count", SLOW, QUICK)
        count = await client.messages.count_tokens(model="m", messages=CALL["messages"], extra_headers=headers)
        assert count.input_tokens == 2
        await eventually(lambda: outcomes(hedgerow_sandbox, "a/count") == ["disconnected", "completed"])
        with pytest.raises(anthropic.NotFoundError):
            await client.messages.batches.create(requests=[])
        hedger = hedgerow.hedger_of(client)
        await eventually(lambda: len(list(hedger.events)) == 2)  # type: ignore[arg-type]
        counted, batch = hedger.events
        assert (counted.plan, counted.dialect, counted.cost_high_usd) == ("hedge", "token_counts", 0.0)
        assert batch.plan == "not_safe:endpoint"


async def test_what_the_sdk_will_only_stream_it_refuses_before_we_see_it(hedgerow_sandbox: SandboxProcess) -> None:
    """Also with upstream_stream: the SDK reckons that such a call takes more than ten minutes."""
    policy = hedgerow.Policy(upstream_stream=True)
    async with hedgerow.hedged(plain(hedgerow_sandbox), policy=policy) as client:
        with pytest.raises(ValueError, match="Streaming is required"):
            await client.messages.create(**{**CALL, "max_tokens": 128_000})
        assert list(hedgerow.hedger_of(client).events) == []


@pytest.mark.parametrize("retries", [0, 2])
async def test_the_deadline_is_the_sdks_time_out_and_is_not_retried(
    hedgerow_sandbox: SandboxProcess, retries: int
) -> None:
    original = plain(hedgerow_sandbox, max_retries=retries)
    async with hedgerow.hedged(original, policy=hedgerow.Policy(trigger="off", timeout_s=0.2)) as client:
        with pytest.raises(anthropic.APITimeoutError) as raised:
            await client.messages.create(**CALL, extra_headers=scripted("a/late", SLOW))
        assert any("timeout_s = 0.2" in note for note in raised.value.__notes__)
        stream = await client.messages.create(
            **CALL, stream=True, extra_headers=scripted("a/long", {"first_token_s": 0.01, "token_s": 0.1, "tokens": 99})
        )
        with pytest.raises(anthropic.APITimeoutError):
            [_ async for _ in stream]
        for case in ("a/late", "a/long"):
            await eventually(lambda case=case: outcomes(hedgerow_sandbox, case) == ["disconnected"])


def test_the_deadline_of_a_synchronous_call_is_not_retried_either(hedgerow_sandbox: SandboxProcess) -> None:
    original = Anthropic(base_url=hedgerow_sandbox.url, api_key="k", max_retries=2)
    with hedgerow.hedged(original, policy=hedgerow.Policy(trigger="off", timeout_s=0.2)) as client:
        with pytest.raises(anthropic.APITimeoutError):
            client.messages.create(**CALL, extra_headers=scripted("a/sync", SLOW))
        assert len(outcomes(hedgerow_sandbox, "a/sync")) == 1


async def test_the_sdk_still_retries_a_429_after_the_time_it_was_told(hedgerow_sandbox: SandboxProcess) -> None:
    original = plain(hedgerow_sandbox, max_retries=1)
    async with hedgerow.hedged(original, policy=hedgerow.Policy(trigger="off")) as client:
        limited = {"status": 429, "headers": {"retry-after-ms": "1"}}
        headers = scripted("a/retried", limited, {"first_token_s": 0.2, "text": "later"})
        assert (await client.messages.create(**CALL, extra_headers=headers)).content[0].text == "later"
        assert outcomes(hedgerow_sandbox, "a/retried") == ["failed", "completed"]


async def test_input_is_known_exactly_of_a_loser_that_was_cut(hedgerow_sandbox: SandboxProcess) -> None:
    usage = {"input_tokens": 1000, "cached_tokens": 600}
    script = {"usage": usage, "tokens": 5}
    async with hedgerow.hedged(plain(hedgerow_sandbox), policy=SOON) as client:
        stream = await client.messages.create(
            **CALL, stream=True, extra_headers=scripted("a/usage", {**script, **SLOW}, {**script, **QUICK})
        )
        [_ async for _ in stream]
        (event,) = hedgerow.hedger_of(client).events
        loser, winner = event.attempts
        assert (loser.outcome, loser.input_tokens, loser.cached_tokens, loser.output_tokens) == ("lost", 1000, 600, 1)
        assert (winner.outcome, winner.input_tokens, winner.output_tokens) == ("won", 1000, 5)
        assert winner.service_tier == "standard"


async def test_what_is_left_of_the_providers_limits_is_read(hedgerow_sandbox: SandboxProcess) -> None:
    limits = {"anthropic-ratelimit-requests-limit": "100", "anthropic-ratelimit-requests-remaining": "3"}
    policy = hedgerow.Policy(trigger="first_token", delay=0.05, budget=1.0)
    async with hedgerow.hedged(plain(hedgerow_sandbox), policy=policy) as client:
        for number in range(30):
            headers = scripted(f"a/warm/{number}", {**QUICK, "tokens": 2, "headers": limits})
            await client.messages.create(**CALL, extra_headers=headers)
        headers = scripted("a/limits", {"first_token_s": 0.5, "text": "late", "headers": limits}, QUICK)
        assert (await client.messages.create(**CALL, extra_headers=headers)).content[0].text == "late"
        assert len(outcomes(hedgerow_sandbox, "a/limits")) == 1
        assert [name for name in hedgerow.hedger_of(client).stats()["refusals"] if "rate" in name]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "script",
    [
        {"text": "The quick brown fox. " * 9, "reasoning_tokens": 4},
        {"tool_calls": 2, "text": '{"a":1}'},
        {"refusal": "no"},
        {"text": "cut short", "finish_reason": "length", "service_tier": "priority"},
        {"text": ""},
        {"text": "x", "usage": {"cached": 1, "reasoning": 3}},
    ],
    ids=str,
)
async def test_a_call_streamed_upstream_gets_the_answer_the_api_would_have_given(
    hedgerow_sandbox: SandboxProcess, script: dict[str, Any]
) -> None:
    answers: list[dict[str, Any]] = []
    policy = hedgerow.Policy(trigger="first_token", delay=5.0, budget="off", upstream_stream=True)
    async with plain(hedgerow_sandbox) as direct, hedgerow.hedged(plain(hedgerow_sandbox), policy=policy) as client:
        for number, each in enumerate((direct, client)):
            headers = scripted(f"{number}/same", script)  # the same draws for both
            message = (await each.messages.create(**CALL, extra_headers=headers)).to_dict()
            content = [{**block, "id": ""} for block in message["content"]]  # type: ignore[attr-defined]
            answers.append({**message, "id": "", "content": content})
        (event,) = hedgerow.hedger_of(client).events
        assert (event.stream, event.upstream_stream) == (False, True)
    assert answers[1] == answers[0]
