"""What a dialect must know: the facts of a request, and how to read an answer as its bytes arrive."""

from datetime import datetime
from typing import Protocol

from hedgerow.dialects.headers import Headers
from hedgerow.values.answer import AnswerFacts
from hedgerow.values.failure import Failure
from hedgerow.values.request import RequestFacts, WireRequest

__all__ = ["AnswerReader", "Dialect", "Headers"]


class AnswerReader(Protocol):
    """Reads one answer, byte by byte as it arrives. Not shared: one per attempt."""

    facts: AnswerFacts

    def feed(self, data: bytes) -> None:
        """More decoded bytes. Never raises on malformed input: what it cannot read it skips."""

    def finish(self) -> None:
        """The body ended cleanly. An answer that lacks its dialect's end stays `ended = False`."""


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
        """A fresh reader for the answer with these response headers (status 200)."""
        ...

    def failure(self, status: int, headers: Headers, body: bytes, *, now: datetime | None = None) -> Failure:
        """What an HTTP error status (≥ 400) with this body means for the race.

        `now` (aware) is what a Retry-After date is counted from when the response has no Date of its own.
        """
        ...
