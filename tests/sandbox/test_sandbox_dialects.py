"""Anthropic messages and OpenAI responses from the sandbox: every key of the script means there what it means for chats."""

from dataclasses import dataclass
from typing import Any

import pytest
from raw_client import Response, ask, entry, poll, send

TALK = {"first_token_s": 0.0, "token_s": 0.0, "tokens": 5}
ERROR = {"type": "overloaded_error", "message": "too much"}


@dataclass(frozen=True)
class Api:
    """One API: where it is asked, what it is asked, and where its events say what."""

    path: str
    body: dict[str, Any]
    opening: str
    last: str
    ping: str

    def ask(self, sandbox: Any, **asked: Any) -> Response:
        return ask(sandbox, path=self.path, **self.body, **asked)

    def send(self, sandbox: Any, **asked: Any) -> Any:
        return send(sandbox, path=self.path, **self.body, **asked)

    def said(self, answer: Response, *kinds: str) -> list[str]:
        """What the deltas of these kinds say."""
        if self is MESSAGES:
            deltas = [event["delta"] for event in answer.data if event["type"] == "content_block_delta"]
            field = {"text": "text", "reasoning": "thinking", "tool": "partial_json", "refusal": "text"}
            return [delta[field[kind]] for kind in kinds for delta in deltas if field[kind] in delta]
        event = {
            "text": "response.output_text.delta",
            "reasoning": "response.reasoning_summary_text.delta",
            "tool": "response.function_call_arguments.delta",
            "refusal": "response.refusal.delta",
        }
        return [each["delta"] for kind in kinds for each in answer.data if each["type"] == event[kind]]

    def whole(self, answer: Response) -> dict[str, Any]:
        """The final object: of a stream, as far as one event has it."""
        return answer.json if answer.headers["content-type"] == "application/json" else answer.data[-1]["response"]


MESSAGES = Api(
    "/v1/messages",
    {"model": "m", "max_tokens": 999, "messages": [{"role": "user", "content": "Tell me."}]},
    "message_start",
    "message_stop",
    "event: ping",
)
RESPONSES = Api(
    "/v1/responses", {"model": "m", "input": "Tell me."}, "response.created", "response.completed", ": ping"
)

apis = pytest.mark.parametrize("api", [MESSAGES, RESPONSES], ids=["anthropic", "responses"])


@apis
def test_a_stream_opens_says_its_tokens_and_ends(hedgerow_sandbox, api):
    answer = api.ask(hedgerow_sandbox, script=TALK, case="c", stream=True)
    kinds = [event["type"] for event in answer.data]
    assert (kinds[0], kinds[-1]) == (api.opening, api.last)
    assert len(api.said(answer, "text")) == 5
    assert entry(hedgerow_sandbox, "c")["tokens"] == 5
    assert answer.text.count("event: ") == len(kinds)


@apis
def test_text_tokens_and_line_ends_are_as_scripted(hedgerow_sandbox, api):
    script = {"first_token_s": 0, "text": "Grüße 👋 an alle", "line_end": "\r\n", "chunk_bytes": 3}
    answer = api.ask(hedgerow_sandbox, script=script, stream=True)
    assert "".join(api.said(answer, "text")) == "Grüße 👋 an alle"
    assert {len(chunk) for chunk in answer.chunks[:-1]} <= {1, 2, 3}


@apis
def test_pings_come_in_the_dialects_own_shape(hedgerow_sandbox, api):
    script = TALK | {"first_token_s": 0.3, "pings": {"every_s": 0.05, "count": 3}}
    assert api.ask(hedgerow_sandbox, script=script, stream=True).text.count(api.ping) == 3


@apis
def test_without_role_chunk_nothing_comes_before_content(hedgerow_sandbox, api):
    answer = api.ask(hedgerow_sandbox, script=TALK | {"role_chunk": False}, stream=True)
    assert answer.data[0]["type"] != api.opening


@apis
@pytest.mark.parametrize("end", ["done", "eof"])
def test_an_error_frame_has_the_dialects_own_shape(hedgerow_sandbox, api, end):
    script = TALK | {"end": end, "error_frame": {"after": 2, "error": ERROR}}
    answer = api.ask(hedgerow_sandbox, script=script, case="c", stream=True)
    errors = [event for event in answer.data if event["type"] == "error"]
    assert len(errors) == 1
    assert "event: error" in answer.text
    shown = errors[0]["error"] if api is MESSAGES else errors[0]
    assert shown["message"] == "too much"
    assert (shown.get("code") or shown["type"]) == "overloaded_error"
    assert len(api.said(answer, "text")) == 2
    assert entry(hedgerow_sandbox, "c")["outcome"] == "failed"


@apis
@pytest.mark.parametrize(("status", "kind"), [(429, "rate_limit"), (529, "overloaded_error"), (500, None)])
def test_an_error_status_has_the_dialects_own_body(hedgerow_sandbox, api, status, kind):
    answer = api.ask(hedgerow_sandbox, script={"status": status, "retry_after": 3})
    assert (answer.status, answer.headers["retry-after"]) == (status, "3")
    error = answer.json["error"]
    assert kind is None or kind in f"{error.get('code')} {error['type']}"
    assert answer.json.get("type") == ("error" if api is MESSAGES else None)


@apis
@pytest.mark.parametrize("body", [{}, {"model": 7}])
def test_a_request_that_makes_no_sense_is_told_so_in_the_dialect(hedgerow_sandbox, api, body):
    answer = ask(hedgerow_sandbox, path=api.path, **body)
    assert answer.status == 400
    assert answer.json["error"]["type"] == "invalid_request_error"
    assert answer.json.get("type") == ("error" if api is MESSAGES else None)


@apis
@pytest.mark.parametrize("cut", [0, 3])
def test_cuts_close_without_the_end(hedgerow_sandbox, api, cut):
    answer = api.ask(hedgerow_sandbox, script=TALK | {"cut_after": cut}, case="c", stream=True)
    assert (answer.status, answer.ending, len(api.said(answer, "text"))) == (200, "fin", cut)
    assert api.ask(hedgerow_sandbox, script=TALK | {"cut_after": 1, "reset": True}, stream=True).ending == "rst"
    assert api.ask(hedgerow_sandbox, script=TALK | {"cut_after": 3}).ending == "fin"


@apis
def test_half_open_never_closes(hedgerow_sandbox, api):
    with api.send(hedgerow_sandbox, script=TALK | {"cut_after": 2, "half_open": True}, case="c", stream=True):
        poll(lambda: entry(hedgerow_sandbox, "c")["tokens"], 2)
        assert entry(hedgerow_sandbox, "c")["outcome"] is None
    hedgerow_sandbox.reset()


@apis
def test_eof_ends_cleanly_without_the_end(hedgerow_sandbox, api):
    answer = api.ask(hedgerow_sandbox, script=TALK | {"end": "eof"}, stream=True)
    assert answer.ending == "end"
    assert answer.data[-1]["type"] in ("content_block_stop", "response.output_text.delta", "content_block_delta")


@apis
def test_a_stall_waits_after_so_many_tokens(hedgerow_sandbox, api):
    with api.send(hedgerow_sandbox, script=TALK | {"stall": {"after": 2, "s": 3600}}, case="c", stream=True):
        poll(lambda: entry(hedgerow_sandbox, "c")["tokens"], 2)
        assert entry(hedgerow_sandbox, "c")["outcome"] is None


@apis
def test_raw_body_is_sent_as_it_is(hedgerow_sandbox, api):
    assert api.ask(hedgerow_sandbox, script={"raw_body": "not json"}).text == "not json"
    assert api.ask(hedgerow_sandbox, script={"raw_body": "data: x\n\n"}, stream=True).text == "data: x\n\n"


@apis
def test_n_is_ignored(hedgerow_sandbox, api):
    assert len(api.said(api.ask(hedgerow_sandbox, script=TALK, stream=True, n=3), "text")) == 5


@apis
def test_reasoning_and_tool_calls_are_streamed_in_blocks_of_their_own(hedgerow_sandbox, api):
    script = {"first_token_s": 0, "text": '{"a":1}', "tool_calls": 2, "reasoning_tokens": 3}
    answer = api.ask(hedgerow_sandbox, script=script, stream=True, tools=[{"type": "custom", "name": "look"}])
    assert len(api.said(answer, "reasoning")) == 3
    assert "".join(api.said(answer, "tool")) == '{"a":1}' * 2
    assert answer.text.count('"look"') >= 2


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ({}, "end_turn"),
        ({"finish_reason": "length"}, "max_tokens"),
        ({"finish_reason": "content_filter"}, "refusal"),
        ({"finish_reason": "model_context_window_exceeded"}, "model_context_window_exceeded"),
        ({"tool_calls": 1}, "tool_use"),
        ({"refusal": "no"}, "refusal"),
    ],
    ids=str,
)
def test_finish_reasons_become_anthropics_stop_reasons(hedgerow_sandbox, script, reason, stream):
    answer = MESSAGES.ask(hedgerow_sandbox, script=TALK | script, stream=stream)
    told = next(each for each in answer.data if each["type"] == "message_delta")["delta"] if stream else answer.json
    assert told["stop_reason"] == reason


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("reason", "status", "why"),
    [
        ("stop", "completed", None),
        ("length", "incomplete", "max_output_tokens"),
        ("content_filter", "incomplete", "content_filter"),
        ("failed", "failed", None),
    ],
)
def test_finish_reasons_become_a_responses_status(hedgerow_sandbox, reason, status, why, stream):
    answer = RESPONSES.ask(hedgerow_sandbox, script=TALK | {"finish_reason": reason}, stream=stream)
    whole = RESPONSES.whole(answer)
    assert (whole["status"], (whole["incomplete_details"] or {}).get("reason")) == (status, why)
    assert not stream or answer.data[-1]["type"] == f"response.{status}"
    assert (whole["error"] is not None) is (status == "failed")


def test_anthropics_usage_splits_the_input_and_grows_with_the_output(hedgerow_sandbox):
    usage = {"input_tokens": 100, "cached_tokens": 60, "output_tokens": 40, "reasoning_tokens": 30}
    answer = MESSAGES.ask(hedgerow_sandbox, script=TALK | {"usage": usage, "service_tier": "priority"}, stream=True)
    first = answer.data[0]["message"]["usage"]
    assert (first["input_tokens"], first["cache_read_input_tokens"], first["output_tokens"]) == (40, 60, 1)
    assert first["service_tier"] == "priority"
    last = next(each for each in answer.data if each["type"] == "message_delta")["usage"]
    assert last == {"output_tokens": 40, "output_tokens_details": {"thinking_tokens": 30}}
    assert "usage" not in MESSAGES.ask(hedgerow_sandbox, script=TALK | {"usage": False}).json


def test_a_responses_usage_comes_with_its_last_event(hedgerow_sandbox):
    usage = {"input_tokens": 100, "cached_tokens": 60, "output_tokens": 40, "reasoning_tokens": 30}
    answer = RESPONSES.ask(hedgerow_sandbox, script=TALK | {"usage": usage, "service_tier": "priority"}, stream=True)
    told = RESPONSES.whole(answer)
    assert told["usage"]["input_tokens_details"]["cached_tokens"] == 60
    assert told["usage"]["output_tokens_details"]["reasoning_tokens"] == 30
    assert told["service_tier"] == "priority"
    assert answer.data[0]["response"]["usage"] is None
    assert RESPONSES.ask(hedgerow_sandbox, script=TALK | {"usage": False}).json["usage"] is None


@apis
def test_a_token_limit_cuts_the_profiles_answer_short(hedgerow_sandbox, api):
    limit = {"max_tokens": 2} if api is MESSAGES else {"max_output_tokens": 2}
    answer = ask(hedgerow_sandbox, path=api.path, **api.body | limit, case="c")
    assert entry(hedgerow_sandbox, "c")["tokens"] <= 2
    assert answer.status == 200
