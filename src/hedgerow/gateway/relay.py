"""Brings an answer to the client: keep-alive comments while there is none, then the winner's bytes as they come."""

import asyncio

from hedgerow.clock import Clock
from hedgerow.dialects.encoding import ContentDecoder
from hedgerow.dialects.headers import header_value
from hedgerow.gateway.apis import Api, Trouble
from hedgerow.gateway.client import Client
from hedgerow.gateway.headers import RequestHeaders
from hedgerow.race.stream import Delivery

__all__ = ["EVENT_STREAM", "CutShort", "Frames", "Vigil", "relay_event_stream", "relay_plain"]

EVENT_STREAM = "text/event-stream"
KEEP_ALIVE_S = 15.0
COMMENT = b": still waiting for the first token\n\n"
MOST_HELD_BYTES = 1_048_576


class CutShort(Exception):
    """An answer that cannot be ended well: the client's connection is to be cut, so that it sees that something is missing."""


class Vigil:
    """Keeps a streaming client's connection alive until there is something to say: from 15 s on a comment every 15 s.

    The first comment sends status 200, and from then on an error can only be told inside the stream. It ties the answer to no
    attempt.
    """

    def __init__(self, client: Client, headers: RequestHeaders, clock: Clock) -> None:
        self._client, self._headers, self._clock = client, headers, clock
        self._task: asyncio.Task[None] | None = None
        self._timer = clock.call_later(KEEP_ALIVE_S, self._begin)

    async def end(self) -> None:
        """There is an answer, or none will come. A comment that is being written is finished first."""
        if self._task is not None:
            await self._task
        self._timer.cancel()

    def _begin(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._comment())

    async def _comment(self) -> None:
        if not self._client.answering:
            self._client.begin(200, self._headers)
        await self._client.write(COMMENT)
        self._timer = self._clock.call_later(KEEP_ALIVE_S, self._begin)


class Frames:
    """Lets whole events of a stream through and holds the begun one back, so that one that is cut off never reaches a client,
    whose SDK would stumble over it before the error that follows."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held = b""

    def whole(self, chunk: bytes) -> bytes:
        """What may go on now."""
        if self._held:
            chunk, self._held = self._held + chunk, b""
        if chunk.endswith((b"\n\n", b"\r\n\r\n")):
            return chunk
        end = max(chunk.rfind(b"\n\n") + 2, chunk.rfind(b"\r\n\r\n") + 4 if b"\r" in chunk else 0)
        if end < 2 or len(chunk) - end > MOST_HELD_BYTES:
            end = len(chunk) if len(chunk) > MOST_HELD_BYTES else 0
        self._held = chunk[end:]
        return chunk[:end]

    def rest(self) -> bytes:
        """What is left when a stream has ended well."""
        held, self._held = self._held, b""
        return held


async def relay_event_stream(client: Client, delivery: Delivery, api: Api, *, decode: bool) -> None:
    """The body of a stream of events; one that breaks off ends in the API's own error. decode: the client was not told of an
    encoding, so it gets none."""
    encoding = header_value(delivery.headers, b"content-encoding")
    decoder = ContentDecoder(encoding) if decode and encoding else None
    readable = decoder is not None or encoding in (None, "identity")
    frames, trouble = Frames(), None
    try:
        async for chunk in delivery:
            data = chunk if decoder is None else decoder.decode(chunk)
            if data := frames.whole(data) if readable else data:
                await client.write(data)
    except TimeoutError as error:
        trouble = Trouble(504, f"the stream broke off: {error}", "stream_broken")
    except Exception as error:  # told to the client; the event has the details
        trouble = Trouble(502, f"the stream broke off ({type(error).__name__})", "stream_broken")
    if trouble is None and delivery.race.outcome == "failed" and not _said_so(delivery):
        trouble = Trouble(502, "the stream ended before its end", "stream_cut")
    if trouble is None:
        await client.end(frames.rest())
    elif readable:
        await client.end(api.error_frames(api.error_body(trouble), delivery.race.order.facts.dialect))
    else:
        raise CutShort(trouble.message)


async def relay_plain(client: Client, delivery: Delivery) -> None:
    """Any other body. Raises CutShort if it breaks off."""
    if delivery.whole:
        await client.end(b"".join([chunk async for chunk in delivery]))
        return
    try:
        async for chunk in delivery:
            await client.write(chunk)
    except Exception as error:
        raise CutShort(str(error)) from error
    await client.end()


def _said_so(delivery: Delivery) -> bool:
    """Did the provider itself put an error into the stream, which the client has got?"""
    race = delivery.race
    reader = race.attempts[race.chosen or 0].reader
    return reader is not None and reader.facts.failure is not None
