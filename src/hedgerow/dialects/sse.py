"""Cuts the bytes of a stream into server-sent events, however the network has chopped them.

Lines end in CR, LF or CRLF; comments are dropped; the last event may lack its blank line. Works on bytes throughout, so
a character split between two reads is no special case.
"""

import re
from typing import NamedTuple

__all__ = ["MAX_EVENT_BYTES", "EventBoundary", "EventDecoder", "ServerSentEvent"]

MAX_EVENT_BYTES = 16 * 1024 * 1024
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
LINE_END = rb"(?>\r\n|\r|\n)"  # atomic: the two bytes of a CRLF are never two line ends
BLANK_LINE = re.compile(LINE_END + LINE_END)


class ServerSentEvent(NamedTuple):
    """One dispatched event: a tuple, since one is made for every chunk of every stream. `name` is ""
    where the stream gave none; `data` are the joined data lines, undecoded."""

    name: str
    data: bytes


class EventBoundary:
    """Lets the bytes of whole events through and holds those of the begun one back, for a stream that is relayed unread: what
    is cut off never reaches a client. An event ends where EventDecoder says that it does. Not shared.

    An event larger than `max_event_bytes` is let through in parts: nothing but memory is gained by holding it.
    """

    __slots__ = ("_held", "_max_bytes", "between_events")

    def __init__(self, *, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self.between_events = True
        self._held = b""
        self._max_bytes = max_event_bytes

    def whole(self, data: bytes) -> bytes:
        """What may go on now."""
        if self._held:
            data, self._held = self._held + data, b""
        if data.endswith((b"\n\n", b"\r\n\r\n", b"\r\r")):
            self.between_events = True
            return data
        end = self._last_end(data)
        if len(data) - end > self._max_bytes:
            self.between_events = False
            return data
        self.between_events = self.between_events or end > 0
        self._held = data[end:]
        return data[:end]

    def rest(self) -> bytes:
        """What is left when a stream has ended well."""
        held, self._held = self._held, b""
        return held

    def _last_end(self, data: bytes) -> int:
        """Where the last whole event ends; 0 if none does."""
        if b"\r" not in data:
            return data.rfind(b"\n\n") + 2 if b"\n\n" in data else 0
        ends = [found.end() for found in BLANK_LINE.finditer(data)]
        return ends[-1] if ends else 0


class EventDecoder:
    """Incremental decoder of one stream; not shared.

    `max_event_bytes` bounds what is held, line ends included. An event larger than that is left out of the result and
    `oversized` says so from then on; the stream is read on after it.
    """

    __slots__ = (
        "_after_cr",
        "_at_start",
        "_data",
        "_held_bytes",
        "_line",
        "_max_bytes",
        "_name",
        "_skipping",
        "oversized",
    )

    def __init__(self, *, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self.oversized = False
        self._max_bytes = max_event_bytes
        self._line: list[
            bytes
        ] = []  # pieces of a line whose end has not come yet: joining at each read would be quadratic
        self._data: list[bytes] = []
        self._name = ""
        self._held_bytes = 0
        self._skipping = False
        self._after_cr = False
        self._at_start = True

    def feed(self, data: bytes) -> list[ServerSentEvent]:
        """The events completed by these bytes, in order."""
        if self._after_cr and data:
            # The CR has already ended its line, so that an event is not held back until the next read shows its LF.
            data = data.removeprefix(b"\n")
            self._after_cr = False
        if not data:
            return []
        self._after_cr = data.endswith(b"\r")
        lines = data.splitlines()
        rest = b"" if data.endswith((b"\n", b"\r")) else lines.pop()
        if lines and self._line:
            lines[0] = self._completed(lines[0])
        events: list[ServerSentEvent] = []
        for line in lines:
            if line:
                self._read_line(line)
            else:
                self._dispatch(events)
        if rest:
            self._hold(rest, self._line, len(rest))
        return events

    def finish(self) -> list[ServerSentEvent]:
        """The event that was left without its blank line when the body ended, if there is one."""
        if self._line:
            self._read_line(self._completed(b""))
        events: list[ServerSentEvent] = []
        self._dispatch(events)
        return events

    def _completed(self, end: bytes) -> bytes:
        line = b"".join((*self._line, end))
        self._held_bytes -= len(line) - len(end)
        self._line.clear()
        return line

    def _read_line(self, line: bytes) -> None:
        if self._at_start:
            self._at_start = False
            line = line.removeprefix(BYTE_ORDER_MARK)
        field, _, value = line.partition(b":")
        if field == b"data":
            self._hold(value.removeprefix(b" "), self._data, len(line) + 1)
        elif field == b"event":
            self._name = value.removeprefix(b" ").decode("utf-8", "replace")
        elif field == b"error":
            # Not in the standard: llama.cpp sends its errors as a field of their own.
            self._name = "error"
            self._hold(value.removeprefix(b" "), self._data, len(line) + 1)

    def _hold(self, piece: bytes, pieces: list[bytes], cost_bytes: int) -> None:
        self._held_bytes += cost_bytes
        if self._held_bytes > self._max_bytes:
            self.oversized = self._skipping = True
        if self._skipping:
            self._data.clear()
            if pieces is self._line:
                # A comment stands for the line that is being skipped, so that its end is not taken for a blank line.
                self._line[:] = [b":"]
            return
        pieces.append(piece)

    def _dispatch(self, events: list[ServerSentEvent]) -> None:
        if self._data and not self._skipping:
            data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
            events.append(ServerSentEvent(name=self._name, data=data))
        self._data.clear()
        self._name = ""
        self._held_bytes = 0
        self._skipping = False
