"""The head of an answer as llhttp wants it, where a provider wrote it in a way that other clients put up with.

Line ends without CR, folded headers, one length told twice, a length beside chunks (which win, RFC 9112 6.3): the bare client
reads them all. What could be read in two ways is refused; and no connection that needed this carries another request.
"""

import re
from collections.abc import Iterator

__all__ = ["plain_head", "whole_head"]

HEAD_END = re.compile(rb"\r?\n\r?\n")
LINE_END = re.compile(rb"\r?\n")


def whole_head(data: bytes, start: int) -> int | None:
    """Where the head ends that begins at `start`; None if more of it is to come."""
    found = HEAD_END.search(data, start)
    return found.end() if found else None


def plain_head(head: bytes) -> bytes | None:
    """The same head, written plainly; None if it tells two lengths."""
    status, *lines = LINE_END.split(head.rstrip(b"\r\n"))
    headers = list(_unfolded(lines))
    lengths = {each.strip() for name, value in headers if name == b"content-length" for each in value.split(b",")}
    if len(lengths) > 1:
        return None
    chunked = any(name == b"transfer-encoding" and b"chunked" in value.lower() for name, value in headers)
    kept = [status, *(name + b": " + value for name, value in headers if name != b"content-length")]
    if lengths and not chunked:
        kept.append(b"content-length: " + lengths.pop())
    return b"\r\n".join([*kept, b"\r\n"])


def _unfolded(lines: list[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Names in lower case, and values; a line that begins with a space goes on with the one before."""
    name, value = b"", b""
    for line in lines:
        if line[:1] in (b" ", b"\t") and name:
            value += b" " + line.strip()
            continue
        if name:
            yield name, value
        name, _, value = line.partition(b":")
        name, value = name.lower(), value.strip()
    if name:
        yield name, value
