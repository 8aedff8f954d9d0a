"""Stream or one body: what the label, the first byte and the lines say."""

import pytest

from hedgerow.dialects import framing
from hedgerow.dialects.framing import AnswerFraming
from hedgerow.dialects.gemini_framing import GeminiFraming
from hedgerow.dialects.registry import dialect_for
from hedgerow.dialects.sse import ServerSentEvent
from hedgerow.values.request import WireRequest

EVENTS, JSON = "text/event-stream", "application/json"


def headers(label: str) -> tuple[tuple[bytes, bytes], ...]:
    return ((b"content-type", label.encode()),)


@pytest.mark.parametrize("label", [EVENTS, JSON, "text/plain"])
@pytest.mark.parametrize("first", [b'{"ping":1}\n\n', b"[1,\n2]\r\n", b'{"ping":1}\r'])
@pytest.mark.parametrize("step", [1, 7, 1000])
def test_a_stream_whose_first_line_is_json_is_a_stream_from_its_first_event_on(
    label: str, first: bytes, step: int
) -> None:
    read, body = AnswerFraming(headers(label)), first + b"event: a\ndata: 1\n\ndata: 2\n\n"
    events = [event for at in range(0, len(body), step) for event in read.feed(body[at : at + step])]
    assert events == [ServerSentEvent("a", b"1"), ServerSentEvent("", b"2")]
    assert read.streamed is True
    assert read.finish() == []


def test_the_first_event_is_not_held_back() -> None:
    read = AnswerFraming(headers(EVENTS))
    assert read.feed(b'{"ping":1}\n\n') == []
    assert read.feed(b"data: 1\n\n") == [ServerSentEvent("", b"1")]


@pytest.mark.parametrize("label", [EVENTS, JSON])
@pytest.mark.parametrize("step", [1, 1000])
def test_one_json_value_is_one_body_whatever_its_label_and_its_texts(label: str, step: int) -> None:
    body = b'{\n  "data": "\\ndata: 1",\n  "event":\n{"error": "data:"}\n}\n'
    read = AnswerFraming(headers(label))
    assert not [event for at in range(0, len(body), step) for event in read.feed(body[at : at + step])]
    assert read.streamed is False
    assert read.finish() == [ServerSentEvent("", body)]


def test_geminis_events_are_read_behind_a_line_of_json() -> None:
    read = GeminiFraming(headers(EVENTS))
    assert read.feed(b'{"ping":1}\n\n') == []
    assert read.feed(b'data: {"candidates":[]}\n\n') == [ServerSentEvent("", b'{"candidates":[]}')]
    assert read.streamed is True


def test_what_was_too_large_to_keep_stays_a_body(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framing, "MAX_BODY_BYTES", 10)
    read = AnswerFraming(headers(JSON))
    assert read.feed(b'{"a":"0123456789"}') == []
    assert read.feed(b"\ndata: 1\n\n") == []
    assert (read.streamed, read.truncated) == (False, True)


MANY = b'{"choices":[' + b"{}," * 1_000_001 + b"{}]}"


@pytest.mark.parametrize(
    "path", ["/v1/chat/completions", "/v1/responses", "/v1/messages", "/v1/embeddings", "/m/models/g:generateContent"]
)
@pytest.mark.parametrize("form", [b"%b", b"data: %b\n\n"])
def test_what_is_made_of_too_many_parts_is_not_looked_at(path: str, form: bytes) -> None:
    """Others would wait for seconds."""
    request = WireRequest(method="POST", path=path, headers=(), body=b"{}")
    dialect = dialect_for(request)
    if path.endswith("embeddings"):
        form = b"%b"  # they have no streams
    label = b"application/json" if form == b"%b" else b"text/event-stream"
    reader = dialect.reader(dialect.facts(request), [(b"content-type", label)])
    reader.feed(form % MANY)
    reader.finish()
    assert reader.facts.overlooked
    assert not reader.facts.content
