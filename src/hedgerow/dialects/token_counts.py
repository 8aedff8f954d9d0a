"""Calls that count the tokens of an input, Anthropic's and OpenAI's: one JSON body, nothing kept, so always safe to run twice."""

from collections.abc import Mapping
from datetime import datetime

from hedgerow.dialects.base import AnswerReader
from hedgerow.dialects.failures import failure_in_band, failure_of_status
from hedgerow.dialects.headers import Headers
from hedgerow.dialects.lenient_json import whole_number
from hedgerow.dialects.request_body import CHARS_PER_TOKEN, object_of, unreadable_reason
from hedgerow.dialects.whole_answer import WholeAnswerReader
from hedgerow.short_text import name_of
from hedgerow.values.failure import Failure
from hedgerow.values.request import RequestFacts, WireRequest

__all__ = ["TokenCountReader", "TokenCounts"]

PATHS = ("/v1/messages/count_tokens", "/responses/input_tokens")


class TokenCounts:
    """POST …/v1/messages/count_tokens and …/responses/input_tokens. Stateless: may be shared by all tasks and threads."""

    name = "token_counts"

    def recognises(self, request: WireRequest) -> bool:
        """Does it ask for a count?"""
        return request.method.upper() == "POST" and request.path.rstrip("/").endswith(PATHS)

    def facts(self, request: WireRequest) -> RequestFacts:
        """What the request asks; forbidden only when its body cannot be read."""
        body = object_of(request)
        if body is None:
            return RequestFacts(dialect=self.name, answer_known=True, forbidden=(unreadable_reason(request),))
        return RequestFacts(
            dialect=self.name,
            model=name_of(body.get("model")),
            input_tokens_estimate=len(request.body or b"") // CHARS_PER_TOKEN,
            answer_known=True,
        )

    def reader(self, facts: RequestFacts, headers: Headers) -> AnswerReader:  # noqa: ARG002 every answer is of one kind
        """A fresh reader; its facts are complete after `finish`."""
        return TokenCountReader(headers)

    def failure(self, status: int, headers: Headers, body: bytes, *, now: datetime | None = None) -> Failure:
        """See failures.py."""
        return failure_of_status(status, headers=headers, body=body, now=now)


class TokenCountReader(WholeAnswerReader):
    """One attempt's reader; not shared. An answer is useful when it has a count."""

    __slots__ = ()

    def read(self, answer: Mapping[str, object]) -> None:
        """Fill in the facts."""
        if answer.get("error"):
            self.facts.failure = failure_in_band(answer)
        self.facts.content = self.facts.useful = whole_number(answer.get("input_tokens")) is not None
