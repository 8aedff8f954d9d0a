"""Where an event of a relayed stream ends is where the reader says that it ends, however the bytes come."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from hedgerow.dialects.sse import EventBoundary, EventDecoder

LINES = st.lists(st.sampled_from([b"data: x", b"event: e", b": comment", b"", b""]), max_size=12)
ENDS = st.sampled_from([b"\n", b"\r\n", b"\r"])


@given(
    lines=LINES, ends=st.data(), cuts=st.lists(st.integers(0, 200), max_size=8), rest=st.sampled_from([b"", b"data: y"])
)
def test_what_has_gone_on_is_all_that_a_reader_has_events_of(
    lines: list[bytes], ends: st.DataObject, cuts: list[int], rest: bytes
) -> None:
    stream = b"".join(line + ends.draw(ENDS) for line in lines) + rest
    places = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    boundary, whole, of_relayed = EventBoundary(), EventDecoder(), EventDecoder()
    for start, end in pairwise(places):
        relayed = boundary.whole(stream[start:end])
        read = whole.feed(stream[start:end])
        assert of_relayed.feed(relayed) == read  # as soon as the reader has it, and nothing of an unfinished event
    assert of_relayed.feed(boundary.rest()) + of_relayed.finish() == whole.finish()


def test_an_event_beyond_the_bound_is_let_through_in_parts() -> None:
    boundary = EventBoundary(max_event_bytes=10)
    assert boundary.whole(b"data: 0123") == b""
    assert boundary.whole(b"456789") == b"data: 0123456789"
    assert not boundary.between_events
    assert boundary.whole(b"\n\n") == b"\n\n"
    assert boundary.between_events
