"""Streams as particular providers send them, and the one body they become."""

import json

import orjson
import pytest

from hedgerow.dialects.base import StreamingDialect
from hedgerow.dialects.headers import assembled_headers
from hedgerow.dialects.openai_chat_assembly import AssemblingChatReader
from hedgerow.dialects.registry import DIALECTS, GENERIC

SSE = [(b"content-type", b"text/event-stream")]
DONE = b"data: [DONE]\n\n"
Json = dict[str, object]


def frame(payload: object) -> bytes:
    return b"data: " + orjson.dumps(payload) + b"\n\n"


def chunk(delta: object = None, *, index: int = 0, finish: str | None = None, **more: object) -> Json:
    return {"id": "c1", "model": "m", "choices": [{"index": index, "delta": delta, "finish_reason": finish}], **more}


def read(*chunks: object, headers: list[tuple[bytes, bytes]] = SSE) -> AssemblingChatReader:
    reader = AssemblingChatReader(headers)
    for each in chunks:
        reader.feed(each if isinstance(each, bytes) else frame(each))
    reader.feed(DONE)
    reader.finish()
    return reader


def assembled(*chunks: object) -> Json:
    return orjson.loads(read(*chunks).response())


def message(*deltas: object) -> Json:
    return assembled(*(chunk(delta) for delta in deltas))["choices"][0]["message"]


def calls(*deltas: object) -> list[Json]:
    return message(*({"tool_calls": [delta]} for delta in deltas))["tool_calls"]


def function(name: str | None, arguments: str) -> Json:
    return {"function": {"name": name, "arguments": arguments}}


def test_a_message_has_role_content_and_refusal_even_if_the_stream_said_nothing():
    answer = assembled(chunk(None, finish="stop"))
    assert answer["object"] == "chat.completion"
    assert answer["choices"] == [
        {"index": 0, "message": {"role": "assistant", "content": None, "refusal": None}, "finish_reason": "stop"}
    ]


def test_a_role_that_is_repeated_in_every_delta_is_said_once():
    assert message({"role": "assistant", "content": "a"}, {"role": "assistant", "content": "b"}) == {
        "role": "assistant",
        "content": "ab",
        "refusal": None,
    }


def test_an_answer_of_no_text_has_empty_content_and_one_of_tool_calls_has_none():
    assert message({"content": ""}, {})["content"] == ""
    assert message({"content": ""}, {"tool_calls": [{"index": 0, **function("f", "{}")}]})["content"] is None
    assert message({"content": ""}, {"function_call": {"name": "f", "arguments": "{}"}})["content"] is None
    assert message({"content": ""}, {"refusal": "No."})["content"] is None


def test_only_padded_streams_get_the_list_of_annotations_that_openai_s_messages_always_have():
    padded = chunk({"content": "a"}, obfuscation="x")
    assert assembled(padded)["choices"][0]["message"]["annotations"] == []
    assert "obfuscation" not in assembled(padded)
    assert "annotations" not in message({"content": "a"})


def test_choices_come_in_the_order_of_their_index():
    answer = assembled(chunk({"content": "b"}, index=1), chunk({"content": "a"}), chunk({"content": "B"}, index=1))
    assert [choice["message"]["content"] for choice in answer["choices"]] == ["a", "bB"]


def test_parallel_calls_come_in_the_order_of_their_index_without_it():
    assert calls(
        {"index": 1, "id": "y", "type": "function", **function("g", "")},
        {"index": 0, "id": "x", "type": "function", **function("f", "")},
        {"index": 1, **function(None, "[2]")},
        {"index": 0, **function(None, "[1]")},
    ) == [
        {"id": "x", "type": "function", "function": {"name": "f", "arguments": "[1]"}},
        {"id": "y", "type": "function", "function": {"name": "g", "arguments": "[2]"}},
    ]


def test_whole_calls_without_an_index_stay_apart():
    made = calls({"id": "x", **function("f", "{}")}, {"id": "y", **function("f", "{}")})
    assert [call["id"] for call in made] == ["x", "y"]
    assert [call["type"] for call in made] == ["function", "function"]
    assert len(calls(function("f", "{}"), function("g", "{}"))) == 2


def test_whole_calls_that_all_claim_index_0_stay_apart():
    made = calls({"index": 0, "id": "x", **function("f", "1")}, {"index": 0, "id": "y", **function("g", "2")})
    assert [(call["id"], call["function"]["arguments"]) for call in made] == [("x", "1"), ("y", "2")]


def test_pieces_without_index_or_id_go_to_the_call_before():
    (made,) = calls({"id": "x", **function("f", "[")}, function(None, "1]"), {"id": "", **function("", "")})
    assert made == {"id": "x", "type": "function", "function": {"name": "f", "arguments": "[1]"}}


def test_an_id_made_up_anew_for_every_piece_does_not_split_a_call():
    (made,) = calls({"index": 0, "id": "x", **function("f", "[")}, {"index": 0, "id": "z", **function(None, "1]")})
    assert made["id"] == "x"
    assert made["function"] == {"name": "f", "arguments": "[1]"}


def test_a_name_may_come_in_pieces_or_be_repeated():
    pieces = [{"index": 0, "id": "x", **function(name, "")} for name in ("look", "_up")]
    repeated = [{"index": 0, "id": "x", **function("look_up", "")}] * 3
    assert calls(*pieces)[0]["function"]["name"] == calls(*repeated)[0]["function"]["name"] == "look_up"


def test_a_custom_tool_s_input_is_joined():
    (made,) = calls(
        {"index": 0, "id": "x", "custom": {"name": "sql", "input": "a"}}, {"index": 0, "custom": {"input": "b"}}
    )
    assert made == {"id": "x", "type": "custom", "custom": {"name": "sql", "input": "ab"}}


def test_arguments_that_come_as_an_object_stay_one():
    (made,) = calls({"index": 0, "function": {"name": "f", "arguments": {"a": 1}}})
    assert made["function"]["arguments"] == {"a": 1}


def test_mistral_s_thinking_and_text_become_one_part_each():
    def thinking(text: str) -> Json:
        return {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": text}]}]}

    assert message({"content": ""}, thinking("Hm"), thinking("m."), {"content": "Y"}, {"content": "es"})["content"] == [
        {"type": "thinking", "thinking": [{"type": "text", "text": "Hmm."}]},
        {"type": "text", "text": "Yes"},
    ]


def test_reasoning_details_without_an_index_are_joined_while_type_and_id_stay():
    def detail(**fields: object) -> Json:
        return {"reasoning_details": [fields]}

    texts = [detail(type="reasoning.text", text=text) for text in ("a", "b")]
    signed = detail(type="reasoning.text", text="", signature="s")
    sealed = [detail(type="reasoning.encrypted", data=data, id=data) for data in ("x", "y")]
    assert message(*texts, signed, *sealed)["reasoning_details"] == [
        {"type": "reasoning.text", "text": "ab", "signature": "s"},
        {"type": "reasoning.encrypted", "data": "x", "id": "x"},
        {"type": "reasoning.encrypted", "data": "y", "id": "y"},
    ]


def test_azure_s_first_chunk_gives_its_filter_results_and_neither_id_nor_time():
    results = [{"prompt_index": 0, "content_filter_results": {}}]
    opening = {"id": "", "created": 0, "model": "", "object": "", "choices": [], "prompt_filter_results": results}
    answer = assembled(opening, chunk({"content": "a"}, created=7, object="chat.completion.chunk"))
    assert (answer["id"], answer["created"], answer["model"], answer["object"]) == ("c1", 7, "m", "chat.completion")
    assert answer["prompt_filter_results"] == results


def test_the_first_of_several_times_is_the_answer_s():
    assert assembled(chunk({}, created=7), chunk({}, created=8))["created"] == 7


def test_usage_so_far_is_replaced_not_added_to():
    usages = [{"completion_tokens": 1, "so_far": True}, None, {"completion_tokens": 2}]
    assert assembled(*(chunk({}, usage=usage) for usage in usages))["usage"] == {"completion_tokens": 2}


def test_unknown_fields_keep_their_last_value_and_nothing_empty_takes_it_away():
    answer = assembled(
        chunk({}, a=1, b=["x"], c={"p": 1}, d="t"), chunk({}, a=2, b=[], c={"q": 2}, d=""), chunk({}, a=None)
    )
    assert {name: answer[name] for name in "abcd"} == {"a": 2, "b": ["x"], "c": {"p": 1, "q": 2}, "d": "t"}


def test_perplexity_s_message_so_far_beside_each_delta_is_not_counted_twice():
    first, second = chunk({"content": "a"}), chunk({"content": "b"})
    first["choices"][0]["message"], second["choices"][0]["message"] = {"content": "a"}, {"content": "ab"}
    assert assembled(first, second)["choices"][0]["message"]["content"] == "ab"


def test_pings_and_unknown_events_leave_no_trace():
    ping = b'event: ping\ndata: {"type":"ping"}\n\n'
    assert assembled(ping, chunk({"content": "a"}), ping) == assembled(chunk({"content": "a"}))


@pytest.mark.parametrize("as_event", [True, False], ids=["one event", "one body"])
def test_a_provider_that_ignores_the_wish_for_a_stream_is_taken_at_its_word(as_event):
    whole = {
        "id": "c1",
        "choices": [{"index": 0, "message": {"content": "a", "tool_calls": []}, "finish_reason": "stop"}],
    }
    if as_event:
        reader = read(whole)
    else:
        reader = AssemblingChatReader([(b"content-type", b"application/json")])
        reader.feed(orjson.dumps(whole))
        reader.finish()
    assert reader.streamed is as_event
    assert reader.facts.valid
    assert orjson.loads(reader.response()) == whole


def test_a_chunk_that_cannot_be_read_makes_the_answer_incomplete():
    broken = b'data: {"choices":[{"delta":{"content":\n\n'
    assert not read(chunk({"content": "a"}), broken).complete
    assert read(chunk({"content": "a"}), b"data: ping\n\n").complete


def test_an_error_inside_the_stream_is_a_failure_as_without_assembling():
    reader = read(chunk({"content": "a"}), {"error": {"type": "overloaded_error", "message": "…"}})
    assert reader.facts.failure is not None
    assert not reader.facts.valid


def test_half_a_surrogate_pair_is_kept_as_the_escape_it_came_as():
    body = read(b'data: {"choices":[{"delta":{"content":"\\ud83c"}}]}\n\n').response()
    assert b"\\ud83c" in body


@pytest.mark.parametrize("name", ["content", "thinking", "reasoning_details", "unknown"])
def test_deep_answers_are_assembled_too(name):
    deep: object = "x"
    for _ in range(150):  # twice as deep as the fast writer of JSON goes
        deep = [{"type": "thinking", "thinking": deep}]
    twice = b"data: " + json.dumps(chunk({name: deep}, unknown={"deep": deep})).encode() + b"\n\n"
    assert orjson.loads(read(twice, twice).response())


def test_headers_are_those_of_a_json_body_and_otherwise_the_provider_s():
    streamed = [
        (b"Content-Type", b"text/event-stream"),
        (b"x-request-id", b"r1"),
        (b"content-encoding", b"gzip"),
        (b"Transfer-Encoding", b"chunked"),
        (b"set-cookie", b"a"),
        (b"set-cookie", b"b"),
    ]
    assert assembled_headers(streamed, b"{}") == [
        (b"x-request-id", b"r1"),
        (b"set-cookie", b"a"),
        (b"set-cookie", b"b"),
        (b"content-type", b"application/json"),
        (b"content-length", b"2"),
    ]


def test_which_dialects_can_stream_on_their_caller_s_behalf():
    able = [dialect.name for dialect in (*DIALECTS, GENERIC) if isinstance(dialect, StreamingDialect)]
    assert able == ["openai_chat", "openai_responses", "anthropic", "gemini"]
