"""A message that was streamed upstream comes out as the API would have sent it whole, and as the SDK puts it together."""

import copy
import json
from typing import Any

import orjson
import pytest
from anthropic.lib.streaming._messages import accumulate_event
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property.anthropic_streams import CUTS, ENDS, INPUTS, MESSAGES, events_of, pieces, wire

from hedgerow.dialects.anthropic_answer import MessageReader
from hedgerow.dialects.anthropic_assembly import AssemblingMessageReader
from hedgerow.dialects.partial_json import loads_partial

SSE = [(b"content-type", b"text/event-stream")]


@st.composite
def streams(draw: st.DrawFn) -> tuple[dict[str, Any], list[dict[str, Any]], bytes]:
    message = draw(MESSAGES)
    events = events_of(message, draw)
    return message, events, wire(events, draw(ENDS))


def read(parts: list[bytes], reader: MessageReader | None = None) -> Any:
    reader = reader or AssemblingMessageReader(SSE)
    for part in parts:
        reader.feed(part)
    reader.finish()
    return reader


@settings(max_examples=200)
@given(streams(), CUTS)
def test_the_assembled_message_is_the_one_the_api_would_have_sent(stream, cuts):
    message, _, data = stream
    reader = read(pieces(data, cuts))
    assert reader.streamed
    assert reader.facts.ended
    assert reader.complete
    assert orjson.loads(reader.response()) == message


@settings(max_examples=200)
@given(streams(), CUTS)
def test_the_assembled_message_is_the_one_the_sdk_puts_together(stream, cuts):
    _, events, data = stream
    reader = read(pieces(data, cuts))
    assert without_nulls(orjson.loads(reader.response())) == without_nulls(put_together(events))


@settings(max_examples=150)
@given(INPUTS, st.floats(0, 1))
def test_a_tools_input_that_was_broken_off_is_read_as_far_as_the_sdk_reads_it(value, share):
    written = orjson.dumps(value).decode()
    part = written[: max(1, round(share * len(written)))]
    message = {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "usage": {"output_tokens": 1},
    }
    block = {"type": "tool_use", "id": "t", "name": "f", "input": {}}
    events = [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": part}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": {"output_tokens": 2}},
    ]
    assert loads_partial(part) == put_together(events)["content"][0]["input"]


@given(streams(), CUTS, st.floats(0, 1))
def test_facts_do_not_depend_on_how_a_stream_is_cut_and_a_part_of_it_has_not_ended(stream, cuts, share):
    _, _, data = stream
    assert read(pieces(data, cuts)).facts == read([data]).facts
    reader = AssemblingMessageReader(SSE)
    for part in pieces(data[: round(share * (len(data) - 40))], cuts):
        reader.feed(part)
    assert not reader.facts.valid


@given(streams())
def test_the_same_is_read_of_the_whole_answer_as_of_its_stream(stream):
    message, _, data = stream
    whole = read([orjson.dumps(message)], MessageReader([(b"content-type", b"application/json")])).facts
    streamed = read([data]).facts
    assert (whole.useful, whole.ended, whole.usage, whole.model) == (
        streamed.useful,
        streamed.ended,
        streamed.usage,
        streamed.model,
    )
    assert (whole.finish_reason, whole.service_tier) == (streamed.finish_reason, streamed.service_tier)
    assert whole.hidden_chars == streamed.hidden_chars


@given(
    st.recursive(
        st.none() | st.integers() | st.text(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.sampled_from(
                    ["type", "delta", "content_block", "index", "message", "usage", "error", "content", "input", "text"]
                ),
                inner,
            )
        ),
    ),
    st.sampled_from(["message_start", "content_block_start", "content_block_delta", "message_delta", "error", "x"]),
)
def test_events_of_any_shape_never_raise(value, kind):
    event = {**value, "type": kind} if isinstance(value, dict) else {"type": kind, "delta": value, "index": 0}
    opening = {"type": "message_start", "message": {"usage": 7}}
    reader = read([b"".join(f"data: {json.dumps(each)}\n\n".encode() for each in (opening, event, event))])
    reader.response()
    read([json.dumps(value).encode()])


@pytest.mark.parametrize("text", ["nope", "{'a': 1}", '{"a" 1', "", " "])
def test_what_is_no_json_is_no_input(text):
    with pytest.raises(ValueError, match="not JSON"):
        loads_partial(text)


def put_together(events: list[dict[str, Any]]) -> dict[str, Any]:
    """What the SDK's own accumulator makes of the events; it passes over those it does not know before it gets there."""
    snapshot, buffers = None, dict[int, bytes]()
    for event in copy.deepcopy(events):
        if event["type"] not in ("ping", "novelty_delta"):
            snapshot = accumulate_event(event=event, current_snapshot=snapshot, json_bufs=buffers)  # type: ignore[arg-type]
    assert snapshot is not None
    return snapshot.to_dict(mode="python", exclude_unset=False, warnings=False)


def without_nulls(value: Any) -> Any:
    """The SDK fills in the fields it knows as None."""
    if isinstance(value, dict):
        return {name: without_nulls(inner) for name, inner in value.items() if inner is not None}
    return [without_nulls(inner) for inner in value] if isinstance(value, list) else value
