"""However the network cuts a Gemini answer, the same is read out of it; and no bytes make a reader raise."""

import itertools

import orjson
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.dialects.gemini_answer import GeminiReader
from hedgerow.dialects.gemini_assembly import AssemblingGeminiReader
from hedgerow.dialects.gemini_framing import ArrayDecoder, GeminiFraming
from hedgerow.dialects.gemini_whole import GeminiWholeReader
from hedgerow.values.answer import AnswerFacts

FRAGMENTS = st.sampled_from(
    [
        b"data: ",
        b"\n\n",
        b"\r\n\r\n",
        b"\r",
        b"[",
        b",",
        b"]",
        b"{",
        b"}",
        b"\\",
        b'"',
        b": ping\n\n",
        b'{"candidates":[{"content":{"parts":[{"text":"hi"}]}}]}',
        b'{"candidates":[{"content":{"parts":[{"text":"\xc3\xbc\xf0\x9f\x8c\xbf]}"}]},"finishReason":"STOP"}]}',
        b'{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{"a":[1]}}}]}}]}',
        b'{"candidates":[7,{"content":7},{"content":{"parts":7}},{"content":{"parts":[7]},"index":"x"}]}',
        b'{"error":{"code":503,"status":"UNAVAILABLE","details":[7]}}',
        b'{\n  "error": {\n    "code": 429\n  }\n}\n',
        b'{"usageMetadata":{"promptTokenCount":"many","candidatesTokenCount":-1}}',
        b'{"promptFeedback":{"blockReason":"SAFETY"}}',
        b"\xff\xfe",
        b"\xef\xbb\xbf",
    ]
)
NOISE = st.lists(FRAGMENTS | st.binary(max_size=20), max_size=40).map(b"".join)
CUTS = st.lists(st.integers(0, 2000), max_size=30)
LABELS = st.sampled_from([[], [(b"content-type", b"text/event-stream")], [(b"content-type", b"application/json")]])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text('ab"\\{}[],: ü', max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('a"{', max_size=3), inner, max_size=3),
    max_leaves=8,
)
ELEMENTS = st.lists(st.dictionaries(st.text('a"{}[]\\', max_size=4), VALUES, max_size=3), max_size=6)


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    at = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(at)]


def facts_of(parts: list[bytes], headers: list[tuple[bytes, bytes]]) -> AnswerFacts:
    reader = GeminiReader(headers)
    for part in parts:
        reader.feed(part)
    reader.finish()
    return reader.facts


@given(NOISE, CUTS, LABELS)
def test_cuts_change_nothing_and_nothing_raises(
    data: bytes, cuts: list[int], headers: list[tuple[bytes, bytes]]
) -> None:
    assert facts_of(pieces(data, cuts), headers) == facts_of([data], headers)
    for reader in (AssemblingGeminiReader(headers), GeminiWholeReader(headers)):
        for part in pieces(data, cuts):
            reader.feed(part)
        reader.finish()
        if isinstance(reader, AssemblingGeminiReader) and reader.streamed:
            assert reader.facts.failure is None or orjson.loads(reader.error_response()) is not None
            reader.response()


@given(ELEMENTS, CUTS, st.sampled_from([None, orjson.OPT_INDENT_2]))
def test_the_elements_of_an_array_come_out_as_they_went_in(
    elements: list[object], cuts: list[int], option: int | None
) -> None:
    decoder, data = ArrayDecoder(), orjson.dumps(elements, option=option)
    seen = [orjson.loads(event.data) for part in pieces(data, cuts) for event in decoder.feed(part)]
    assert seen == elements


def test_an_element_that_is_too_large_is_said_to_have_been_left_out() -> None:
    decoder = ArrayDecoder(max_bytes=100)
    assert not decoder.feed(b'[{"a":"' + b"x" * 200)
    assert decoder.oversized
    assert decoder.feed(b'"},{}]') == []


@given(CUTS)
def test_errors_without_data_are_found_wherever_they_are_cut(cuts: list[int]) -> None:
    bare = b'{\r\n  "error": {\r\n    "code": 503,\r\n    "status": "UNAVAILABLE"\r\n  }\r\n}\r\n'
    data = b'data: {"usageMetadata": {"promptTokenCount": 1}}\r\n\r\n' + bare
    framing = GeminiFraming([(b"content-type", b"text/event-stream")])
    events = [event for part in pieces(data, cuts) for event in framing.feed(part)] + framing.finish()
    assert [list(orjson.loads(event.data)) for event in events] == [["usageMetadata"], ["error"]]
