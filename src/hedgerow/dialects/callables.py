"""Calls of Python functions (`@hedge`): each item an answer yields goes by as one byte, which counts as one token."""

from datetime import datetime

from hedgerow.dialects.base import AnswerReader
from hedgerow.dialects.failures import failure_of_status
from hedgerow.dialects.headers import Headers
from hedgerow.values.answer import AnswerFacts
from hedgerow.values.failure import Failure
from hedgerow.values.request import RequestFacts, WireRequest

__all__ = ["CALL", "ITEM", "YIELDS", "Callables"]

CALL = "CALL"  # in place of an HTTP method
ITEM = b"\x01"
YIELDS = (b"yields", b"1")  # in place of a header: the function is an iterator
CHARS_PER_ITEM = 4


class Callables:
    """Whoever decorates a function says that it may run twice. Stateless."""

    name = "callable"

    def recognises(self, request: WireRequest) -> bool:
        """Is it a function?"""
        return request.method == CALL

    def facts(self, request: WireRequest) -> RequestFacts:
        """The path is the function's name."""
        stream = YIELDS in request.headers
        return RequestFacts(dialect=self.name, model=request.path, stream=stream, answer_known=True)

    def reader(self, facts: RequestFacts, headers: Headers) -> AnswerReader:  # noqa: ARG002
        """Counts items."""
        return _ItemCounter()

    def failure(self, status: int, headers: Headers, body: bytes, *, now: datetime | None = None) -> Failure:
        """See failures.py; functions have no statuses of their own."""
        return failure_of_status(status, headers=headers, body=body, now=now)


class _ItemCounter:
    __slots__ = ("facts",)

    def __init__(self) -> None:
        self.facts = AnswerFacts()

    def feed(self, data: bytes) -> None:
        self.facts.content = self.facts.useful = True
        self.facts.chunks += len(data)
        self.facts.visible_chars += CHARS_PER_ITEM * len(data)

    def finish(self) -> None:
        self.facts.ended = self.facts.useful = True
