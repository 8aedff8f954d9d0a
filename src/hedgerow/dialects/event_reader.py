"""What reading an answer event by event is, in every dialect: cut the bytes, read each event, remember which one was an error."""

from typing import Protocol

from hedgerow.dialects.failures import failure_in_band, failure_of_finish
from hedgerow.dialects.framing import AnswerFraming
from hedgerow.dialects.headers import Headers
from hedgerow.dialects.lenient_json import is_crowded, is_object, loads_or_none, text_of
from hedgerow.dialects.sse import ServerSentEvent
from hedgerow.values.answer import AnswerFacts
from hedgerow.values.failure import Failure

__all__ = ["EventReader", "Framing", "TypedEventReader"]

WITHOUT_A_WORD = b'{"error": {"message": "the provider sent an error without a word"}}'


class Framing(Protocol):
    """Cuts one answer into events; a body that is no stream is one event, at the end."""

    @property
    def streamed(self) -> bool | None:
        """Is it a stream? None until the first byte."""
        ...

    @property
    def truncated(self) -> bool:
        """Was something too large to look at?"""
        ...

    def feed(self, data: bytes) -> list[ServerSentEvent]:
        """The events that these bytes complete."""
        ...

    def finish(self) -> list[ServerSentEvent]:
        """What was still open when the body ended cleanly."""
        ...


class EventReader:
    """One attempt's reader; not shared. A dialect's own says in `_read_event` what an event means.

    framing: None = server-sent events, or one JSON body.
    """

    __slots__ = ("_crowded", "_error_event", "_framing", "facts")

    def __init__(self, headers: Headers, framing: Framing | None = None) -> None:
        self.facts = AnswerFacts()
        self._framing: Framing = framing or AnswerFraming(headers)
        self._error_event = b""
        self._crowded = False

    @property
    def truncated(self) -> bool:
        """Was something too large to look at, or made of too many parts?"""
        return self._crowded or self._framing.truncated

    @property
    def streamed(self) -> bool | None:
        """Is it a stream? False: the provider answered with one body. None: no byte yet."""
        return self._framing.streamed

    def feed(self, data: bytes) -> None:
        """More decoded bytes."""
        for event in self._framing.feed(data):
            self._read(event)
        self.facts.overlooked = self.truncated

    def finish(self) -> None:
        """The body ended cleanly: what was still open is read."""
        for event in self._framing.finish():
            self._read(event)
        self.facts.overlooked = self.truncated

    def error_response(self) -> bytes:
        """The error that came inside the stream, whose data is the body the API answers errors with; empty if there was none."""
        return self._error_event

    def _read(self, event: ServerSentEvent) -> None:
        if is_crowded(event.data):
            self._crowded = True
            return
        self._read_event(event)
        if self.facts.failure is not None and not self.facts.given_up and not self._error_event:
            self._error_event = bytes(event.data) or WITHOUT_A_WORD

    def _read_event(self, event: ServerSentEvent) -> None:
        raise NotImplementedError

    def _fail(self, error: object) -> None:
        """The first error is the one that counts; it says more than a finish reason."""
        if self.facts.failure is None or self.facts.given_up:
            self.facts.failure, self.facts.given_up = self._failure(error), False

    def _failure(self, error: object) -> Failure:
        return failure_in_band(error)

    def _finish_for(self, reason: str) -> None:
        """An answer's finish reason: one by which the server says that it broke off is a failure."""
        self.facts.finish_reason = reason
        if self.facts.failure is None and (failure := failure_of_finish(reason)) is not None:
            self.facts.failure, self.facts.given_up = failure, True


class TypedEventReader(EventReader):
    """Reads events that are JSON objects with a `type`, as Anthropic and OpenAI's responses send them. One JSON body is
    such an object, too."""

    __slots__ = ()

    def _read_event(self, event: ServerSentEvent) -> None:
        payload = loads_or_none(event.data)
        if self.streamed is False:
            self.facts.ended = payload is not None
        if event.name == "error" and not is_object(payload):
            self._fail(event.data.decode("utf-8", "replace"))
        if is_object(payload):
            self._read_object(payload, text_of(payload.get("type")) or event.name)

    def _read_object(self, payload: dict[str, object], kind: str) -> None:
        raise NotImplementedError
