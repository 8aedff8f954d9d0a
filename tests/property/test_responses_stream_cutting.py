"""However the network cuts an OpenAI response, the same is read out of it, and it is put together as the SDK does."""

import itertools
import json
from random import Random
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai._types import NOT_GIVEN
from openai.lib.streaming.responses._responses import ResponseStreamState
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from hedgerow.dialects.openai_responses_answer import ResponseReader
from hedgerow.dialects.openai_responses_assembly import AssemblingResponseReader
from hedgerow.sandbox.content import Answer, ReportedUsage, compose
from hedgerow.sandbox.openai_responses import OpenAIResponses
from hedgerow.sandbox.script import Script

SSE = [(b"content-type", b"text/event-stream")]
EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
BODY = orjson.dumps({"model": "gpt-x", "input": "Hi", "stream": True, "tools": [{"type": "function", "name": "f"}]})
CUTS = st.lists(st.integers(0, 20_000), max_size=30)
ENDS = st.sampled_from(["\n", "\r\n", "\r"])
SCRIPTS = st.builds(
    Script,
    text=st.none() | st.text(max_size=40),
    reasoning_tokens=st.integers(0, 4),
    refusal=st.none() | st.just("No, thank you."),
    tool_calls=st.integers(0, 3),
    finish_reason=st.sampled_from(["stop", "length", "tool_calls", "content_filter"]),
    usage=st.booleans(),
)


def answer_of(script: Script) -> Answer:
    call = OpenAIResponses().read("/v1/responses", BODY)
    return Answer(
        id="chatcmpl-1",
        created_at_s=1_790_000_000,
        call=call,
        n=1,
        pieces=compose(script, call, 9, Random(7)),
        finish_reason=script.finish_reason,
        service_tier="default",
        usage=ReportedUsage(input_tokens=3, output_tokens=12, reasoning_tokens=2) if script.usage else None,
    )


def stream_of(answer: Answer, end: str) -> bytes:
    wire = OpenAIResponses()
    frames = [*wire.opening(answer), wire.ping()]
    frames += [frame for number in range(len(answer.pieces)) for frame in wire.token(answer, number)]
    return b"".join(frame.lines(end) for frame in [*frames, *wire.closing(answer)])


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    at = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(at)]


def read(parts: list[bytes], reader: Any = None) -> Any:
    reader = reader or AssemblingResponseReader(SSE)
    for part in parts:
        reader.feed(part)
    reader.finish()
    return reader


@settings(max_examples=200)
@given(SCRIPTS, CUTS, ENDS)
def test_the_assembled_response_is_the_sandboxs_own_whole_answer(script, cuts, end):
    answer = answer_of(script)
    reader = read(pieces(stream_of(answer, end), cuts))
    assert reader.facts.ended
    assert reader.complete
    assert orjson.loads(reader.response()) == orjson.loads(OpenAIResponses().whole(answer))


@settings(max_examples=200)
@given(SCRIPTS)
def test_its_output_is_the_one_the_sdk_puts_together_from_the_events_before(script):
    answer = answer_of(script)
    state: Any = ResponseStreamState(input_tools=NOT_GIVEN, text_format=NOT_GIVEN)
    lines = stream_of(answer, "\n").decode().split("\n")
    events = [EVENT.validate_json(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    for event in events[:-1]:
        state.handle_event(event)
    told = orjson.loads(read([stream_of(answer, "\n")]).response())
    snapshot = Response.construct(output=state._ResponseStreamState__current_snapshot.output)
    assert [spoken(item) for item in snapshot.to_dict()["output"]] == [spoken(item) for item in told["output"]]


@given(SCRIPTS, CUTS, ENDS)
def test_facts_do_not_depend_on_how_a_stream_is_cut(script, cuts, end):
    data = stream_of(answer_of(script), end)
    assert read(pieces(data, cuts)).facts == read([data]).facts


@given(SCRIPTS)
def test_the_same_is_read_of_the_whole_answer_as_of_its_stream(script):
    answer = answer_of(script)
    streamed = read([stream_of(answer, "\n")]).facts
    whole = read([OpenAIResponses().whole(answer)], ResponseReader([(b"content-type", b"application/json")])).facts
    for name in ("useful", "ended", "usage", "model", "finish_reason", "service_tier", "visible_chars", "hidden_chars"):
        assert getattr(whole, name) == getattr(streamed, name), name


@given(SCRIPTS, st.floats(0, 0.99))
def test_a_part_of_a_stream_has_not_ended(script, share):
    data = stream_of(answer_of(script), "\n")
    reader = read([data[: round(share * (len(data) - 10))]])
    assert not reader.facts.ended
    assert not reader.complete


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(
            st.sampled_from(
                ["type", "delta", "response", "output", "status", "error", "usage", "code", "content", "item"]
            ),
            inner,
        )
    ),
)


@given(
    JSON, st.sampled_from(["response.completed", "response.failed", "response.x.delta", "error", "response.created"])
)
@pytest.mark.filterwarnings("error")
def test_events_of_any_shape_never_raise(value, kind):
    for event in (value, {"type": kind, "response": value}, {"type": kind, "delta": value}):
        reader = read([f"data: {json.dumps(event)}\n\n".encode()])
        reader.response()
        reader.error_response()
    read([json.dumps(value).encode()])


def spoken(item: dict[str, Any]) -> dict[str, Any]:
    """What an item says; its status is that of the moment. The SDK puts neither refusals nor summaries together."""
    parts = [part["text"] for part in item.get("content") or () if part["type"] == "output_text"]
    return {"id": item["id"], "type": item["type"], "arguments": item.get("arguments"), "parts": parts}
