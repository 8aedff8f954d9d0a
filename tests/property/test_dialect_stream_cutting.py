"""However the network cuts an answer, the same is read out of it; and no bytes make a reader raise."""

import gzip
import itertools
import zlib

import orjson
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.dialects.encoding import ContentDecoder
from hedgerow.dialects.openai_chat_answer import ChatAnswerReader
from hedgerow.dialects.openai_embeddings import EmbeddingsAnswerReader
from hedgerow.dialects.sse import EventDecoder
from hedgerow.values.answer import AnswerFacts

LINES = st.sampled_from(
    [
        b"data: a",
        b"data:b",
        b"data",
        b"event: error",
        b": ping",
        b"",
        b"",
        b"id: 1",
        "data: ü🌿".encode(),
        b"\xef\xbb\xbfdata: c",
    ]
)
ENDS = st.sampled_from([b"\n", b"\r", b"\r\n"])
STREAMS = st.lists(st.tuples(LINES, ENDS), max_size=30).map(lambda lines: b"".join(line + end for line, end in lines))
FRAGMENTS = st.sampled_from(
    [
        b"data: ",
        b"\n\n",
        b"\r\n\r\n",
        b"[DONE]",
        b"event: error\n",
        b'{"choices":[{"index":0,"delta":{"content":"hi"}}]}',
        b'{"choices":[{"index":1,"delta":{"tool_calls":[{"function":{"name":"f"}}]},"finish_reason":"stop"}]}',
        b'{"error":{"type":"overloaded_error"}}',
        b'{"choices":',
        b"[{",
        b"}]",
        b'"usage":{"prompt_tokens":1}',
        b"null",
        b"\xff\xfe",
        b"\xef\xbb\xbf",
    ]
)
NOISE = st.lists(FRAGMENTS | st.binary(max_size=20), max_size=40).map(b"".join)
CUTS = st.lists(st.integers(0, 2000), max_size=30)
LABELS = st.sampled_from([[], [(b"content-type", b"text/event-stream")], [(b"content-type", b"application/json")]])


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    at = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(at)]


def events_of(parts: list[bytes], **options: int) -> tuple[list[tuple[str, bytes]], bool]:
    decoder = EventDecoder(**options)
    events = [event for part in parts for event in decoder.feed(part)] + decoder.finish()
    return [(event.name, event.data) for event in events], decoder.oversized


def facts_of(parts: list[bytes], headers: list[tuple[bytes, bytes]]) -> AnswerFacts:
    reader = ChatAnswerReader(headers)
    for part in parts:
        reader.feed(part)
    reader.finish()
    return reader.facts


@given(STREAMS, CUTS)
def test_events_do_not_depend_on_how_the_stream_is_cut(stream, cuts):
    assert events_of(pieces(stream, cuts)) == events_of([stream])


@given(STREAMS)
def test_events_do_not_depend_on_the_kind_of_line_end(stream):
    plain = stream.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    assert events_of([stream]) == events_of([plain])


@given(STREAMS | NOISE, CUTS, st.integers(1, 12))
def test_the_limit_drops_the_same_events_however_the_stream_is_cut(stream, cuts, limit_bytes):
    whole, whole_oversized = events_of([stream], max_event_bytes=limit_bytes)
    cut, cut_oversized = events_of(pieces(stream, cuts), max_event_bytes=limit_bytes)
    # A long comment that is held in pieces may drop the event around it; nothing else depends on the cut.
    assert all(event in whole for event in cut)
    assert cut_oversized or not whole_oversized
    assert all(len(data) <= limit_bytes for _, data in whole)


@given(NOISE, CUTS, LABELS)
def test_noise_never_raises_and_content_is_never_lost_to_cutting(noise, cuts, headers):
    assert facts_of(pieces(noise, cuts), headers) == facts_of([noise], headers)


@given(NOISE, LABELS)
def test_noise_before_a_stream_s_content_does_not_hide_it(noise, headers):
    stream = b": hello\n\n" + noise + b'\n\ndata: {"choices":[{"delta":{"content":"hi"}}]}\n\n'
    assert facts_of([stream], headers).content


@given(NOISE, CUTS, LABELS)
def test_embeddings_survive_noise(noise, cuts, headers):
    reader = EmbeddingsAnswerReader(headers)
    for part in pieces(noise, cuts):
        reader.feed(part)
    reader.finish()
    assert not reader.facts.valid


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.sampled_from(
                    ["choices", "delta", "message", "content", "error", "usage", "index", "tool_calls", "audio", "code"]
                ),
                inner,
            )
        ),
    )
)
def test_json_of_any_shape_never_raises(value):
    body = orjson.dumps(value)
    facts_of([body], [])
    facts_of([b"data: " + body + b"\n\n"], [])


@given(st.binary(max_size=3000), CUTS, st.sampled_from(["gzip", "zlib", "raw"]))
def test_compressed_content_does_not_depend_on_how_it_is_cut(content, cuts, kind):
    packer = zlib.compressobj(wbits=-15)
    packed = {
        "gzip": gzip.compress(content),
        "zlib": zlib.compress(content),
        "raw": packer.compress(content) + packer.flush(),
    }
    decoder = ContentDecoder("gzip" if kind == "gzip" else "deflate")
    assert b"".join(decoder.decode(part) for part in pieces(packed[kind], cuts)) == content
    assert decoder.sees


@given(st.binary(max_size=300), CUTS, st.sampled_from(["gzip", "deflate"]))
def test_noise_never_makes_the_content_decoder_raise(noise, cuts, encoding):
    decoder = ContentDecoder(encoding)
    for part in pieces(noise, cuts):
        decoder.decode(part)
