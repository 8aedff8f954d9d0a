"""Decides whether an answer is a stream of events or one JSON body, and hands out its parts.

Servers mislabel: an error object comes under text/event-stream, a stream under application/json. The label is believed
unless the first byte that is not white space says otherwise; a line that begins as an event's do says more than both.
"""

import re

from hedgerow.dialects.headers import Headers, header_value
from hedgerow.dialects.sse import EventDecoder, ServerSentEvent

__all__ = ["MAX_BODY_BYTES", "AnswerFraming"]

MAX_BODY_BYTES = 256 * 1024 * 1024
WHITE_SPACE_AND_MARK = b" \t\r\n\xef\xbb\xbf"
# No line of JSON begins so: its texts hold no line ends. Some servers put a line of JSON before a stream's first event.
EVENT_LINE = re.compile(rb"[\r\n](?:data|event|error):")
TAIL_BYTES = len(b"\nevent")  # of such a line's beginning, which a read may have cut


class AnswerFraming:
    """Cuts one answer into events; a JSON body is one unnamed event, at the end. Not shared.

    `streamed` is None until the first byte is seen; a body turns out to be a stream where a line begins an event. `truncated`:
    something was larger than the bounds and was left out.
    events: cuts a stream, None = as the standard says.
    """

    __slots__ = ("_body", "_body_bytes", "_content_type", "_events", "_tail", "streamed")

    def __init__(self, headers: Headers, events: EventDecoder | None = None) -> None:
        self.streamed: bool | None = None
        self._content_type = (header_value(headers, b"content-type") or "").lower()
        self._events = events or EventDecoder()
        self._body: list[bytes] = []
        self._body_bytes = 0
        self._tail = b""

    @property
    def truncated(self) -> bool:
        """Was an event or the body too large to look at?"""
        return self._events.oversized or self._body_bytes > MAX_BODY_BYTES

    def feed(self, data: bytes) -> list[ServerSentEvent]:
        """The events completed by these bytes."""
        if self.streamed is None:
            # Some servers send white space while they think: it is not kept.
            data = data.lstrip(WHITE_SPACE_AND_MARK)
            if not data:
                return []
            self.streamed = _is_stream(data[:1], self._content_type)
        if self.streamed:
            return self._events.feed(data)
        if self._turns_out_a_stream(data):
            held, self.streamed, self._body_bytes = b"".join(self._body), True, 0
            self._body.clear()
            return self._events.feed(held + data)
        self._body_bytes += len(data)
        if self._body_bytes > MAX_BODY_BYTES:
            self._body.clear()
        else:
            self._body.append(data)
        return []

    def finish(self) -> list[ServerSentEvent]:
        """What was still open when the body ended cleanly."""
        if self.streamed:
            return self._events.finish()
        if not self._body:
            return []
        body = b"".join(self._body)
        self._body.clear()
        return [ServerSentEvent(name="", data=body)]

    def _turns_out_a_stream(self, data: bytes) -> bool:
        """Has a line begun that belongs to an event? What was too large to keep stays a body."""
        searched, self._tail = self._tail + data, (self._tail + data)[-TAIL_BYTES:]
        return self._body_bytes <= MAX_BODY_BYTES and EVENT_LINE.search(searched) is not None


def _is_stream(first: bytes, content_type: str) -> bool:
    if first in (b"{", b"["):
        return False
    if first in (b":", b"d", b"e", b"i", b"r"):  # a comment, data, event or error, id, retry
        return True
    return "json" not in content_type
