"""A client's side of one exchange, over ASGI: its request is read within limits, its answer written, its leaving noticed."""

import asyncio
from collections.abc import Awaitable, Callable, Generator, Mapping, MutableMapping
from contextlib import contextmanager
from typing import Any

from hedgerow.gateway.apis import Trouble
from hedgerow.gateway.headers import RequestHeaders
from hedgerow.gateway.line import LINE, TARGET_FORM, WHOLE, Line

__all__ = ["Client", "Gone", "Receive", "Refused", "Scope", "Send", "too_large"]

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

DISCARD_BYTES, DISCARD_S = 64_000_000, 5.0
BODY_PAUSE_S = 30.0  # a client that sends nothing of its body for so long
MOST_STATUS = 599
WITHOUT_BODY = (204, 304)


class Refused(Exception):
    """A request that goes no further."""

    def __init__(self, trouble: Trouble, headers: RequestHeaders = ()) -> None:
        super().__init__(trouble.message)
        self.trouble, self.headers = trouble, headers


class Gone(Exception):
    """The client has left."""


class Client:
    """For one task, which reads the request and then writes the answer. `names`: of its headers. `authority`: whom its address
    names, if that is more than a path. `answering`: the answer has been begun; `gone`: it has left; `read_whole`: nothing is
    left of its request; `kept`: what has been written of the body, if that is to be remembered. `always`: headers of every
    answer it gets."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.method: str = scope["method"]
        self.http_version: str = scope["http_version"]
        self.authority: bytes | None = scope["extensions"].get(TARGET_FORM)
        self.headers: RequestHeaders = scope["headers"]
        self.names = frozenset([name for name, _ in self.headers])
        self.raw_path: bytes = scope["raw_path"]
        self.raw_query: bytes = scope["query_string"]
        self.answering = self.gone = self.read_whole = False
        self.kept: list[bytes] | None = None
        self.always: RequestHeaders = ()
        self._receive, self._send = receive, send
        self._done = self._asked = False  # asked: for the body
        self._extensions: Mapping[str, Any] = scope["extensions"]
        self._line: Line = self._extensions[LINE]
        self._head: Message | None = None  # begun, but not sent yet

    async def body(self, limit_bytes: int) -> bytes:
        """The whole body. Raises Refused for one that is too large, or too slow, and Gone."""
        told = next((value for name, value in self.headers if name == b"content-length"), b"0")
        if told.isdigit() and int(told) > limit_bytes:
            raise too_large(limit_bytes)
        chunks: list[bytes] = []
        size, more, self._asked = 0, True, True
        while more:
            message = await (self._receive() if WHOLE in self._extensions else self._more())
            if message["type"] == "http.disconnect":
                raise Gone
            chunk: bytes = message.get("body", b"")
            size, more = size + len(chunk), message.get("more_body", False)
            if size > limit_bytes:
                raise too_large(limit_bytes)
            chunks.append(chunk)
        self.read_whole = True
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    async def _more(self) -> Message:
        """The next of a body that is still coming."""
        try:
            async with asyncio.timeout(BODY_PAUSE_S):
                return await self._receive()
        except TimeoutError:
            trouble = Trouble(408, f"nothing came of the body for {BODY_PAUSE_S:g} s", "request_timeout")
            raise Refused(trouble) from None

    async def discard(self) -> None:
        """Take what is still coming of a request that is refused, within limits: a client that is cut off while it sends would
        never read why. One that waits to be told to send is not told."""
        if not self._asked and b"expect" in self.names:
            return
        size, until_s = 0, asyncio.get_running_loop().time() + DISCARD_S
        try:
            async with asyncio.timeout_at(until_s):
                while not self.read_whole and not self.gone and size < DISCARD_BYTES:
                    message = await self._receive()
                    self.gone = message["type"] == "http.disconnect"
                    self.read_whole = not message.get("more_body", False)
                    size += len(message.get("body", b""))
        except TimeoutError:
            pass

    @contextmanager
    def served_by(self, task: asyncio.Task[Any]) -> Generator[None]:
        """Whoever works for it is cancelled if it leaves meanwhile."""

        def leave() -> None:
            if not self._done:
                self.gone = True
                task.cancel()

        self._line.leaving.add(leave)
        if self._line.lost:  # while its request was looked at
            leave()
        try:
            yield
        finally:
            self._line.leaving.discard(leave)

    def begin(self, status: int, headers: RequestHeaders) -> None:
        """Status and headers; they go out with the first of the body. Once. uvicorn knows no status below 100 or beyond 599: SDKs
        take the latter for errors of the server, as they do 500."""
        self.answering, status = True, status if 100 <= status <= MOST_STATUS else 500
        if status in WITHOUT_BODY:  # some tell the length of the body that they do not send
            headers = [pair for pair in headers if pair[0] != b"content-length"]
        self._head = {"type": "http.response.start", "status": status, "headers": [*headers, *self.always]}

    async def write(self, data: bytes) -> None:
        """More of the body; waits while the client is slow to take it."""
        if self.kept is not None:
            self.kept.append(data)
        await self._say({"type": "http.response.body", "body": data, "more_body": True})

    async def end(self, data: bytes = b"") -> None:
        """The last of the body."""
        if self.kept is not None:
            self.kept.append(data)
        self._done = True  # before it is sent: then the server tells of the end as if the client had left
        await self._say({"type": "http.response.body", "body": data})

    async def send_head(self) -> None:
        """Not to keep it back: nothing of the body is at hand, or will come."""
        if self._head is not None:
            head, self._head = self._head, None
            await self._send(head)

    async def _say(self, message: Message) -> None:
        if self._head is None:
            await self._send(message)
            return
        head, self._head = self._head, None
        self._line.hold()
        try:
            await self._send(head)
            await self._send(message)
        finally:
            self._line.release()


def too_large(limit_bytes: int) -> Refused:
    """For a body beyond `max_body`."""
    return Refused(Trouble(413, f"the body has more than {limit_bytes} bytes", "body_too_large"))
