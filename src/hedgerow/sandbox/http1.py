"""HTTP/1.1 as the sandbox needs it: reads one request at a time, strictly, and writes heads and chunks."""

import re
from dataclasses import dataclass
from http import HTTPStatus

from hedgerow.sandbox.connection import Connection

__all__ = ["BadRequest", "HttpRequest", "chunk", "read_request", "response_head"]

MAX_HEAD_BYTES = 256 * 1024
MAX_BODY_BYTES = 64 * 1024 * 1024
REQUEST_LINE = re.compile(rb"([A-Z]{1,20}) (\S+) HTTP/1\.([01])")
FIELD_LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*?)[ \t]*")
CHUNK_LINE = re.compile(rb"([0-9A-Fa-f]{1,8})[ \t]*(?:;.*)?")


class BadRequest(Exception):
    """A request that cannot be read or answered; `status` and the message go back to the client."""

    def __init__(self, message: str, status: int = 400) -> None:
        self.status = status
        super().__init__(message)


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """One request, body and all. Header names are lower-case; of repeated ones the first counts. `path` has no query."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    keep_alive: bool
    may_chunk: bool


async def read_request(connection: Connection) -> HttpRequest:
    """The next request. Raises ConnectionLost when the client leaves before its end, BadRequest for what is not HTTP."""
    head = await connection.read_through(b"\r\n\r\n", MAX_HEAD_BYTES)
    if head is None:
        raise BadRequest(f"request head of more than {MAX_HEAD_BYTES} bytes", 431)
    first, *lines = head[:-4].lstrip(b"\r\n").split(b"\r\n")
    match = REQUEST_LINE.fullmatch(first)
    if match is None:
        raise BadRequest("the request line is not HTTP/1.1")
    method, target, minor = match[1].decode(), match[2].decode("latin-1"), match[3]
    headers = _headers(lines)
    tokens = {token.strip().lower() for token in headers.get("connection", "").split(",")}
    return HttpRequest(
        method=method,
        path=_path(target),
        headers=headers,
        body=await _body(connection, headers),
        keep_alive="close" not in tokens and (minor == b"1" or "keep-alive" in tokens),
        may_chunk=minor == b"1",
    )


def response_head(status: int, headers: dict[str, str]) -> bytes:
    """Status line and headers, up to and including the blank line."""
    lines = [f"HTTP/1.1 {status} {_phrase(status)}", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def chunk(data: bytes) -> bytes:
    """One chunk of a chunked body; of no bytes: its end."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Status"


def _path(target: str) -> str:
    if "://" in target:
        target = "/" + target.partition("://")[2].partition("/")[2]
    return target.partition("?")[0].partition("#")[0]


def _headers(lines: list[bytes]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for line in lines:
        match = FIELD_LINE.fullmatch(line)
        if match is None:
            raise BadRequest(f"not a header line: {line[:60]!r}")
        name, value = match[1].decode().lower(), match[2].decode("latin-1")
        if name in ("content-length", "transfer-encoding") and headers.get(name, value) != value:
            raise BadRequest(f"two different {name} headers")
        headers.setdefault(name, value)
    return headers


async def _body(connection: Connection, headers: dict[str, str]) -> bytes:
    length, coding = headers.get("content-length"), headers.get("transfer-encoding")
    if length is not None and coding is not None:
        raise BadRequest("content-length and transfer-encoding together")
    if length is not None and not (length.isascii() and length.isdecimal()):
        raise BadRequest(f"content-length {length[:40]!r} is not a number")
    if coding is not None and coding.lower() != "chunked":
        raise BadRequest(f"transfer-encoding {coding[:40]!r} is not chunked", 501)
    if length is not None and (len(length) > 12 or int(length) > MAX_BODY_BYTES):
        raise BadRequest(f"request body of more than {MAX_BODY_BYTES} bytes", 413)
    if headers.get("expect", "").lower() == "100-continue" and not connection.buffered:
        connection.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    if coding is not None:
        return await _chunked(connection)
    return await connection.read_exactly(int(length)) if length else b""


async def _chunked(connection: Connection) -> bytes:
    body = bytearray()
    while True:
        line = await connection.read_through(b"\r\n", 1024)
        match = CHUNK_LINE.fullmatch(line[:-2]) if line else None
        if match is None:
            raise BadRequest("not a chunk size")
        size = int(match[1], 16)
        if len(body) + size > MAX_BODY_BYTES:
            raise BadRequest(f"request body of more than {MAX_BODY_BYTES} bytes", 413)
        if size == 0:
            break
        body += await connection.read_exactly(size)
        if await connection.read_exactly(2) != b"\r\n":
            raise BadRequest("a chunk is longer than its size")
    while (line := await connection.read_through(b"\r\n", MAX_HEAD_BYTES)) != b"\r\n":
        if line is None:
            raise BadRequest("trailers without end", 431)
    return bytes(body)
