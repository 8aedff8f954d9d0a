"""What is read out of an OpenAI response while it arrives, and made of its stream."""

from typing import Any

import orjson
import pytest

from hedgerow.dialects.openai_responses_answer import ResponseReader
from hedgerow.dialects.openai_responses_assembly import AssemblingResponseReader
from hedgerow.values.answer import Usage
from hedgerow.values.failure import FailureKind

SSE = [(b"content-type", b"text/event-stream")]
JSON = [(b"content-type", b"application/json")]
TEXT = {
    "type": "message",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "Hello", "annotations": []}],
}
CALL = {"type": "function_call", "name": "f", "arguments": "{}"}
REASONING = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm"}]}
USAGE = {
    "input_tokens": 100,
    "input_tokens_details": {"cached_tokens": 60},
    "output_tokens": 30,
    "output_tokens_details": {"reasoning_tokens": 20},
    "total_tokens": 130,
}


def response(status: str = "completed", output: Any = (TEXT,), **fields: Any) -> dict[str, Any]:
    return {
        "id": "resp_1",
        "object": "response",
        "status": status,
        "model": "gpt-x-2026",
        "service_tier": "priority",
        "error": None,
        "incomplete_details": None,
        "output": list(output),
        "usage": USAGE,
        **fields,
    }


def over(status: str = "completed", **fields: Any) -> dict[str, Any]:
    return {"type": f"response.{status}", "response": response(status, **fields)}


def fed(*events: dict[str, Any], reader: Any = None) -> Any:
    reader = reader or ResponseReader(SSE)
    for number, event in enumerate(events):
        event = {"sequence_number": number, **event}
        reader.feed(b"event: %s\ndata: %s\n\n" % (event["type"].encode(), orjson.dumps(event)))
    return reader


@pytest.mark.parametrize(
    "event",
    [
        {"type": "response.created", "response": response("in_progress", ())},
        {"type": "response.queued", "response": response("queued", ())},
        {"type": "response.in_progress", "response": response("in_progress", ())},
        {"type": "response.output_item.added", "item": CALL},
        {"type": "response.content_part.added", "part": {"type": "output_text", "text": ""}},
        {"type": "response.reasoning_summary_part.added", "part": {"type": "summary_text", "text": ""}},
        {"type": "response.output_text.delta", "delta": ""},
        {"type": "response.web_search_call.searching", "item_id": "ws_1"},
        {"type": "response.file_search_call.in_progress", "item_id": "fs_1"},
        {"type": "response.mcp_list_tools.completed", "item_id": "m_1"},
        {"type": "response.compaction.compacting"},
        {"type": "response.shell_call_output_content.delta", "delta": {"stdout": "x"}},
        {"type": "keepalive"},
        {"type": "response.unheard_of", "text": "x"},
    ],
    ids=lambda event: event["type"],
)
def test_what_is_not_content(event):
    facts = fed(event).facts
    assert not facts.content
    assert facts.failure is None


@pytest.mark.parametrize(
    ("kind", "visible", "hidden"),
    [
        ("response.output_text.delta", 3, 0),
        ("response.refusal.delta", 3, 0),
        ("response.reasoning_text.delta", 0, 3),
        ("response.reasoning_summary_text.delta", 0, 3),
        ("response.function_call_arguments.delta", 3, 0),
        ("response.custom_tool_call_input.delta", 3, 0),
        ("response.audio.delta", 0, 0),
        ("response.audio.transcript.delta", 3, 0),
        ("response.code_interpreter_call_code.delta", 3, 0),
        ("response.shell_call_command.delta", 3, 0),
        ("response.something_new.delta", 3, 0),
    ],
)
def test_what_is_content(kind, visible, hidden):
    facts = fed({"type": kind, "delta": "abc"}).facts
    assert facts.content
    assert (facts.visible_chars, facts.hidden_chars) == (visible, hidden)


def test_a_part_of_an_image_is_content():
    assert fed({"type": "response.image_generation_call.partial_image", "partial_image_b64": "AA"}).facts.content


def test_the_last_event_has_everything():
    facts = fed({"type": "response.output_text.delta", "delta": "Hello"}, over()).facts
    assert facts.valid
    assert (facts.model, facts.service_tier, facts.finish_reason) == ("gpt-x-2026", "priority", "completed")
    assert facts.usage == Usage(input_tokens=100, output_tokens=30, cached_tokens=60, reasoning_tokens=20)


def test_the_tier_of_an_answer_that_has_only_begun_is_not_known():
    assert (
        fed({"type": "response.created", "response": response("in_progress", service_tier="auto")}).facts.service_tier
        is None
    )


@pytest.mark.parametrize(
    ("output", "useful"),
    [
        ([TEXT], True),
        ([REASONING, CALL], True),
        ([{"type": "message", "content": [{"type": "refusal", "refusal": "no"}]}], True),
        ([REASONING], False),
        ([{"type": "message", "content": [{"type": "output_text", "text": ""}]}], False),
        ([{"type": "web_search_call"}], False),
        ([{"type": "mcp_approval_request"}], True),
        ([], False),
        ("x", False),
    ],
    ids=str,
)
def test_an_answer_has_something_a_caller_can_use(output, useful):
    assert fed(over(output=output)).facts.useful is useful


def test_an_incomplete_answer_is_one_unless_a_filter_stopped_it():
    long = fed(over("incomplete", incomplete_details={"reason": "max_output_tokens"})).facts
    assert (long.valid, long.finish_reason) == (True, "max_output_tokens")
    filtered = fed(over("incomplete", incomplete_details={"reason": "content_filter"})).facts
    assert (filtered.ended, filtered.valid) == (True, False)


@pytest.mark.parametrize(
    ("event", "status", "kind"),
    [
        (over("failed", error={"code": "server_error", "message": "m"}), 500, FailureKind.TRANSIENT),
        (over("failed", error={"code": "rate_limit_exceeded"}), 429, FailureKind.RATE_LIMITED),
        (over("failed", error={"code": "invalid_image_url"}), 400, FailureKind.FATAL),
        (over("failed", error={"code": "vector_store_timeout"}), 504, FailureKind.TRANSIENT),
        (over("failed", error=None), 500, FailureKind.TRANSIENT),
        (over("cancelled"), 499, FailureKind.TRANSIENT),
        ({"type": "error", "code": "server_error", "message": "m", "param": None}, 500, FailureKind.TRANSIENT),
        ({"type": "error", "code": "insufficient_quota", "message": "m"}, 429, FailureKind.FATAL),
        ({"type": "error", "code": None, "message": "m"}, 500, FailureKind.TRANSIENT),
        ({"type": "error", "error": {"type": "overloaded_error"}}, 529, FailureKind.OVERLOADED),
    ],
    ids=str,
)
def test_an_error_inside_a_200_has_the_status_it_stands_for(event, status, kind):
    failure = fed(event).facts.failure
    assert failure is not None
    assert (failure.status, failure.kind) == (status, kind)


def test_a_clean_end_without_the_last_event_is_a_cut():
    reader = fed({"type": "response.output_text.delta", "delta": "Hello"})
    reader.finish()
    assert not reader.facts.ended


@pytest.mark.parametrize(
    ("body", "valid", "failed"),
    [
        (response(), True, False),
        (response("incomplete", incomplete_details={"reason": "max_output_tokens"}), True, False),
        (response("failed", error={"code": "server_error"}), False, True),
        (response("queued", ()), False, False),
        ({"error": {"type": "server_error", "message": "m"}}, False, True),
        ({"error": "busy"}, False, True),
        ({"object": "error", "message": "m", "code": 503}, False, True),
    ],
)
def test_a_whole_answer_is_read_at_its_end(body, valid, failed):
    reader = ResponseReader(JSON)
    reader.feed(orjson.dumps(body))
    reader.finish()
    assert (reader.facts.valid, reader.facts.failure is not None) == (valid, failed)
    assert reader.facts.visible_chars == (5 if valid else reader.facts.visible_chars)


@pytest.mark.parametrize("body", [b'{"object":"response","output":[{"ty', b"", b"<html>"])
def test_a_body_that_is_cut_is_no_answer(body):
    reader = ResponseReader(JSON)
    reader.feed(body)
    reader.finish()
    assert not reader.facts.valid


def test_the_assembled_answer_is_the_response_of_the_last_event():
    reader = fed({"type": "response.output_text.delta", "delta": "Hello"}, over(), reader=AssemblingResponseReader(SSE))
    assert reader.complete
    assert orjson.loads(reader.response()) == response()


def test_items_that_the_last_event_leaves_out_are_those_that_came_before():
    done = [
        {"type": "response.output_item.done", "output_index": n, "item": item}
        for n, item in ((1, TEXT), (0, REASONING))
    ]
    reader = fed(*done, over(output=[]), reader=AssemblingResponseReader(SSE))
    assert orjson.loads(reader.response()) == response(output=[REASONING, TEXT])


def test_a_stream_without_its_last_event_is_not_complete():
    assert not fed({"type": "response.output_text.delta", "delta": "x"}, reader=AssemblingResponseReader(SSE)).complete


@pytest.mark.parametrize(
    ("event", "error"),
    [
        (over("failed", error={"code": "server_error", "message": "m"}), {"code": "server_error", "message": "m"}),
        (
            {"type": "error", "code": "slow_down", "message": "m", "param": "p"},
            {"code": "slow_down", "message": "m", "param": "p"},
        ),
        (
            {"type": "error", "error": {"type": "overloaded_error", "message": "m"}},
            {"type": "overloaded_error", "message": "m"},
        ),
    ],
    ids=str,
)
def test_an_error_inside_the_stream_becomes_the_apis_error_body(event, error):
    reader = fed(event, reader=AssemblingResponseReader(SSE))
    empty = {"message": None, "type": None, "param": None, "code": None}
    assert orjson.loads(reader.error_response()) == {"error": empty | error}
