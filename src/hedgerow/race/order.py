"""What the attempts of a race send, and how their answers are read."""

from dataclasses import dataclass

from hedgerow.dialects.base import AnswerReader, AssemblingReader, Dialect, StreamingDialect
from hedgerow.dialects.headers import Headers
from hedgerow.values.request import RequestFacts, StreamedRequest

__all__ = ["Order"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """as_stream: what is sent in place of the caller's request, so that an answer which is wanted whole comes as a stream that
    can be watched; None = the request as the caller wrote it."""

    dialect: Dialect
    facts: RequestFacts
    as_stream: StreamedRequest | None = None

    @property
    def streams(self) -> bool:
        """Do the answers come as streams?"""
        return self.facts.stream or self.as_stream is not None

    def reader(self, headers: Headers) -> AnswerReader:
        """A fresh reader for an attempt's answer."""
        return self.dialect.reader(self.facts, headers)

    def assembling_reader(self, headers: Headers) -> AssemblingReader | None:
        """A fresh reader that puts a whole answer together, where that is wanted."""
        if self.as_stream is None or not isinstance(self.dialect, StreamingDialect):
            return None
        return self.dialect.assembling_reader(self.facts, headers)
