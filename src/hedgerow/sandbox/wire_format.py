"""What a dialect of the sandbox must write, and the frames it writes streams in: one file for each API implements this."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, cast

import orjson

from hedgerow.sandbox.content import CHARS_PER_TOKEN, Answer, Call
from hedgerow.sandbox.http1 import BadRequest

__all__ = ["Frame", "WireFormat", "estimate_tokens", "json_object"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One server-sent event, or with `comment` a comment line."""

    data: bytes = b""
    event: str | None = None
    comment: str | None = None

    def lines(self, line_end: str) -> bytes:
        """As it goes over the wire, blank line and all."""
        end = line_end.encode()
        if self.comment is not None:
            return b": " + self.comment.encode() + end + end
        name = b"" if self.event is None else b"event: " + self.event.encode() + end
        return name + b"data: " + self.data + end + end


class WireFormat(Protocol):
    """One API's wire format. Stateless."""

    def handles(self, path: str) -> bool:
        """Is a POST to this path (without query) one of its calls?"""
        ...

    def read(self, path: str, body: bytes) -> Call:
        """What the request asks for. Raises BadRequest."""
        ...

    def opening(self, answer: Answer) -> Sequence[Frame]:
        """What a stream starts with, before any content (the role chunk)."""
        ...

    def token(self, answer: Answer, number: int) -> Sequence[Frame]:
        """Token `number` (from 0) of every choice."""
        ...

    def closing(self, answer: Answer) -> Sequence[Frame]:
        """Finish reason and usage, as far as the answer has them."""
        ...

    def marker(self) -> Sequence[Frame]:
        """The end marker, if the dialect has one."""
        ...

    def ping(self) -> Frame:
        """A sign of life without content."""
        ...

    def error_frame(self, error: dict[str, object]) -> Frame:
        """An in-band error."""
        ...

    def error_body(self, status: int, message: str, error: dict[str, object] | None) -> bytes:
        """The body of an error answer; `error` is the error object to send in place of the dialect's own for the status."""
        ...

    def whole(self, answer: Answer) -> bytes:
        """The body of an answer that is not streamed."""
        ...


def json_object(body: bytes) -> dict[str, object]:
    """The JSON object in a request body. Raises BadRequest."""
    try:
        parsed = cast(object, orjson.loads(body))
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"the body is not JSON: {error}") from None
    if not isinstance(parsed, dict):
        raise BadRequest("the body is not a JSON object")
    return cast(dict[str, object], parsed)


def estimate_tokens(value: object) -> int:
    """Characters of all texts in a JSON value / 4, rounded up; a number counts as a token."""
    characters, numbers, waiting = 0, 0, [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            characters += len(item)
        elif isinstance(item, dict):
            waiting.extend(cast(dict[str, object], item).values())
        elif isinstance(item, list):
            waiting.extend(cast(list[object], item))
        elif isinstance(item, int | float) and not isinstance(item, bool):
            numbers += 1
    return -(-characters // CHARS_PER_TOKEN) + numbers
