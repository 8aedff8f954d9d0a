"""A scripted carrier on a ManualClock: what each attempt does is written down, time jumps, nothing is mocked."""

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field

import orjson

from hedgerow.clock import ManualClock
from hedgerow.race.upstream import ConnectionNotes
from hedgerow.values.failure import Failure, FailureKind
from hedgerow.values.request import StreamedRequest, WireRequest

JSON = ((b"content-type", b"application/json"),)
SSE = ((b"content-type", b"text/event-stream"),)


def completion(text: str) -> bytes:
    """A whole chat completion."""
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": text},
        "finish_reason": "stop" if text else "length",
    }
    return orjson.dumps({"id": "c", "object": "chat.completion", "model": "m", "choices": [choice]})


def frame(text: str) -> bytes:
    """One streamed content token."""
    return b"data: " + orjson.dumps({"choices": [{"index": 0, "delta": {"content": text}}]}) + b"\n\n"


ROLE = b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}\n\n'
DONE = b"data: [DONE]\n\n"
OVERLOADED = b'data: {"error":{"type":"overloaded_error","message":"busy"}}\n\n'


def request(*, stream: bool = False, **fields: object) -> WireRequest:
    """A chat request."""
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": stream, **fields}
    return WireRequest(method="POST", path="/v1/chat/completions", headers=JSON, body=orjson.dumps(body))


@dataclass
class Does:
    """What one attempt does: headers after `headers_s`, then each chunk after its own pause, then the end, or an error.

    `clings_s`: cancelled, it goes on for so long before it lets go. `pool_s`: it waits so long for a connection.
    """

    headers_s: float = 0.1
    status: int = 200
    chunks: Sequence[tuple[float, bytes]] = ()
    headers: tuple[tuple[bytes, bytes], ...] = JSON
    error: Exception | None = None
    clings_s: float = 0.0
    pool_s: float = 0.0


def answers(text: str, after_s: float, **more: object) -> Does:
    """A whole answer after so many seconds."""
    return Does(headers_s=after_s, chunks=[(0.0, completion(text))], **more)  # type: ignore[arg-type]


def streams(*chunks: tuple[float, bytes], **more: object) -> Does:
    """A stream whose headers come at once."""
    return Does(headers_s=0.0, chunks=chunks, headers=SSE, **more)  # type: ignore[arg-type]


@dataclass
class Carrier:
    """Call: each attempt takes the next script. Notes what was opened, closed and read."""

    clock: ManualClock
    scripts: Sequence[Does]
    opened: list[int] = field(default_factory=list)
    closed: list[int] = field(default_factory=list)
    bodies: list[bytes | None] = field(default_factory=list)
    tasks_seen: list[int] = field(default_factory=list)

    async def open(self, target: int, notes: ConnectionNotes, as_stream: StreamedRequest | None) -> "Response":
        number = len(self.opened)
        self.bodies.append(None if as_stream is None else as_stream.body)
        self.opened.append(target)
        self.tasks_seen.append(len(asyncio.all_tasks()))
        does = self.scripts[number]
        try:
            await sleep(self.clock, does.pool_s)
            notes.connected(reused=False)
            await sleep(self.clock, does.headers_s)
            if does.error is not None and not does.chunks:
                raise does.error
        except asyncio.CancelledError:
            await sleep(self.clock, does.clings_s)
            self.closed.append(number)
            raise
        return Response(self, number, does)

    def failure_of(self, error: Exception) -> Failure:
        kind = FailureKind.TRANSIENT if isinstance(error, ConnectionError) else FailureKind.LOCAL
        return Failure(kind=kind, error=type(error).__name__)

    def attempt_time_out(self, message: str) -> Exception:
        return TimeoutError(message)

    def deadline_error(self, message: str) -> Exception:
        return TimeoutError(f"deadline: {message}")


class Response:
    """UpstreamResponse by script."""

    def __init__(self, carrier: Carrier, number: int, does: Does) -> None:
        self.status, self.headers = does.status, does.headers
        self._carrier, self._number, self._does = carrier, number, does
        self._left = list(does.chunks)
        self._break = asyncio.get_running_loop().create_future()

    async def read(self) -> bytes:
        if not self._left:
            if self._does.error is not None:
                raise self._does.error
            return b""
        pause_s, chunk = self._left.pop(0)
        try:
            await first_of(sleep(self._carrier.clock, pause_s), self._break)
        except asyncio.CancelledError:
            await sleep(self._carrier.clock, self._does.clings_s)
            raise
        return chunk

    def grew(self, more_bytes: int) -> None:
        """There is no limit."""

    async def close(self) -> None:
        if self._number not in self._carrier.closed:
            self._carrier.closed.append(self._number)
        if not self._break.done():
            self._break.set_result(None)


async def first_of(wait: Awaitable[None], broken: "asyncio.Future[None]") -> None:
    """Wait, unless the connection is closed under the reader."""
    task = asyncio.ensure_future(wait)
    try:
        await asyncio.wait([task, broken], return_when=asyncio.FIRST_COMPLETED)
    finally:
        if not task.done():
            task.cancel()
    if broken.done():
        raise ConnectionError("closed under the reader")


async def sleep(clock: ManualClock, seconds: float) -> None:
    """Sleep on the manual clock."""
    if seconds <= 0:
        return
    woken = asyncio.get_running_loop().create_future()
    timer = clock.call_later(seconds, lambda: woken.done() or woken.set_result(None))
    try:
        await woken
    finally:
        timer.cancel()


async def settle(turns: int = 30) -> None:
    """Let everything that can run, run."""
    for _ in range(turns):
        await asyncio.sleep(0)


async def pass_time(clock: ManualClock, seconds: float, step_s: float = 0.05) -> None:
    """Move the clock on in small steps, letting tasks run between them."""
    await settle()
    for _ in range(round(seconds / step_s)):
        clock.advance(step_s)
        await settle()
