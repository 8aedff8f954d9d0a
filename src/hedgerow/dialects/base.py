"""What a dialect must know: the facts of a request, and how to read an answer as its bytes arrive."""

from datetime import datetime
from typing import Protocol, runtime_checkable

from hedgerow.dialects.headers import Headers
from hedgerow.values.answer import AnswerFacts
from hedgerow.values.failure import Failure
from hedgerow.values.request import RequestFacts, StreamedRequest, WireRequest

__all__ = ["AnswerReader", "AssemblingReader", "Dialect", "Headers", "StreamingDialect"]


class AnswerReader(Protocol):
    """Reads one answer, byte by byte as it arrives. Not shared: one per attempt."""

    facts: AnswerFacts

    def feed(self, data: bytes) -> None:
        """More decoded bytes. Never raises on malformed input: what it cannot read it skips."""

    def finish(self) -> None:
        """The body ended cleanly. An answer that lacks its dialect's end stays `ended = False`."""


class AssemblingReader(AnswerReader, Protocol):
    """Also makes one body of an answer that is a stream only because we asked for one. Not shared: one per attempt."""

    @property
    def streamed(self) -> bool | None:
        """Is it a stream? False: the provider sent one body all the same, to be relayed as it came. None: no byte yet."""
        ...

    @property
    def complete(self) -> bool:
        """Was everything read that came? If not, `response` lacks something and must not be delivered."""
        ...

    def response(self) -> bytes:
        """The body the API would have sent unstreamed. To be asked once, of an answer that has ended."""
        ...

    def error_response(self) -> bytes:
        """The error that came inside the stream, as the body the API answers errors with; empty if there was none."""
        ...


class Dialect(Protocol):
    """One API's wire format."""

    name: str

    def recognises(self, request: WireRequest) -> bool:
        """Is this one of the API's calls whose answers it can read?"""
        ...

    def facts(self, request: WireRequest) -> RequestFacts:
        """What the request asks, and whether it is safe to run twice (fails closed on what it does not know)."""
        ...

    def reader(self, facts: RequestFacts, headers: Headers) -> AnswerReader:
        """A fresh reader for the answer with these response headers (status 2xx)."""
        ...

    def failure(self, status: int, headers: Headers, body: bytes, *, now: datetime | None = None) -> Failure:
        """What an HTTP error status (≥ 400) with this body means for the race.

        `now` (aware) is what a Retry-After date is counted from when the response has no Date of its own.
        """
        ...


@runtime_checkable
class StreamingDialect(Dialect, Protocol):
    """A dialect that can ask for a whole answer as a stream (`upstream_stream`).

    One that never can is a plain Dialect, for which `streamed` would be None. isinstance tells them apart; it takes some ten
    microseconds, so ask once per dialect and not in every call.
    """

    def streamed(self, request: WireRequest) -> bytes | StreamedRequest | None:
        """What asks for the same answer as a stream: the body, or more where the address changes, too; None if this request
        must go as it was asked."""
        ...

    def assembling_reader(self, facts: RequestFacts, headers: Headers) -> AssemblingReader:
        """A fresh reader for the answer to a `streamed` request (status 2xx); its facts are those `reader` would give."""
        ...

    def refuses_streaming(self, status: int, body: bytes) -> bool:
        """Does this error object to the stream we asked for, so that the request as it was asked may be answered?"""
        ...
