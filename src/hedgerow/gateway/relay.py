"""Brings an answer to the client: keep-alive comments while there is none, then the winner's bytes as they come."""

import asyncio

from hedgerow.clock import Clock
from hedgerow.dialects.encoding import ContentDecoder
from hedgerow.dialects.event_reader import EventReader
from hedgerow.dialects.headers import header_value
from hedgerow.dialects.sse import EventBoundary
from hedgerow.gateway.apis import Api, Trouble
from hedgerow.gateway.client import Client
from hedgerow.gateway.headers import RequestHeaders
from hedgerow.race.stream import Delivery

__all__ = ["EVENT_STREAM", "CutShort", "Vigil", "is_event_stream", "relay_event_stream", "relay_plain"]

EVENT_STREAM = "text/event-stream"
KEEP_ALIVE_S = 15.0
MOST_COMMENTS = 40  # 600 s, the SDKs' own limit for a read
COMMENT = b": still waiting for the first token\n\n"
COMMENT_BETWEEN = b": still waiting\n"  # and a blank line, unless events have had ids


class CutShort(Exception):
    """An answer that cannot be ended well: the client's connection is to be cut, so that it sees that something is missing."""


class Vigil:
    """Keeps a streaming client's connection alive until there is something to say: from 15 s on a comment every 15 s, for ten
    minutes. After that a provider that has hung up on nobody is left to the client's own read time-out.

    The first comment sends status 200, and from then on an error can only be told inside the stream. It ties the answer to no
    attempt.
    """

    def __init__(self, client: Client, headers: RequestHeaders, clock: Clock) -> None:
        self._client, self._headers, self._clock = client, headers, clock
        self._task: asyncio.Task[None] | None = None
        self._left = MOST_COMMENTS
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
        self._left -= 1
        if self._left:
            self._timer = self._clock.call_later(KEEP_ALIVE_S, self._begin)


class _Silence:
    """Says in a stream that has begun that it goes on: a comment after 15 s in which nothing went out, and every 15 s from then
    on. Proxies cut connections that are silent for longer. It stands between two events, never in one.

    Once an event has had an id, OpenAI's and Anthropic's readers take each blank line for the end of an event, an empty one."""

    def __init__(self, client: Client, boundary: EventBoundary, clock: Clock) -> None:
        self._since_s = clock.now()
        self._client, self._boundary, self._clock = client, boundary, clock
        self._writing: asyncio.Task[None] | None = None
        self._comment = COMMENT_BETWEEN + b"\n"
        self._timer = clock.call_later(KEEP_ALIVE_S, self._look)

    def is_broken(self, events: bytes) -> None:
        """These go out now."""
        self._since_s = self._clock.now()
        if b"id:" in events:  # at the beginning of a line; elsewhere it does no harm
            self._comment = COMMENT_BETWEEN

    async def end(self) -> None:
        """Say no more; a comment that is being written is finished first."""
        self._timer.cancel()
        if self._writing is not None:
            await self._writing

    def _look(self) -> None:
        left_s = self._since_s + KEEP_ALIVE_S - self._clock.now()
        if left_s <= 0:
            left_s, self._since_s = KEEP_ALIVE_S, self._clock.now()
            if self._boundary.between_events and (self._writing is None or self._writing.done()):
                self._writing = asyncio.get_running_loop().create_task(self._client.write(self._comment))
        self._timer = self._clock.call_later(left_s, self._look)


def is_event_stream(delivery: Delivery) -> bool:
    """Is the answer a stream of server-sent events? By its label, or by its content: servers mislabel."""
    label = header_value(delivery.headers, b"content-type") or ""
    if label.partition(";")[0].strip().lower() == EVENT_STREAM:
        return True
    attempt = delivery.race.attempts[delivery.race.chosen or 0]
    if (
        not (isinstance(attempt.reader, EventReader) and attempt.reader.streamed is True)
        or attempt.rewritten is not None
    ):
        return False
    return not b"".join(attempt.chunks[:1]).lstrip().startswith(b"[")  # Gemini's array


async def relay_event_stream(client: Client, delivery: Delivery, api: Api, clock: Clock, *, decode: bool) -> None:
    """The body of a stream of events; one that breaks off ends in the API's own error. decode: the client was not told of an
    encoding, so it gets none."""
    encoding = header_value(delivery.headers, b"content-encoding")
    decoder = ContentDecoder(encoding) if decode and encoding else None
    readable = decoder is not None or encoding in (None, "identity")
    boundary, trouble = EventBoundary(), None
    silence = _Silence(client, boundary, clock) if readable else None
    try:
        async for chunk in delivery:
            data = chunk if decoder is None else decoder.decode(chunk)
            if data := boundary.whole(data) if readable else data:
                if silence is not None:
                    silence.is_broken(data)
                await client.write(data)
    except TimeoutError as error:
        trouble = Trouble(504, f"the stream broke off: {error}", "stream_broken")
    except Exception as error:  # told to the client; the event has the details
        trouble = Trouble(502, f"the stream broke off ({type(error).__name__})", "stream_broken")
    finally:
        if silence is not None:
            await silence.end()
    if trouble is None and delivery.race.outcome == "failed" and not _said_so(delivery):
        trouble = Trouble(502, "the stream ended before its end", "stream_cut")
    if trouble is None:
        await client.end(boundary.rest())
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
