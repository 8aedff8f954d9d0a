"""Cutting a stream into events."""

import pytest

from hedgerow.dialects.sse import EventDecoder


def decoded(*pieces: bytes, finish: bool = True, **options: int) -> list[tuple[str, bytes]]:
    decoder = EventDecoder(**options)
    events = [event for piece in pieces for event in decoder.feed(piece)]
    events += decoder.finish() if finish else []
    return [(event.name, event.data) for event in events]


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_lines_may_end_in_lf_cr_or_crlf(end):
    assert decoded(b"data: one" + end + end + b"data: two" + end + end) == [("", b"one"), ("", b"two")]


def test_a_crlf_split_between_two_reads_is_one_line_end():
    assert decoded(b"data: a\r", b"\ndata: b\r", b"\n\r", b"\n") == [("", b"a\nb")]


def test_an_event_that_ends_in_cr_is_not_held_back_for_a_possible_lf():
    assert decoded(b"data: a\r\r", finish=False) == [("", b"a")]


def test_an_empty_read_changes_nothing():
    assert decoded(b"data: a\r", b"", b"\n\r\n") == [("", b"a")]


def test_comments_ids_and_retry_times_are_no_data():
    assert decoded(b": OPENROUTER PROCESSING\n\n:\n\nid: 1\nretry: 10\n\ndata: x\n\n") == [("", b"x")]


def test_data_lines_are_joined_by_line_feeds():
    assert decoded(b"data: {\ndata:  1\ndata\ndata:}\n\n") == [("", b"{\n 1\n\n}")]


def test_an_event_keeps_its_name_and_the_next_has_none():
    assert decoded(b"event: error\ndata: x\n\ndata: y\n\n") == [("error", b"x"), ("", b"y")]


def test_the_last_event_may_lack_its_blank_line_or_its_line_end():
    assert decoded(b"data: a\n\ndata: b\n") == [("", b"a"), ("", b"b")]
    assert decoded(b"data: a\n\ndata: b") == [("", b"a"), ("", b"b")]


def test_an_event_is_not_given_out_before_its_blank_line():
    assert decoded(b"data: a\n", finish=False) == []


def test_a_byte_order_mark_is_skipped_even_in_pieces():
    assert decoded(b"\xef", b"\xbb\xbfdata: a\n\n") == [("", b"a")]


def test_a_character_split_between_reads_stays_whole():
    text = "data: grün 🌿\n\n".encode()
    assert decoded(*(text[at : at + 1] for at in range(len(text)))) == [("", "grün 🌿".encode())]


def test_llama_cpp_errors_come_as_a_field_of_their_own():
    assert decoded(b'error: {"code":500}\n\n') == [("error", b'{"code":500}')]


def test_bytes_that_are_no_utf8_are_no_trouble():
    assert decoded(b"event: \xff\ndata: \xfe\n\n") == [("\ufffd", b"\xfe")]


@pytest.mark.parametrize("piece_bytes", [1, 7, 10_000])
def test_an_oversized_event_is_left_out_said_so_and_read_past(piece_bytes):
    text = b"data: ok\n\ndata: " + b"x" * 200 + b"\n\ndata: also ok\n\n"
    decoder = EventDecoder(max_event_bytes=100)
    events = [e.data for at in range(0, len(text), piece_bytes) for e in decoder.feed(text[at : at + piece_bytes])]
    assert events == [b"ok", b"also ok"]
    assert decoder.oversized


def test_an_event_of_many_small_lines_counts_as_a_whole():
    decoder = EventDecoder(max_event_bytes=100)
    assert decoder.feed(b"data: 123456789\n" * 20 + b"\ndata: b\n\n")[-1].data == b"b"
    assert decoder.oversized


@pytest.mark.parametrize("piece_bytes", [1, 13, 10_000])
def test_an_event_just_within_the_limit_is_whole_however_it_is_cut(piece_bytes):
    text = b"data: " + b"x" * 93 + b"\n\n"
    decoder = EventDecoder(max_event_bytes=100)
    events = [e.data for at in range(0, len(text), piece_bytes) for e in decoder.feed(text[at : at + piece_bytes])]
    assert events == [b"x" * 93]
    assert not decoder.oversized
