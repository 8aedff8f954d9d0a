"""However a Gemini answer is streamed: put together, it is the whole answer, as JSON and in the eyes of Google's SDK."""

import copy
import itertools
from typing import Any

import orjson
import pytest
from google.genai import types
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.dialects.gemini_assembly import AssemblingGeminiReader

STREAM = [(b"content-type", b"text/event-stream")]
WORDS = st.text('abc üß🌿\u2028"\\{}[]', min_size=1, max_size=12)
EXTRA = st.dictionaries(
    st.sampled_from(["xNew", "yNew"]),
    st.integers(-999, 999) | WORDS | st.lists(st.integers(-999, 999), min_size=1),
    max_size=2,
)
TEXT = st.fixed_dictionaries({"text": WORDS})
THOUGHT = st.fixed_dictionaries({"text": WORDS, "thought": st.just(True)})
SIGNED = st.fixed_dictionaries({"text": WORDS, "thoughtSignature": st.sampled_from(["c2ln", "bmF0dXI="])})
CALL = st.fixed_dictionaries(
    {
        "functionCall": st.fixed_dictionaries(
            {"name": WORDS, "args": st.dictionaries(WORDS, st.integers(-999, 999) | WORDS, max_size=3)}
        )
    },
    optional={"thoughtSignature": st.just("c2ln")},
)
CODE = st.sampled_from(
    [
        {"executableCode": {"language": "PYTHON", "code": "print(1)"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
        {"fileData": {"mimeType": "text/plain", "fileUri": "gs://x"}},
    ]
)
PARTS = st.lists(st.one_of(TEXT, TEXT, THOUGHT, SIGNED, CALL, CODE), min_size=1, max_size=6)
RATINGS = st.just([{"category": "HARM_CATEGORY_HARASSMENT", "probability": "NEGLIGIBLE"}])
SOURCES = st.lists(
    st.fixed_dictionaries({"uri": WORDS, "startIndex": st.integers(0, 99)}),
    min_size=1,
    max_size=4,
    unique_by=lambda source: (source["uri"], source["startIndex"]),
)
CHUNKS = st.lists(WORDS.map(lambda uri: {"web": {"uri": uri}}), min_size=1, max_size=4, unique_by=str)
REASONS = st.sampled_from(["STOP", "MAX_TOKENS", "SAFETY", "MALFORMED_FUNCTION_CALL"])
METADATA = st.fixed_dictionaries(
    {},
    optional={
        "safetyRatings": RATINGS,
        "citationMetadata": st.fixed_dictionaries({"citationSources": SOURCES}),
        "groundingMetadata": st.fixed_dictionaries(
            {"groundingChunks": CHUNKS, "webSearchQueries": st.lists(WORDS, min_size=1, max_size=3, unique=True)}
        ),
        "urlContextMetadata": st.just({"urlMetadata": [{"retrievedUrl": "http://x"}]}),
        "finishMessage": WORDS,
        "tokenCount": st.integers(1, 99),
    },
)
USAGE = st.fixed_dictionaries(
    {
        "promptTokenCount": st.integers(1, 99),
        "candidatesTokenCount": st.integers(1, 99),
        "totalTokenCount": st.integers(2, 999),
    },
    optional={
        "thoughtsTokenCount": st.integers(1, 9),
        "cachedContentTokenCount": st.integers(1, 9),
        "promptTokensDetails": st.just([{"modality": "TEXT", "tokenCount": 3}]),
    },
)


def merged(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """As the API writes them: no two neighbours that are plain texts of one kind."""
    whole: list[dict[str, Any]] = []
    for part in copy.deepcopy(parts):
        last = whole[-1] if whole else {}
        plain = set(part) <= {"text", "thought"} and set(last) <= {"text", "thought"} and last
        if plain and last.get("thought") == part.get("thought"):
            last["text"] += part["text"]
        else:
            whole.append(part)
    return whole


@st.composite
def candidates(draw: st.DrawFn, index: int) -> dict[str, Any]:
    return {
        "content": {"parts": merged(draw(PARTS)), "role": "model"},
        "finishReason": draw(REASONS),
        "index": index,
        **draw(METADATA),
        **draw(EXTRA),
    }


@st.composite
def answers(draw: st.DrawFn) -> dict[str, Any]:
    return {
        "candidates": [draw(candidates(index)) for index in range(draw(st.integers(1, 3)))],
        "usageMetadata": draw(USAGE),
        "modelVersion": "gemini-x",
        "responseId": "r1",
        **draw(EXTRA),
    }


def cut_part(draw: st.DrawFn, part: dict[str, Any]) -> list[dict[str, Any]]:
    """Texts come in pieces; everything else comes whole."""
    text = part.get("text")
    if text is None or not set(part) <= {"text", "thought"}:
        return [part]
    at = [
        0,
        *sorted(draw(st.sets(st.integers(1, max(1, len(text) - 1)), max_size=4)) if len(text) > 1 else []),
        len(text),
    ]
    return [{**part, "text": text[start:end]} for start, end in itertools.pairwise(at)]


def listed(draw: st.DrawFn, metadata: dict[str, Any]) -> list[dict[str, Any]]:
    """Lists of sources in two pieces: the second brings what is new, or all so far."""
    first, second = {}, {}
    cumulative = draw(st.booleans())
    for name, entries in metadata.items():
        half = len(entries) // 2
        first[name], second[name] = entries[:half], entries if cumulative else entries[half:]
    return [{name: value for name, value in each.items() if value} for each in (first, second)]


@st.composite
def streams(draw: st.DrawFn) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A whole answer, and the chunks it is streamed in."""
    whole = draw(answers())
    common = {"modelVersion": whole["modelVersion"], "responseId": whole["responseId"]}
    queues = []
    for candidate in copy.deepcopy(whole["candidates"]):
        content = candidate.pop("content")
        bits = [bit for part in content["parts"] for bit in cut_part(draw, part)]
        queue: list[dict[str, Any]] = [{"content": {"parts": [bit], "role": "model"}} for bit in bits]
        for name in ("citationMetadata", "groundingMetadata"):
            if name in candidate and len(queue) > 1:
                early, late = listed(draw, candidate.pop(name))
                if early:
                    queue[draw(st.integers(0, len(queue) - 2))][name] = early
                candidate[name] = late
        if draw(st.booleans()):
            queue.append({"content": {"parts": [{"text": ""}], "role": "model"}})
        queue[-1].update(candidate)
        queues.append([{"index": candidate["index"], **each} for each in queue])
    chunks = []
    while any(queues):
        queue = draw(st.sampled_from([queue for queue in queues if queue]))
        chunk = {"candidates": [queue.pop(0)], **common}
        if draw(st.booleans()):
            chunk["usageMetadata"] = {"promptTokenCount": whole["usageMetadata"]["promptTokenCount"]}
        chunks.append(chunk)
    chunks[-1]["usageMetadata"] = whole["usageMetadata"]
    chunks[-1].update({name: value for name, value in whole.items() if name.endswith("New")})
    return whole, chunks


def to_the_sdk(answer: dict[str, Any]) -> types.GenerateContentResponse:
    """What Google's SDK makes of a body."""
    return types.GenerateContentResponse._from_response(response=without_unknown(answer), kwargs={})


def without_unknown(value: Any) -> Any:
    if isinstance(value, dict):
        known = {name: each for name, each in value.items() if not name.endswith("New")}
        if "citationSources" in known:  # the SDK's own converter renames it
            known = {"citations": known["citationSources"]}
        return {name: without_unknown(each) for name, each in known.items()}
    return [without_unknown(each) for each in value] if isinstance(value, list) else value


def on_the_wire(chunks: list[dict[str, Any]], manner: str, line_end: bytes) -> bytes:
    if manner == "array":
        return b"[" + b",\r\n".join(map(orjson.dumps, chunks)) + b"]"
    return b"".join(b"data: " + orjson.dumps(chunk) + line_end * 2 for chunk in chunks)


@settings(max_examples=200)
@given(streams(), st.sampled_from(["events", "array"]), st.sampled_from([b"\n", b"\r\n", b"\r"]), st.data())
def test_an_assembled_answer_is_the_whole_answer(
    stream: tuple[dict[str, Any], list[dict[str, Any]]], manner: str, line_end: bytes, data: st.DataObject
) -> None:
    whole, chunks = stream
    wire = on_the_wire(chunks, manner, line_end)
    reader = AssemblingGeminiReader(STREAM if manner == "events" else [(b"content-type", b"application/json")])
    at = sorted({0, len(wire), *data.draw(st.lists(st.integers(0, len(wire)), max_size=20))})
    for start, end in itertools.pairwise(at):
        reader.feed(wire[start:end])
    reader.finish()
    assert (reader.streamed, reader.complete, reader.facts.ended) == (True, True, True)
    assembled = orjson.loads(reader.response())
    assert assembled == whole
    assert to_the_sdk(assembled) == to_the_sdk(whole)


@settings(max_examples=200)
@given(streams(), st.data())
def test_a_stream_that_is_cut_is_never_taken_for_the_whole(
    stream: tuple[dict[str, Any], list[dict[str, Any]]], data: st.DataObject
) -> None:
    whole, chunks = stream
    wire = on_the_wire(chunks, "events", b"\n")
    finished_at = wire.rindex(b'"finishReason"')
    reader = AssemblingGeminiReader(STREAM)
    reader.feed(wire[: data.draw(st.integers(0, finished_at))])
    if len(whole["candidates"]) == 1:
        assert not reader.facts.ended


@pytest.mark.parametrize("cut", range(0, 120, 7))
def test_a_function_call_in_pieces_is_not_delivered_as_a_whole(cut: int) -> None:
    call = {"name": "f", "partialArgs": [{"jsonPath": "$.a", "stringValue": "x"}], "willContinue": True}
    chunk = {"candidates": [{"content": {"parts": [{"functionCall": call}]}, "finishReason": "STOP"}]}
    wire = b"data: " + orjson.dumps(chunk) + b"\n\n"
    reader = AssemblingGeminiReader(STREAM)
    reader.feed(wire[:cut])
    reader.feed(wire[cut:])
    reader.finish()
    assert not reader.complete
