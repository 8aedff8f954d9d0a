"""One HTTP/1.1 connection to a target, and the answer that comes over it. llhttp reads it (httptools); nothing is decoded, and
nothing is added to what is sent.

Errors are those of httpx2, so that an attempt's error has the same name as in the library: RemoteProtocolError for what is no
HTTP or breaks off, ReadError for a connection that is reset.
"""

import asyncio
from collections.abc import Sequence
from typing import Protocol

import httptools
import httpx2

from hedgerow.gateway.answer_heads import plain_head, whole_head
from hedgerow.gateway.held import Held

__all__ = ["Answer", "Connection", "Owner"]

MAX_HEAD_BYTES = 262_144  # of an answer
AHEAD_BYTES = 262_144  # of a body that nobody has read yet: above that its target has to wait
PIECE_BYTES = 262_144  # of a large request: between them others have their turn
LENGTH_TOLD = frozenset({b"content-length", b"transfer-encoding"})


class Owner(Protocol):
    """Whose connection it is: told after each request what has become of it."""

    def free(self, connection: "Connection") -> None:
        """It may carry the next request."""

    def gone(self, connection: "Connection", *, cut: bool) -> None:
        """It carries no other; can be told twice. cut: we closed it, in the middle of a request or of its answer."""


class Answer:
    """UpstreamResponse: what comes back for one request, as it comes. `status` is 0 until its head is there. `held`: who counts
    what is read of it; None once it is delivered as it comes."""

    __slots__ = ("_chunks", "_connection", "_error", "_held", "_taken", "_waiter", "headers", "held", "status")

    def __init__(self, connection: "Connection") -> None:
        self.status = 0
        self.headers: Sequence[tuple[bytes, bytes]] = ()
        self._connection: Connection | None = connection  # None: nothing more will come
        self._chunks: list[bytes] = []
        self.held: Held | None = None
        self._held = self._taken = 0
        self._error: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None

    async def read(self) -> bytes:
        """The next bytes of the body; b"" at its end. Raises RemoteProtocolError or ReadError when it breaks off, after the last
        byte that came."""
        while not self._chunks:
            if self._error is not None:
                raise self._error
            if self._connection is None:
                return b""
            await self.changed()
        chunks, size, self._chunks, self._held = self._chunks, self._held, [], 0
        if self.held is not None:
            self._taken += size
            self.held.take(size, self._taken, error=self.status >= 400)
        if self._connection is not None:
            self._connection.read_on()
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    def grew(self, more_bytes: int) -> None:
        """It is held decoded, too."""
        if self.held is not None:
            self._taken += more_bytes
            self.held.take(more_bytes, self._taken, error=self.status >= 400)

    async def close(self) -> None:
        """Give it up: cuts the connection unless the whole answer has come. Idempotent."""
        if self._connection is not None:
            self._connection.cut()

    @property
    def pending(self) -> bool:
        """Is it still to begin?"""
        return not self.status and self._connection is not None

    async def begin(self) -> None:
        """Wait for the head. Raises as read()."""
        while self.pending:
            await self.changed()
        if not self.status and self._error is not None:
            raise self._error

    async def changed(self) -> None:
        """Wait for the next thing to happen. For one task."""
        self._waiter = waiter = asyncio.get_running_loop().create_future()
        try:
            await waiter
        finally:
            self._waiter = None

    def wake(self) -> None:
        if (waiter := self._waiter) is not None and not waiter.done():
            waiter.set_result(None)

    def feed(self, data: bytes) -> bool:
        """More of the body. True: enough for now."""
        self._chunks.append(data)
        self._held += len(data)
        return self._held > AHEAD_BYTES

    def end(self, error: Exception | None = None) -> None:
        """Nothing more will come."""
        self._connection, self._error = None, error
        self.wake()


class Connection(asyncio.Protocol):
    """One at a time: ask(), then read the answer to its end, which frees it, or close the answer. Belongs to one loop."""

    _transport: asyncio.Transport

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._parser = httptools.HttpResponseParser(self)
        self._answer: Answer | None = None
        self._headers: list[tuple[bytes, bytes]] = []
        self._in_head = self._complete = self._surplus = self._lenient = False
        self._head: list[bytes] = []
        self._sent = self._keeps = self._without_body = False
        self._head_bytes = 0
        self._reading, self._writable = True, True

    @property
    def idle(self) -> bool:
        """Does it stand, with nothing under way?"""
        return self._answer is None and not self._transport.is_closing()

    @property
    def heard_nothing(self) -> bool:
        """Has no byte come of an answer to the last request?"""
        return self._in_head and not self._head_bytes

    async def ask(self, head: bytes, body: bytes, *, without_body: bool) -> Answer:
        """Send a request and wait for the head of its answer. without_body: of the answer, whatever its head says (HEAD).

        Raises RemoteProtocolError or ReadError. Cancelled, it cuts the connection."""
        answer = self._answer = Answer(self)
        self._headers, self._head, self._head_bytes, self._in_head = [], [], 0, True
        self._complete = self._surplus = self._sent = self._keeps = False
        self._without_body = without_body
        try:
            await self._send(head, body, answer)
            await answer.begin()
        except asyncio.CancelledError:
            await answer.close()
            raise
        return answer

    def cut(self) -> None:
        """End it now, whatever is under way."""
        self._end(httpx2.ReadError("the connection was closed on our side"), cut=True)

    def read_on(self) -> None:
        """There is room for more."""
        if not self._reading and not self._transport.is_closing():
            self._reading = True
            self._transport.resume_reading()

    async def _send(self, head: bytes, body: bytes, answer: Answer) -> None:
        """Some answer before all is sent, a refusal as a rule; the rest is kept back then."""
        if len(body) <= PIECE_BYTES:
            self._transport.write(head + body)
        else:
            self._transport.write(head)
            for start in range(0, len(body), PIECE_BYTES):
                if not answer.pending:
                    return
                self._transport.write(body[start : start + PIECE_BYTES])
                await asyncio.sleep(0)
                while not self._writable and answer.pending:
                    await answer.changed()
        self._sent = True

    def _end(self, error: Exception | None, *, cut: bool = False) -> None:
        """No other request will go over it."""
        answer, self._answer = self._answer, None
        self._transport.abort()
        if answer is not None:
            answer.end(error)
            self._owner.gone(self, cut=cut)

    # What the loop tells.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        answer = self._answer
        if answer is None:  # said unasked: it would be taken for the answer to the next request
            self._transport.abort()
            return
        if self._in_head:
            self._head_bytes += len(data)
            self._head.append(data)
        try:
            if self._lenient and self._in_head:
                self._parse_leniently(b"".join(self._head))
            else:
                self._parse(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            if not self._complete:
                self._end(httpx2.RemoteProtocolError(f"the answer is not HTTP/1.1 as it should be: {error}"))
                return
            self._surplus = True
        if self._complete:
            self._settle(answer)
            return
        if not self._in_head:
            answer.wake()
        elif self._head_bytes > MAX_HEAD_BYTES:
            self._end(httpx2.RemoteProtocolError(f"the answer's head has more than {MAX_HEAD_BYTES} bytes"))

    def _parse(self, data: bytes) -> None:
        """Raises HttpParserError for what nobody would read."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            if self._lenient or not self._in_head or not b"".join(self._head).startswith(b"HTTP/1."):
                raise
            self._lenient = True
            self._parse_leniently(b"".join(self._head))

    def _parse_leniently(self, data: bytes) -> None:
        """A head that is not as it should be, as soon as all of it is there; interim answers may come before it."""
        start, self._headers = 0, []
        self._parser = httptools.HttpResponseParser(self)
        while self._in_head and (end := whole_head(data, start)) is not None:
            plain = plain_head(data[start:end])
            if plain is None:
                raise httptools.HttpParserError("it tells two lengths")
            self._parser.feed_data(plain)
            start = end
        if not self._in_head and start < len(data):
            self._parser.feed_data(data[start:])

    def _settle(self, answer: Answer) -> None:
        """The answer is whole."""
        self._answer = None
        answer.end()
        if self._keeps and self._sent and not self._surplus and not self._lenient and not self._transport.is_closing():
            self.read_on()
            self._owner.free(self)
        else:
            self._transport.close()
            self._owner.gone(self, cut=False)

    def connection_lost(self, exc: Exception | None) -> None:
        answer, self._answer = self._answer, None
        if answer is not None:
            answer.end(self._broken(answer, exc))
        self._owner.gone(self, cut=False)

    def _broken(self, answer: Answer, exc: Exception | None) -> Exception | None:
        """None for an answer that ends with its connection, as those do whose length was not told."""
        if exc is not None:
            return httpx2.ReadError(f"the connection broke: {exc}")
        if answer.status and not any(name.lower() in LENGTH_TOLD for name, _ in answer.headers):
            return None
        what = "in the middle of the answer" if answer.status else "without an answer"
        return httpx2.RemoteProtocolError(f"the connection was closed {what}")

    def pause_writing(self) -> None:
        self._writable = False

    def resume_writing(self) -> None:
        self._writable = True
        if self._answer is not None:
            self._answer.wake()

    # What the parser tells.

    def on_message_begin(self) -> None:
        self._surplus |= self._complete

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:  # else it is a trailer's
            self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        if not self._in_head:
            return
        status = self._parser.get_status_code()
        if status < 100:
            raise ValueError(f"{status:03} is no status")  # the parser stops (RFC 9110, 15: 100 to 599)
        if status < 200:  # an interim answer (100, 103)
            self._headers.clear()
            return
        self._in_head, self._complete = False, self._without_body
        if not self._lenient:
            self._head = []
        if self._answer is not None:
            self._answer.status, self._answer.headers = status, self._headers

    def on_body(self, data: bytes) -> None:
        if self._answer is not None and not self._complete and self._answer.feed(data) and self._reading:
            self._reading = self._transport.is_closing()  # which cannot be told to pause any more
            if not self._reading:
                self._transport.pause_reading()

    def on_message_complete(self) -> None:
        if not self._in_head and not self._complete:
            self._complete, self._keeps = True, self._parser.should_keep_alive()
