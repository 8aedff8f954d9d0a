"""Heads of answers that other clients put up with."""

import pytest

from hedgerow.gateway.answer_heads import plain_head, whole_head


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        (b"HTTP/1.1 200 OK\nA: 1\n\n", b"HTTP/1.1 200 OK\r\na: 1\r\n\r\n"),
        (b"HTTP/1.1 200 OK\r\nA: 1\r\n 2\r\n\t3\r\n\r\n", b"HTTP/1.1 200 OK\r\na: 1 2 3\r\n\r\n"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\ncontent-length: 2\r\n\r\n",
            b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n",
        ),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: Chunked\r\n\r\n",
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n",
        ),
    ],
)
def test_it_is_written_plainly(written: bytes, plain: bytes) -> None:
    assert plain_head(written) == plain


def test_two_lengths_are_refused() -> None:
    assert plain_head(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n") is None


@pytest.mark.parametrize("end", [b"\r\n\r\n", b"\n\n", b"\r\n\n", b"\n\r\n"])
def test_it_ends_at_its_blank_line(end: bytes) -> None:
    head = b"HTTP/1.1 200 OK\r\na: 1" + end
    assert whole_head(head + b"body", 0) == len(head)
    assert whole_head(head[:-1], 0) is None
