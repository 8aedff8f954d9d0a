"""From an Answer to the steps of a provider: bytes to send, and what to wait for before the next."""

import json
import zlib
from dataclasses import dataclass
from importlib.util import find_spec

from tests.never_worse.apis import Event, Spoken, spoken
from tests.never_worse.scenario import Answer

__all__ = ["Close", "Hold", "Pause", "Send", "Step", "UntilSeen", "steps_of"]

REASONS = {200: "OK", 201: "Created", 302: "Found", 400: "Bad Request", 404: "Not Found", 429: "Too Many Requests"}
PAGE = b"<html><head><title>Bad gateway</title></head>\r\n<body>Bad gateway</body></html>\r\n"
LATE_S = 3.0
LATE_ERROR = {"type": "error", "error": {"type": "overloaded_error", "message": "late"}}
MORE = {  # behind the end of a stream
    "more_bytes": b": more\n\n",
    "more_events": b'event: future_event\ndata: {"type": "future_event"}\n\n',
    "more_error": b"event: error\ndata: " + json.dumps(LATE_ERROR).encode() + b"\n\n",
}


@dataclass(frozen=True)
class Send:
    """Bytes on the connection."""

    data: bytes


@dataclass(frozen=True)
class UntilSeen:
    """Go on when the client has seen so many pieces of content."""

    pieces: int


@dataclass(frozen=True)
class Pause:
    """So many seconds of script time pass; a rival that is sent meanwhile is answered first."""

    seconds: float


@dataclass(frozen=True)
class Hold:
    """Nothing more comes until the client leaves; `passes`: meanwhile script time does."""

    passes: bool = False


@dataclass(frozen=True)
class Close:
    """The connection ends; `reset`: with RST."""

    reset: bool = False


Step = Send | UntilSeen | Pause | Hold | Close


def steps_of(answer: Answer, dialect: str, *, streamed: bool) -> list[Step]:
    """streamed: the request asks for a stream."""
    said = spoken(dialect, answer.finish, odd=answer.body == "odd_values", late_usage=answer.end == "late_usage")
    pieces, label = _pieces(answer, said, streamed=streamed and answer.status < 300)
    pieces = _cut(answer, pieces)
    coded, framed = _Coding(answer.coding), _Framing(answer, sum(map(len, _all(pieces, answer.coding))))
    steps: list[Step] = []
    if answer.time == "silent_head":
        return [Hold(passes=True)]
    if answer.time == "late_head":
        steps.append(Pause(LATE_S))
    head = framed.head(answer, label)
    if answer.cut == "head":
        return [*steps, Send(head[: len(head) // 2]), *_close(answer)]
    steps.append(Send(head))
    seen = 0
    for number, (data, content) in enumerate(pieces):
        last = number == len(pieces) - 1
        if number == 0 and answer.time == "late_content":
            steps.append(Pause(LATE_S))
        if number == len(pieces) // 2 and number and answer.time in ("late_middle", "silence"):
            steps += [Pause(LATE_S)] if answer.time == "late_middle" else [Hold(passes=True)]
        if answer.time == "pings" and streamed and answer.status < 300 and answer.body == "answer":
            steps.append(Send(framed.chunk(coded.take(b": ping\n\n"))))
        out = framed.chunk(coded.take(data, last=last))
        if answer.cut == "size" and last and len(out) > 4:
            return [*steps, Send(out[:2]), *_close(answer)]
        if out:
            steps.append(Send(out))
        seen += content
        if content and answer.time == "stepwise" and answer.coding == "identity":
            steps.append(UntilSeen(seen))
    return [*steps, *_end(answer, framed, streamed=streamed)]


def _pieces(answer: Answer, said: Spoken, *, streamed: bool) -> tuple[list[tuple[bytes, int]], str]:
    """What is sent of the body, each with the number of pieces of content in it, and the right label for it."""
    if answer.status in (204, 302):
        return [], ""
    if answer.status >= 300 or answer.body in ("error_object", "empty", "html", "text", "other_json"):
        kind = answer.body if answer.body in ("empty", "html", "text", "other_json") else "error"
        body, label = {
            "error": (json.dumps(said.error).encode(), "application/json"),
            "empty": (b"", "application/json"),
            "html": (PAGE, "text/html"),
            "text": (b"upstream connect error", "text/plain"),
            "other_json": (b'{"detail": "not here"}', "application/json"),
        }[kind]
        return ([(body, 0)] if body else []), label
    if not streamed:
        # A provider that fails while it streams has no whole answer either.
        whole = json.dumps(said.error if answer.body == "error_frame" else said.whole).encode()
        return [(whole, 1)], "application/json"
    events = [*said.events]
    if answer.body == "error_frame":
        events = [*events[:2], said.error_event]
    elif answer.body == "odd_event":
        events[2] = Event('{"half": ')
    ended = said.end_mark is not None and answer.end != "no_mark" and answer.body != "error_frame"
    if ended and said.end_mark is not None:
        events.append(said.end_mark)
    written = [(_written(event, answer.lines, number), int(event.content)) for number, event in enumerate(events)]
    if answer.lines == "bom":
        written[0] = (b"\xef\xbb\xbf" + written[0][0], written[0][1])
    if answer.lines == "no_final":
        written[-1] = (written[-1][0].rstrip(b"\r\n"), written[-1][1])
    return written, "text/event-stream"


def _written(event: Event, lines: str, number: int) -> bytes:
    end = {"crlf": "\r\n", "cr": "\r", "mixed": ("\n", "\r\n", "\r")[number % 3]}.get(lines, "\n")
    space = "" if lines == "tight" else " "
    data = [event.text]
    if lines == "several" and event.text.startswith("{"):
        data = event.text.replace(", ", ",\n", 1).split("\n")
    parts = [f"event:{space}{event.name}"] if event.name else []
    if lines == "comments":
        parts.insert(0, ": a comment")
    if lines == "ids":
        parts = [f"id: {number}", "retry: 1000", *parts]
    parts += [f"data:{space}{line}" for line in data]
    return (end.join(parts) + end + end).encode()


def _cut(answer: Answer, pieces: list[tuple[bytes, int]]) -> list[tuple[bytes, int]]:
    if not pieces or answer.cut in ("whole", "head", "size"):
        return pieces
    if answer.cut == "before_mark":
        return pieces[:-1]
    middle = len(pieces) // 2
    data, content = pieces[middle]
    if answer.cut == "between":
        return pieces[:middle]
    at = len(data) - 1 if answer.cut == "crlf" else len(data) // 2
    return [*pieces[:middle], (data[:at], content if answer.cut == "crlf" else 0)]


class _Coding:
    """The content coding of one body, piece by piece."""

    def __init__(self, name: str) -> None:
        self._name, self._held = name, b""
        kinds = {"gzip": 31, "deflate": 15}
        self._deflate = zlib.compressobj(wbits=kinds[name]) if name in kinds else None

    def take(self, data: bytes, *, last: bool = False) -> bytes:
        if self._deflate is not None:
            end = zlib.Z_FINISH if last else zlib.Z_SYNC_FLUSH
            return self._deflate.compress(data) + self._deflate.flush(end)
        if self._name in ("br", "zstd"):  # no coder at hand, and no client asked for it: bytes that nobody can read
            return bytes(byte ^ 0xA5 for byte in data)
        return data


def _coding_name(coding: str) -> str:
    """What an answer says of its coding. Where a package for it is installed, httpx2 reads it and classic httpx does not, so that
    the bare client of the scenarios would no longer be the one meant: then by a name that nobody reads."""
    packages = {"br": ("brotli", "brotlicffi"), "zstd": ("backports", "compression")}
    return "lz4" if any(find_spec(package) for package in packages.get(coding, ())) else coding


def _all(pieces: list[tuple[bytes, int]], coding: str) -> list[bytes]:
    coded = _Coding(coding)
    return [coded.take(data, last=number == len(pieces) - 1) for number, (data, _) in enumerate(pieces)]


class _Framing:
    """How a body is carried. length: of the coded body."""

    def __init__(self, answer: Answer, length: int) -> None:
        self.kind, self._length = answer.framing, length
        bodiless = answer.status in (204, 304) or answer.status < 200
        if bodiless:
            self.kind = "none"
        elif answer.time == "pings" and self.kind in ("length", "both", "duplicate"):
            self.kind = "chunked"
        self.chunked = self.kind in ("chunked", "extensions", "trailers", "lf_head", "folded")

    def head(self, answer: Answer, label: str) -> bytes:
        lines = [f"HTTP/1.1 {answer.status} {REASONS.get(answer.status, 'Said')}"]
        label = label if answer.label == "right" or not label else answer.label
        if label and answer.label != "missing":
            lines.append(f"content-type: {label}")
        if answer.coding != "identity" and self.kind != "none":
            lines.append(f"content-encoding: {_coding_name(answer.coding)}")
        if answer.status == 302:
            lines.append("location: http://127.0.0.1:9/elsewhere")
        if answer.retry_after != "none" and answer.status >= 400:
            lines.append(f"retry-after: {'0' if answer.retry_after == 'now' else 'Thu, 01 Jan 1970 00:00:00 GMT'}")
        lines += {
            "length": [f"content-length: {self._length}"],
            "both": [f"content-length: {self._length}"],
            "duplicate": [f"content-length: {self._length}"] * 2,
            "folded": ["x-folded: one\r\n two"],
            "trailers": ["trailer: x-after"],
        }.get(self.kind, [])
        if self.chunked:
            lines.append("transfer-encoding: chunked")
        lines.append("connection: close")
        end = "\n" if self.kind == "lf_head" else "\r\n"
        return (end.join(lines) + end + end).encode()

    def chunk(self, data: bytes) -> bytes:
        if not data or not self.chunked:
            return data
        extension = b";name=value" if self.kind == "extensions" else b""
        return b"%x%b\r\n%b\r\n" % (len(data), extension, data)

    @property
    def last(self) -> bytes:
        if not self.chunked:
            return b""
        return b"0\r\nx-after: 1\r\n\r\n" if self.kind == "trailers" else b"0\r\n\r\n"


def _close(answer: Answer) -> list[Step]:
    return [Hold()] if answer.after == "open" else [Close(reset=answer.after == "rst")]


def _end(answer: Answer, framed: _Framing, *, streamed: bool) -> list[Step]:
    if answer.cut != "whole" or answer.after in ("fin", "rst"):
        return _close(answer)
    if answer.after == "open":
        return [Hold()]
    more = [Send(framed.chunk(MORE[answer.after]))] if answer.after in MORE and framed.chunked and streamed else []
    return [*more, *([Send(framed.last)] if framed.last else []), Close()]
