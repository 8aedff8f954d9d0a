"""Cuts Gemini's answers into JSON objects: events, a JSON array that arrives bit by bit, errors without `data:`, or one body.

Without `alt=sse` a stream is an array whose elements come one by one. In a stream of events Google's front ends put an error
as bare JSON over several lines, which is no event at all.
"""

import re

from hedgerow.dialects.framing import MAX_BODY_BYTES, WHITE_SPACE_AND_MARK, AnswerFraming
from hedgerow.dialects.headers import Headers
from hedgerow.dialects.lenient_json import loads_or_none
from hedgerow.dialects.sse import MAX_EVENT_BYTES, EventDecoder, ServerSentEvent

__all__ = ["ArrayDecoder", "GeminiFraming"]

STRUCTURE = re.compile(rb'["\\{}\[\]]')
FIELD = re.compile(rb"(?:data|event|id|retry|error)(?::|$)|:")
CLOSED = (b"}", b"]", b"}]")


class GeminiFraming:
    """One answer's bytes in, its JSON objects out. Not shared."""

    __slots__ = ("_array", "_framing")

    def __init__(self, headers: Headers) -> None:
        self._framing = AnswerFraming(headers, _Events())
        self._array: ArrayDecoder | None = None

    @property
    def streamed(self) -> bool | None:
        """Is it a stream of events, or an array? None until the first byte."""
        return True if self._array is not None else self._framing.streamed

    @property
    def truncated(self) -> bool:
        """Was something too large to look at?"""
        return self._framing.truncated or (self._array is not None and self._array.oversized)

    @property
    def closed(self) -> bool:
        """Has the array's closing bracket come?"""
        return self._array is not None and self._array.closed

    def feed(self, data: bytes) -> list[ServerSentEvent]:
        """What these bytes complete."""
        if self.streamed is None:
            data = data.lstrip(WHITE_SPACE_AND_MARK)
            if data.startswith(b"["):
                self._array = ArrayDecoder()
        return self._framing.feed(data) if self._array is None else self._array.feed(data)

    def finish(self) -> list[ServerSentEvent]:
        """What was still open when the body ended cleanly."""
        return self._framing.finish() if self._array is None else []


class ArrayDecoder:
    """The elements of a JSON array, each as soon as it is closed. Not shared. An element larger than `max_bytes` ends the
    looking, and `oversized` says so. `closed`: the array has ended."""

    __slots__ = ("_depth", "_escaped", "_held", "_in_text", "_max_bytes", "closed", "oversized")

    def __init__(self, *, max_bytes: int = MAX_BODY_BYTES) -> None:
        self.oversized = self.closed = False
        self._max_bytes = max_bytes
        self._held = bytearray()
        self._depth = 0
        self._in_text = self._escaped = False

    def feed(self, data: bytes) -> list[ServerSentEvent]:
        """The elements completed by these bytes."""
        elements: list[ServerSentEvent] = []
        if self.oversized:
            return elements
        start = 0
        for position, mark in self._marks(data):
            if mark in b"{[":
                self._depth += 1
                if self._depth == 2:
                    start = position
            else:
                self._depth -= 1
                self.closed = self.closed or self._depth == 0
                if self._depth == 1:
                    element = bytes(self._held) + data[start : position + 1]
                    elements.append(ServerSentEvent(name="", data=element))
                    self._held.clear()
        if self._depth >= 2:
            self._held += data[start:]
            if len(self._held) > self._max_bytes:
                self.oversized = True
                self._held.clear()
        return elements

    def _marks(self, data: bytes) -> list[tuple[int, bytes]]:
        """Brackets outside of texts, with their places."""
        marks: list[tuple[int, bytes]] = []
        escaped_at = 0 if self._escaped else -1
        for found in STRUCTURE.finditer(data):
            position, mark = found.start(), found[0]
            if position == escaped_at:
                continue
            if mark == b"\\":
                escaped_at = position + 1 if self._in_text else -1
            elif mark == b'"':
                self._in_text = not self._in_text
            elif not self._in_text:
                marks.append((position, mark))
        self._escaped = escaped_at == len(data) if data else self._escaped
        return marks


class _Events(EventDecoder):
    """Events, and the bare JSON between them."""

    __slots__ = ("_bare", "_bare_bytes")

    def __init__(self) -> None:
        super().__init__()
        self._bare: list[bytes] = []
        self._bare_bytes = 0

    def feed(self, data: bytes) -> list[ServerSentEvent]:
        events = super().feed(data)
        if self._bare and self._bare[-1].rstrip() in CLOSED:
            events += self._bare_json()
        return events

    def finish(self) -> list[ServerSentEvent]:
        return super().finish() + self._bare_json()

    def _read_line(self, line: bytes) -> None:
        if (self._bare or line.startswith((b"{", b"["))) and not FIELD.match(line):
            self._bare_bytes += len(line)
            if self._bare_bytes <= MAX_EVENT_BYTES:
                self._bare.append(line)
            return
        super()._read_line(line)

    def _bare_json(self) -> list[ServerSentEvent]:
        """What has gathered, if it is JSON by now."""
        gathered = b"\n".join(self._bare)
        if not gathered or loads_or_none(gathered) is None:
            return []
        self._bare.clear()
        self._bare_bytes = 0
        return [ServerSentEvent(name="", data=gathered)]
