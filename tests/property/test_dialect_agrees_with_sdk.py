"""The openai SDK and our reader see the same answer in the same bytes."""

from collections.abc import Iterator

import httpx2
import orjson
from hypothesis import given, settings
from hypothesis import strategies as st
from openai import OpenAI
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ParsedChatCompletion

from hedgerow.dialects.openai_chat_answer import ChatAnswerReader
from hedgerow.values.answer import AnswerFacts

SSE = [("content-type", "text/event-stream")]
TEXT = st.text(max_size=12)
FINISH = st.sampled_from(["stop", "length", "tool_calls", "content_filter"])


def chunk(index: int, delta: dict[str, object], finish: str | None = None, **more: object) -> dict[str, object]:
    choice = {"index": index, "delta": delta, "finish_reason": finish}
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice], **more}


@st.composite
def one_choice(draw: st.DrawFn, index: int) -> list[dict[str, object]]:
    """The chunks of one choice after its role, in order: text or a refusal, tool calls, a finish reason."""
    field = draw(st.sampled_from(["content", "content", "refusal"]))
    chunks = [chunk(index, {field: text}) for text in draw(st.lists(TEXT, max_size=6))]
    for number in range(draw(st.integers(0, 2))):
        named = {"index": number, "id": f"call_{number}", "type": "function"}
        chunks.append(
            chunk(index, {"tool_calls": [{**named, "function": {"name": f"tool_{number}", "arguments": ""}}]})
        )
        for arguments in draw(st.lists(TEXT, max_size=4)):
            chunks.append(chunk(index, {"tool_calls": [{"index": number, "function": {"arguments": arguments}}]}))
    return [*chunks, chunk(index, {}, draw(FINISH))]


@st.composite
def answers(draw: st.DrawFn) -> list[dict[str, object]]:
    """The chunks of an answer with one or two choices, interleaved, and perhaps usage at the end."""
    queues = [draw(one_choice(index)) for index in range(draw(st.integers(1, 2)))]
    chunks = [chunk(index, {"role": "assistant", "content": ""}) for index in range(len(queues))]
    while any(queues):
        queue = draw(st.sampled_from([queue for queue in queues if queue]))
        chunks.append(queue.pop(0))
    if draw(st.booleans()):
        usage = {"prompt_tokens": draw(st.integers(0, 999)), "completion_tokens": 7, "total_tokens": 7}
        chunks.append({**chunk(0, {}), "choices": [], "usage": usage})
    return chunks


def wire_bytes(chunks: list[dict[str, object]], line_end: bytes, pings: bool) -> bytes:
    blank = line_end * 2
    frames = [b"data: " + orjson.dumps(part) + blank for part in chunks]
    return (b": ping" + blank if pings else b"").join(frames) + b"data: [DONE]" + blank


def cut(data: bytes, sizes: list[int]) -> Iterator[bytes]:
    at = number = 0
    while at < len(data):
        size = sizes[number % len(sizes)]
        yield data[at : at + size]
        at, number = at + size, number + 1


def as_the_sdk_sees_it(data: bytes, sizes: list[int]) -> ParsedChatCompletion[None]:
    def answer(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers=SSE, content=cut(data, sizes))

    with OpenAI(api_key="x", http_client=httpx2.Client(transport=httpx2.MockTransport(answer))) as client:
        state = ChatCompletionStreamState()
        with client.chat.completions.create(model="m", messages=[], stream=True) as stream:
            for part in stream:
                state.handle_chunk(part)
        return state.current_completion_snapshot


def as_we_see_it(data: bytes, sizes: list[int]) -> AnswerFacts:
    reader = ChatAnswerReader([(name.encode(), value.encode()) for name, value in SSE])
    for piece in cut(data, sizes):
        reader.feed(piece)
    reader.finish()
    return reader.facts


@settings(max_examples=150)
@given(
    answers(), st.sampled_from([b"\n", b"\r\n"]), st.booleans(), st.lists(st.integers(1, 200), min_size=1, max_size=8)
)
def test_text_tool_calls_finish_and_usage_are_those_the_sdk_accumulates(chunks, line_end, pings, sizes):
    data = wire_bytes(chunks, line_end, pings)
    theirs, ours = as_the_sdk_sees_it(data, sizes), as_we_see_it(data, sizes)
    outputs = [
        "".join(
            (
                choice.message.content or "",
                choice.message.refusal or "",
                *(call.function.name + call.function.arguments for call in choice.message.tool_calls or ()),
            )
        )
        for choice in theirs.choices
    ]
    finish_reasons = {choice.finish_reason for choice in theirs.choices}
    assert ours.visible_chars == sum(map(len, outputs))
    assert ours.content == any(outputs)
    assert ours.useful == any(
        output and choice.finish_reason != "content_filter"
        for output, choice in zip(outputs, theirs.choices, strict=True)
    )
    assert ours.ended
    assert ours.failure is None
    assert ours.finish_reason in finish_reasons
    assert ours.model == theirs.model
    if theirs.usage is not None:
        assert ours.usage is not None
        assert ours.usage.input_tokens == theirs.usage.prompt_tokens
