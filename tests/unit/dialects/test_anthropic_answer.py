"""What is read out of an Anthropic message while it arrives."""

from typing import Any

import orjson
import pytest

from hedgerow.dialects.anthropic_answer import MessageReader
from hedgerow.values.answer import Usage
from hedgerow.values.failure import FailureKind

SSE = [(b"content-type", b"text/event-stream")]
JSON = [(b"content-type", b"application/json")]
START: dict[str, Any] = {
    "type": "message_start",
    "message": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-x-2026",
        "content": [],
        "usage": {
            "input_tokens": 10,
            "cache_creation_input_tokens": 200,
            "cache_read_input_tokens": 3000,
            "output_tokens": 1,
            "service_tier": "priority",
        },
    },
}
STOP = {"type": "message_stop"}


def block(**content_block: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": 0, "content_block": content_block}


def delta(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": 0, "delta": {"type": kind, **fields}}


def end(reason: str | None, **usage: Any) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage}


def fed(*events: dict[str, Any]) -> MessageReader:
    reader = MessageReader(SSE)
    for event in events:
        reader.feed(b"event: %s\ndata: %s\n\n" % (event["type"].encode(), orjson.dumps(event)))
    return reader


@pytest.mark.parametrize(
    "event",
    [
        START,
        {"type": "ping"},
        block(type="text", text=""),
        block(type="thinking", thinking="", signature=""),
        delta("text_delta", text=""),
        delta("thinking_delta", thinking=""),
        delta("input_json_delta", partial_json=""),
        delta("signature_delta", signature="c2ln"),
        {"type": "content_block_stop", "index": 0},
        {"type": "unheard_of", "delta": {"type": "text_delta", "text": "x"}},
        end("end_turn", output_tokens=9),
    ],
    ids=lambda event: str(event.get("delta") or event.get("content_block") or event["type"]),
)
def test_what_is_not_content(event):
    assert not fed(event).facts.content


@pytest.mark.parametrize(
    ("event", "visible", "hidden", "useful"),
    [
        (delta("text_delta", text="Hello"), 5, 0, True),
        (delta("thinking_delta", thinking="Hm, so"), 0, 6, False),
        (delta("input_json_delta", partial_json='{"a"'), 4, 0, False),
        (delta("citations_delta", citation={"cited_text": "x"}), 0, 0, False),
        (delta("compaction_delta", content="So far"), 6, 0, True),
        (block(type="tool_use", id="t", name="look", input={}), 4, 0, True),
        (block(type="server_tool_use", id="t", name="web_search", input={}), 10, 0, False),
        (block(type="redacted_thinking", data="abc"), 0, 0, False),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_what_is_content(event, visible, hidden, useful):
    facts = fed(START, event).facts
    assert facts.content
    assert (facts.visible_chars, facts.hidden_chars, facts.useful) == (visible, hidden, useful)


def test_input_is_exact_from_the_start_and_output_a_lower_bound_until_the_end():
    reader = fed(START)
    assert reader.facts.usage == Usage(input_tokens=3210, output_tokens=1, cached_tokens=3000)
    reader = fed(START, end("end_turn", output_tokens=90, output_tokens_details={"thinking_tokens": 70}), STOP)
    assert reader.facts.usage == Usage(input_tokens=3210, output_tokens=90, cached_tokens=3000, reasoning_tokens=70)
    assert (reader.facts.model, reader.facts.service_tier) == ("claude-x-2026", "priority")


def test_totals_that_grow_are_taken_as_totals():
    search = end(None, input_tokens=5000, output_tokens=40)
    assert fed(START, search, end("end_turn", output_tokens=60)).facts.usage == Usage(
        input_tokens=8200, output_tokens=60, cached_tokens=3000
    )


def test_fast_speed_is_the_tier_that_is_paid():
    start = {
        **START,
        "message": {**START["message"], "usage": {"input_tokens": 1, "speed": "fast", "service_tier": "standard"}},
    }
    assert fed(start).facts.service_tier == "fast"


def test_a_server_side_fallback_names_the_model_that_answered():
    assert fed(START, block(type="fallback", to={"model": "claude-small"})).facts.model == "claude-small"


def test_message_stop_ends_it_and_so_does_a_stop_reason_at_a_clean_end():
    text = delta("text_delta", text="x")
    assert fed(START, text, end("end_turn"), STOP).facts.valid
    reader = fed(START, text, end("end_turn"))
    assert not reader.facts.ended
    reader.finish()
    assert reader.facts.valid
    reader = fed(START, text)
    reader.finish()
    assert not reader.facts.ended


@pytest.mark.parametrize(
    ("reason", "useful"),
    [("refusal", True), ("pause_turn", True), ("end_turn", False), ("max_tokens", False)],
)
def test_an_answer_without_text_is_one_only_if_more_of_the_same_would_end_alike(reason, useful):
    assert fed(START, end(reason), STOP).facts.useful is useful


@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        ({"type": "overloaded_error", "message": "m"}, 529, FailureKind.OVERLOADED),
        ({"type": "api_error", "message": "m"}, 500, FailureKind.TRANSIENT),
        ({"type": "rate_limit_error", "message": "m"}, 429, FailureKind.RATE_LIMITED),
        ({"type": "timeout_error", "message": "m"}, 504, FailureKind.TRANSIENT),
        ({"type": "invalid_request_error", "message": "m"}, 400, FailureKind.FATAL),
        (
            {"type": "rate_limit_error", "details": {"error_code": "enforced_spend_limit_reached"}},
            429,
            FailureKind.FATAL,
        ),
    ],
    ids=str,
)
def test_an_error_inside_a_200_has_the_status_it_stands_for(error, status, kind):
    failure = fed(START, {"type": "error", "error": error}).facts.failure
    assert failure is not None
    assert (failure.status, failure.kind) == (status, kind)


@pytest.mark.parametrize(
    "data",
    [
        b"event: error\ndata: overloaded\n\n",
        b'data: {"error":{"type":"overloaded_error"}}\n\n',
        b'data: {"error":"busy"}\n\n',
    ],
)
def test_an_error_in_another_shape_is_one_too(data):
    reader = MessageReader(SSE)
    reader.feed(data)
    assert reader.facts.failure is not None


def test_a_whole_answer_is_read_at_its_end():
    message = {
        **START["message"],
        "content": [
            {"type": "thinking", "thinking": "Hm", "signature": "s"},
            {"type": "text", "text": "Hello"},
            {"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}},
        ],
        "stop_reason": "tool_use",
    }
    reader = MessageReader(JSON)
    reader.feed(orjson.dumps(message))
    assert not reader.facts.content
    reader.finish()
    facts = reader.facts
    assert facts.valid
    assert (facts.visible_chars, facts.hidden_chars, facts.finish_reason) == (5 + 1 + 7, 2, "tool_use")


@pytest.mark.parametrize(
    "body",
    [
        b'{"type":"error","error":{"type":"overloaded_error"}}',
        b'{"error":"busy"}',
        b'{"type":"message","content":[{"type":"te',
        b"",
        b"<html>",
        b'{"type":"message","content":[]}',
    ],
)
def test_a_body_that_is_an_error_cut_or_empty_is_no_answer(body):
    reader = MessageReader(JSON)
    reader.feed(body)
    reader.finish()
    assert not reader.facts.valid
