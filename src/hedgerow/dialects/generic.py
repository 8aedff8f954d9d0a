"""Everything whose wire format is not known: passed on, counted, never run twice."""

from datetime import datetime

from hedgerow.dialects.base import AnswerReader
from hedgerow.dialects.failures import failure_of_status
from hedgerow.dialects.headers import Headers
from hedgerow.values.answer import AnswerFacts
from hedgerow.values.failure import Failure
from hedgerow.values.request import RequestFacts, WireRequest

__all__ = ["ByteCounter", "Generic"]


class Generic:
    """Any call. Stateless: may be shared by all tasks and threads."""

    name = "generic"

    def recognises(self, request: WireRequest) -> bool:  # noqa: ARG002 there is nothing to look at
        """Never: it cannot read answers, it is what is left when nobody else can."""
        return False

    def facts(self, request: WireRequest) -> RequestFacts:  # noqa: ARG002
        """An endpoint that may do anything, so never twice."""
        return RequestFacts(dialect=self.name, forbidden=("endpoint",))

    def reader(self, facts: RequestFacts, headers: Headers) -> AnswerReader:  # noqa: ARG002
        """Counts bytes."""
        return ByteCounter()

    def failure(self, status: int, headers: Headers, body: bytes, *, now: datetime | None = None) -> Failure:
        """See failures.py."""
        return failure_of_status(status, headers=headers, body=body, now=now)


class ByteCounter:
    """Reads nothing into an answer: any clean end is its end. `bytes_seen` is all there is to know. Not shared."""

    __slots__ = ("bytes_seen", "facts")

    def __init__(self) -> None:
        self.facts = AnswerFacts()
        self.bytes_seen = 0

    def feed(self, data: bytes) -> None:
        """More bytes."""
        self.bytes_seen += len(data)

    def finish(self) -> None:
        """The body ended cleanly."""
        self.facts.ended = True
