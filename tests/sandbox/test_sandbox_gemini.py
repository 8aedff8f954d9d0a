"""The sandbox as Gemini: every key of its script means there what it means elsewhere."""

import json
from typing import Any

import httpx2
import pytest
from google.genai import errors, types
from tests.sdk.genai_calls import asked, plain

from hedgerow.testing.process import SandboxProcess


def ask(sandbox: SandboxProcess, script: dict[str, Any], **config: Any) -> types.GenerateContentResponse:
    with plain(sandbox) as client:
        return client.models.generate_content(**asked("k/1", script, **config))


def stream(sandbox: SandboxProcess, script: dict[str, Any], **config: Any) -> list[types.GenerateContentResponse]:
    with plain(sandbox) as client:
        return list(client.models.generate_content_stream(**asked("k/1", script, **config)))


def raw(sandbox: SandboxProcess, script: dict[str, Any], method: str = "streamGenerateContent") -> httpx2.Response:
    headers = {"x-sandbox-case": "k/raw", "x-sandbox-script": json.dumps([script])}
    url = f"{sandbox.url}/v1beta/models/gemini-x:{method}"
    return httpx2.post(url, json={"contents": [{"parts": [{"text": "hi"}]}]}, headers=headers)


def said(chunks: list[types.GenerateContentResponse]) -> str:
    return "".join(chunk.text or "" for chunk in chunks)


def test_text_and_usage_streamed_and_whole(hedgerow_sandbox: SandboxProcess) -> None:
    script = {"text": "hello there", "usage": {"cached": 3, "output_tokens": 20}, "reasoning_tokens": 2}
    whole, chunks = ask(hedgerow_sandbox, script), stream(hedgerow_sandbox, script)
    assert (whole.text, said(chunks)) == ("hello there", "hello there")
    for usage in (whole.usage_metadata, chunks[-1].usage_metadata):
        assert usage is not None
        assert (usage.cached_content_token_count, usage.thoughts_token_count, usage.candidates_token_count) == (
            3,
            2,
            18,
        )
    totals = [chunk.usage_metadata.total_token_count for chunk in chunks if chunk.usage_metadata]
    assert totals == sorted(totals)  # type: ignore[type-var]


def test_reasoning_comes_as_thoughts(hedgerow_sandbox: SandboxProcess) -> None:
    (candidate,) = ask(hedgerow_sandbox, {"reasoning_tokens": 3, "text": "so"}).candidates or []
    assert candidate.content is not None
    assert [part.thought for part in candidate.content.parts or []] == [True, None]


def test_tool_calls_have_their_arguments_as_an_object(hedgerow_sandbox: SandboxProcess) -> None:
    declared: Any = [{"function_declarations": [{"name": "f"}, {"name": "g"}]}]
    script = {"tool_calls": 2, "text": '{"a":1}'}
    whole = ask(hedgerow_sandbox, script, tools=declared)
    streamed = [
        call for chunk in stream(hedgerow_sandbox, script, tools=declared) for call in chunk.function_calls or []
    ]
    for calls in (whole.function_calls or [], streamed):
        assert [(call.name, call.args) for call in calls] == [("f", {"a": 1}), ("g", {"a": 1})]


@pytest.mark.parametrize(
    ("reason", "expected"), [("length", "MAX_TOKENS"), ("content_filter", "SAFETY"), ("stop", "STOP"), ("SPII", "SPII")]
)
def test_finish_reasons_are_googles(hedgerow_sandbox: SandboxProcess, reason: str, expected: str) -> None:
    for answer in (
        ask(hedgerow_sandbox, {"finish_reason": reason}),
        stream(hedgerow_sandbox, {"finish_reason": reason})[-1],
    ):
        (candidate,) = answer.candidates or []
        assert candidate.finish_reason is not None
        assert candidate.finish_reason.value == expected


def test_several_candidates_and_limits(hedgerow_sandbox: SandboxProcess) -> None:
    answer = ask(hedgerow_sandbox, {}, candidate_count=3, max_output_tokens=4)
    assert [candidate.index for candidate in answer.candidates or []] == [0, 1, 2]
    assert {candidate.finish_reason for candidate in answer.candidates or []} == {types.FinishReason.MAX_TOKENS}
    chunks = stream(hedgerow_sandbox, {"n": 2, "tokens": 3})
    assert {candidate.index for chunk in chunks for candidate in chunk.candidates or []} == {0, 1}


@pytest.mark.parametrize(
    ("status", "name"), [(400, "INVALID_ARGUMENT"), (429, "RESOURCE_EXHAUSTED"), (503, "UNAVAILABLE")]
)
def test_errors_are_googles(hedgerow_sandbox: SandboxProcess, status: int, name: str) -> None:
    with pytest.raises(errors.APIError) as raised:
        ask(hedgerow_sandbox, {"status": status, "retry_after": 3})
    assert (raised.value.code, raised.value.status) == (status, name)
    assert raised.value.response is not None
    assert raised.value.response.headers["retry-after"] == "3"  # type: ignore[union-attr]


def test_an_error_inside_a_stream_and_what_it_is_in_a_whole_answer(hedgerow_sandbox: SandboxProcess) -> None:
    error = {"code": 503, "message": "busy", "status": "UNAVAILABLE"}
    script = {"error_frame": {"after": 2, "error": error}, "tokens": 5}
    with pytest.raises(errors.ServerError, match="busy"):
        stream(hedgerow_sandbox, script)
    assert raw(hedgerow_sandbox, script, "generateContent").json() == {"error": error}


def test_pings_role_chunks_line_ends_and_small_writes_are_no_trouble(hedgerow_sandbox: SandboxProcess) -> None:
    script = {"text": "hello", "pings": {"every_s": 0.01, "count": 3}, "first_token_s": 0.1, "chunk_bytes": 7}
    for more in ({}, {"line_end": "\r\n"}, {"line_end": "\r"}, {"role_chunk": False}, {"final_newline": False}):
        assert said(stream(hedgerow_sandbox, {**script, **more})) == "hello"


def test_the_tier_that_served_is_told(hedgerow_sandbox: SandboxProcess) -> None:
    told = raw(hedgerow_sandbox, {"service_tier": "priority"}, "generateContent").json()
    assert told["usageMetadata"]["serviceTier"] == "priority"
    assert raw(hedgerow_sandbox, {}, "generateContent").json()["usageMetadata"]["serviceTier"] == "standard"


def test_an_end_without_finish_reason_a_missing_usage_and_raw_bodies(hedgerow_sandbox: SandboxProcess) -> None:
    ended = raw(hedgerow_sandbox, {"end": "eof", "text": "hi"}).text
    assert "hi" in ended
    assert "finishReason" not in ended
    assert "usageMetadata" not in raw(hedgerow_sandbox, {"usage": False}).text
    assert raw(hedgerow_sandbox, {"raw_body": "[{}]"}).text == "[{}]"


@pytest.mark.parametrize("script", [{"cut_after": 2, "tokens": 9}, {"cut_after": 2, "tokens": 9, "reset": True}])
def test_cut_streams_break_off(hedgerow_sandbox: SandboxProcess, script: dict[str, Any]) -> None:
    with pytest.raises(httpx2.HTTPError):
        raw(hedgerow_sandbox, script)


@pytest.mark.parametrize("body", [{}, {"contents": []}, {"contents": [{}], "generationConfig": {"candidateCount": 99}}])
def test_bad_requests_are_refused(hedgerow_sandbox: SandboxProcess, body: dict[str, Any]) -> None:
    answer = httpx2.post(f"{hedgerow_sandbox.url}/v1beta/models/m:generateContent", json=body)
    assert answer.status_code == 400
    assert "GenerateContentRequest" in answer.json()["error"]["message"]
