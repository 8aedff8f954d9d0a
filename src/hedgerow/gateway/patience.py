"""uvicorn's HTTP protocol with limits that it has none of itself: on a request's head, and on a client that stops reading. And
two parts of HTTP/1.1 that it reads in its own way: offers of another protocol, and trailers."""

import asyncio
from typing import Any, cast

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from hedgerow.gateway.line import LINE, TARGET_FORM, WHOLE, Line

__all__ = ["MAX_HEAD_BYTES", "PatientProtocol"]

HEAD_S = 30.0  # from the connection, or from the first byte of a later request, to the end of the head
MAX_HEAD_BYTES = 65_536
READING_PAUSE_S = 120.0  # a client that takes nothing of its answer for so long
MOST_PIPELINED = (
    8  # requests that wait for the answer to the one before; while more do, nobody hears that their client leaves
)
ENDLESS = 2**62
FRAMING = frozenset({b"content-length", b"transfer-encoding"})
TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class _UntilClosed(RequestResponseCycle):
    """An answer to HTTP/1.0, which knows no chunks and no interim ones: one whose length is not told ends with its connection."""

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            told = any(name.lower() == b"content-length" for name, _ in message["headers"])
            self.chunked_encoding, self.expected_content_length = (None, 0) if told else (False, ENDLESS)
        elif self.expected_content_length > ENDLESS // 2 and not message.get("more_body", False):
            self.expected_content_length = len(message.get("body", b""))
        await super().send(message)

    async def receive(self) -> Any:
        self.waiting_for_100_continue = False
        return await super().receive()


class PatientProtocol(HttpToolsProtocol):
    """One connection. A client that opens it and says nothing, or says it a byte a minute, does not keep it; nor one that does
    not take its answer, for which a provider's stream is held open.

    A request that offers another protocol (the JDK's client does, RFC 9110, 7.8) is served as HTTP/1.1. The parser takes what
    follows its head for that protocol, so a second parser, which is told the same framing and no offer, reads the body."""

    _head_timer: asyncio.TimerHandle | None = None
    _reading_timer: asyncio.TimerHandle | None = None
    _head_bytes = _header_bytes = 0
    _in_head = True
    _may_be_large = _offers = _retelling = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._line = Line(transport)
        super().connection_made(cast(asyncio.Transport, self._line))
        self._begin_head()

    def data_received(self, data: bytes) -> None:
        if self._in_head:
            self._head_bytes += len(data)
        self._may_be_large = self._head_bytes + len(data) > MAX_HEAD_BYTES
        self._unset_keepalive_if_required()
        self._parse(data)
        if self._in_head and self._head_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
            self.send_400_response("")

    def _parse(self, data: bytes) -> None:
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as offer:
            self._parse_on(data[offer.args[0] :])
        except httptools.HttpParserError:
            self.logger.warning("Invalid HTTP request received.")
            self.send_400_response("Invalid HTTP request received.")

    def _parse_on(self, rest: bytes) -> None:
        """The body of a request that offers another protocol, and what comes behind it."""
        self.parser = httptools.HttpRequestParser(self)
        self._offers, self._retelling = False, True
        framing = [name + b": " + value for name, value in self.headers if name in FRAMING]
        self.parser.feed_data(b"\r\n".join((b"POST / HTTP/1.1", b"host: the-same", *framing, b"", b"")))
        if rest:
            self._parse(rest)

    def on_message_begin(self) -> None:
        if self._retelling:
            return
        super().on_message_begin()
        self.scope["extensions"] = cast(Any, {LINE: self._line})
        if not self._in_head:
            self._begin_head()

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._retelling or not self._in_head:
            return  # a trailer is no header (RFC 9110, 6.5.1): a key in it lets nobody in
        super().on_header(name, value)

    def send_400_response(self, msg: str) -> None:
        if max(self._head_bytes, self._header_bytes) <= MAX_HEAD_BYTES:
            super().send_400_response(msg)
            return
        self.transport.write(TOO_LARGE)
        self.transport.close()

    def on_headers_complete(self) -> None:
        if self._retelling:
            self._retelling = False
            return
        if self._may_be_large:  # with what came beside it: a body, or the request before
            self._header_bytes = sum(len(name) + len(value) for name, value in self.headers)
            if self._header_bytes > MAX_HEAD_BYTES:
                raise ValueError("the headers are too large")  # the parser stops, and send_400_response is called
        self._end_head()
        self._offers = self.parser.should_upgrade()
        if not self.url.startswith(b"/"):
            self.scope["extensions"] = cast(Any, {LINE: self._line, TARGET_FORM: _authority(self.url)})
        super().on_headers_complete()
        if self.parser.get_http_version() == "1.0":
            self.cycle.__class__ = _UntilClosed

    def on_message_complete(self) -> None:
        if self._offers:
            return
        super().on_message_complete()
        cast(Any, self.scope)["extensions"][WHOLE] = True
        if len(self.pipeline) < MOST_PIPELINED:
            # uvicorn stops reading while it holds much of a body, and reads on when more is asked for, which is never once it is
            # whole: then nobody would hear that the client leaves.
            self.flow.resume_reading()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._reading_timer = self.loop.call_later(READING_PAUSE_S, self.transport.abort)

    def resume_writing(self) -> None:
        self._end_reading()
        super().resume_writing()

    def eof_received(self) -> None:
        # uvicorn closes once all is written, which this client will never take: its call would run on upstream for ever.
        if self.cycle is not None and not self.cycle.response_complete:  # pyright: ignore[reportUnnecessaryComparison]
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_head()
        self._end_reading()
        super().connection_lost(exc)
        self._line.lost = True
        for call in tuple(self._line.leaving):
            call()

    def _end_reading(self) -> None:
        if self._reading_timer is not None:
            self._reading_timer.cancel()
            self._reading_timer = None

    def _begin_head(self) -> None:
        self._in_head, self._head_bytes, self._header_bytes = True, 0, 0
        self._head_timer = self.loop.call_later(HEAD_S, self.transport.close)

    def _end_head(self) -> None:
        self._in_head = False
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None


def _authority(url: bytes) -> bytes:
    """Whom an absolute address names, as a Host header says it; nobody where it is none of ours to serve."""
    named = httptools.parse_url(url)
    if named.userinfo or (named.schema or b"http").lower() not in (b"http", b"https"):
        return b""
    host = named.host or b""
    return (b"[%b]" % host if b":" in host else host) + (b":%d" % named.port if named.port else b"")
