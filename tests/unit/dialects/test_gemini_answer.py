"""First content, end, usage and errors of Gemini's answers, in each of the three manners in which they arrive."""

from typing import Any

import orjson
import pytest

from hedgerow.dialects.gemini_answer import GeminiReader
from hedgerow.dialects.sse import MAX_EVENT_BYTES
from hedgerow.values.answer import AnswerFacts, Usage
from hedgerow.values.failure import FailureKind

STREAM = [(b"content-type", b"text/event-stream")]
JSON = [(b"content-type", b"application/json; charset=UTF-8")]


def chunk(*parts: dict[str, Any], reason: str | None = None, index: int | None = None, **more: Any) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"parts": list(parts), "role": "model"}}
    if reason:
        candidate["finishReason"] = reason
    if index is not None:
        candidate["index"] = index
    return {"candidates": [candidate], **more}


def read(*chunks: dict[str, Any], headers: Any = STREAM, end: str = "\r\n", finish: bool = True) -> AnswerFacts:
    reader = GeminiReader(headers)
    for each in chunks:
        reader.feed(b"data: " + orjson.dumps(each) + (end * 2).encode())
    if finish:
        reader.finish()
    return reader.facts


@pytest.mark.parametrize(
    ("each", "content"),
    [
        ({"usageMetadata": {"promptTokenCount": 3}}, False),
        ({"promptFeedback": {}}, False),
        ({"candidates": []}, False),
        (chunk(), False),
        (chunk({"text": ""}), False),
        (chunk({"text": "", "thoughtSignature": "c2ln"}), False),
        (chunk({"thought": True}), False),
        (chunk({"text": "hi"}), True),
        (chunk({"text": "hm", "thought": True}), True),
        (chunk({"functionCall": {"name": "f", "args": {}}}), True),
        (chunk({"inlineData": {"mimeType": "image/png", "data": "AA=="}}), True),
        (chunk({"executableCode": {"code": "1"}}), True),
        (chunk({"codeExecutionResult": {"outcome": "OUTCOME_OK"}}), True),
        (chunk({"somethingNew": {"a": 1}}), True),
        (chunk(reason="STOP"), False),
    ],
)
def test_first_content_is_the_first_part_that_says_anything(each: dict[str, Any], content: bool) -> None:
    assert read(each, finish=False).content is content


def test_visible_and_hidden_characters_are_told_apart() -> None:
    facts = read(chunk({"text": "hmm", "thought": True}), chunk({"text": "hello"}), chunk({"text": "!"}, reason="STOP"))
    assert (facts.hidden_chars, facts.visible_chars, facts.chunks) == (3, 6, 3)
    assert (facts.ended, facts.useful, facts.valid, facts.finish_reason) == (True, True, True, "STOP")


def test_a_functions_arguments_count_as_output() -> None:
    facts = read(chunk({"functionCall": {"name": "abc", "args": {"a": "xyz"}}}, reason="STOP"))
    assert facts.visible_chars == 3 + len('{"a":"xyz"}')


def test_thoughts_alone_are_content_but_of_no_use() -> None:
    facts = read(chunk({"text": "hmm", "thought": True}, reason="MAX_TOKENS"))
    assert (facts.content, facts.useful, facts.ended) == (True, False, True)


def test_a_stream_without_finish_reason_was_cut() -> None:
    assert read(chunk({"text": "hi"})).ended is False
    assert read(chunk({"text": "hi"}, reason="FINISH_REASON_UNSPECIFIED")).ended is False


def test_all_candidates_that_were_seen_have_to_finish() -> None:
    begun = [chunk({"text": "a"}, index=0), chunk({"text": "b"}, index=1), chunk({"text": "a"}, index=0, reason="STOP")]
    assert read(*begun).ended is False
    assert read(*begun, chunk({"text": "b"}, index=1, reason="STOP")).ended is True


@pytest.mark.parametrize("reason", ["SAFETY", "RECITATION", "PROHIBITED_CONTENT", "BLOCKLIST", "SPII", "MODEL_ARMOR"])
def test_an_answer_that_a_filter_stopped_ends_but_does_not_win(reason: str) -> None:
    for parts in ([], [{"text": "half a sent"}]):
        facts = read(chunk(*parts, reason=reason))
        assert (facts.ended, facts.useful, facts.failure) == (True, False, None)


def test_one_candidate_that_no_filter_stopped_is_enough() -> None:
    facts = read(chunk({"text": "a"}, index=0, reason="SAFETY"), chunk({"text": "b"}, index=1, reason="STOP"))
    assert facts.valid


def test_a_malformed_call_without_parts_ends_but_does_not_win() -> None:
    facts = read(chunk(reason="MALFORMED_FUNCTION_CALL"))
    assert (facts.ended, facts.useful, facts.failure) == (True, False, None)


def test_a_blocked_prompt_is_an_answer_that_says_so() -> None:
    facts = read({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {"promptTokenCount": 4}})
    assert (facts.ended, facts.useful, facts.finish_reason, facts.content) == (True, False, "PROHIBITED_CONTENT", False)
    assert facts.usage == Usage(input_tokens=4, output_tokens=0)


def test_usage_is_the_last_total_never_a_sum() -> None:
    first = {"promptTokenCount": 10, "candidatesTokenCount": 1}
    last = {
        "promptTokenCount": 10,
        "toolUsePromptTokenCount": 5,
        "cachedContentTokenCount": 8,
        "candidatesTokenCount": 20,
        "thoughtsTokenCount": 7,
        "totalTokenCount": 42,
    }
    facts = read(chunk({"text": "a"}, usageMetadata=first), chunk({"text": "b"}, reason="STOP", usageMetadata=last))
    assert facts.usage == Usage(input_tokens=15, output_tokens=27, cached_tokens=8, reasoning_tokens=7)


def test_a_cut_stream_keeps_the_usage_it_had_told() -> None:
    facts = read(chunk({"text": "a"}, usageMetadata={"promptTokenCount": 10, "candidatesTokenCount": 1}))
    assert facts.usage == Usage(input_tokens=10, output_tokens=1)


def test_model_and_tier_are_those_that_served() -> None:
    tier = [*STREAM, (b"X-Gemini-Service-Tier", b"priority")]
    facts = read(chunk({"text": "a"}, modelVersion="gemini-x-001"), headers=tier)
    assert (facts.model, facts.service_tier) == ("gemini-x-001", "priority")
    told = read(chunk({"text": "a"}, usageMetadata={"promptTokenCount": 1, "serviceTier": "standard"}))
    assert told.service_tier == "standard"


ERROR = {"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}


def test_an_error_in_an_event_fails_the_attempt_with_its_own_status() -> None:
    facts = read({"usageMetadata": {"promptTokenCount": 3}}, ERROR)
    assert facts.failure is not None
    assert (facts.failure.kind, facts.failure.status, facts.failure.error) == (
        FailureKind.OVERLOADED,
        503,
        "UNAVAILABLE",
    )


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("before", [b"", b'data: {"usageMetadata": {"promptTokenCount": 3}}'])
def test_an_error_as_bare_json_between_events_is_seen_while_the_connection_is_open(before: bytes, end: bytes) -> None:
    reader = GeminiReader(STREAM)
    bare = orjson.dumps(ERROR, option=orjson.OPT_INDENT_2).replace(b"\n", end)
    reader.feed(before + end * 2 if before else b": begin" + end * 2)
    for byte in bare + end:
        reader.feed(bytes([byte]))
    assert reader.facts.failure is not None
    assert reader.facts.failure.status == 503


def test_a_stream_without_alt_sse_is_an_array_and_read_element_by_element() -> None:
    first, last = chunk({"text": 'a]"},{['}), chunk({"text": "b"}, reason="STOP")
    reader = GeminiReader(JSON)
    reader.feed(b"[" + orjson.dumps(first))
    assert (reader.facts.content, reader.facts.ended) == (True, False)
    reader.feed(b"\n,\r\n" + orjson.dumps(last) + b"\n]\n")
    assert (reader.facts.ended, reader.facts.chunks, reader.facts.visible_chars) == (True, 2, 8)


@pytest.mark.parametrize("body", [orjson.dumps(ERROR), orjson.dumps([ERROR])])
@pytest.mark.parametrize("headers", [STREAM, JSON, []])
def test_an_error_as_the_whole_body_of_a_200_is_a_failure(body: bytes, headers: Any) -> None:
    reader = GeminiReader(headers)
    reader.feed(body)
    reader.finish()
    assert reader.facts.failure is not None
    assert reader.facts.failure.status == 503


@pytest.mark.parametrize(
    ("body", "valid"),
    [
        (orjson.dumps(chunk({"text": "hi"}, reason="STOP")), True),
        (orjson.dumps(chunk({"functionCall": {"name": "f"}}, reason="STOP")), True),
        (orjson.dumps(chunk({"text": "hi"}, reason="STOP"))[:-3], False),
        (orjson.dumps(chunk({"text": "hi"})), False),
        (orjson.dumps(chunk({"text": ""}, reason="STOP")), False),
        (b"{}", False),
        (b"", False),
        (b"<html>", False),
    ],
)
def test_a_whole_answer_is_valid_when_it_is_complete_and_says_something(body: bytes, valid: bool) -> None:
    reader = GeminiReader(JSON)
    reader.feed(body)
    reader.finish()
    assert reader.facts.valid is valid


def test_finish_reasons_in_every_chunk_are_no_end_before_the_body_ends() -> None:
    said = [chunk({"text": word}, reason="STOP", index=0) for word in ("one ", "two ", "three")]
    assert not read(*said, finish=False).ended
    assert read(*said).ended


def test_an_event_that_is_too_large_to_look_at_is_overlooked_and_said_to_be() -> None:
    image = chunk({"inlineData": {"mimeType": "image/png", "data": "A" * MAX_EVENT_BYTES}}, reason="STOP")
    facts = read(chunk({"text": "Here it is: "}), image)
    assert (facts.overlooked, facts.ended) == (True, False)
