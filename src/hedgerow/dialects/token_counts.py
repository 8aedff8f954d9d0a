"""Calls that count the tokens of an input, Anthropic's and OpenAI's: one JSON body, nothing kept, so always safe to run twice."""

from datetime import datetime

from hedgerow.dialects.base import AnswerReader
from hedgerow.dialects.failures import failure_in_band, failure_of_status
from hedgerow.dialects.framing import AnswerFraming
from hedgerow.dialects.headers import Headers
from hedgerow.dialects.lenient_json import is_object, loads_or_none, text_of, whole_number
from hedgerow.dialects.openai_chat import CHARS_PER_TOKEN, unreadable_reason
from hedgerow.values.answer import AnswerFacts
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
        body = loads_or_none(request.body) if request.body is not None else None
        if not is_object(body):
            return RequestFacts(dialect=self.name, answer_known=True, forbidden=(unreadable_reason(request),))
        return RequestFacts(
            dialect=self.name,
            model=text_of(body.get("model")),
            input_tokens_estimate=len(request.body or b"") // CHARS_PER_TOKEN,
            answer_known=True,
        )

    def reader(self, facts: RequestFacts, headers: Headers) -> AnswerReader:  # noqa: ARG002 every answer is of one kind
        """A fresh reader; its facts are complete after `finish`."""
        return TokenCountReader(headers)

    def failure(self, status: int, headers: Headers, body: bytes, *, now: datetime | None = None) -> Failure:
        """See failures.py."""
        return failure_of_status(status, headers=headers, body=body, now=now)


class TokenCountReader:
    """One attempt's reader; not shared. An answer is useful when it has a count."""

    __slots__ = ("_framing", "facts")

    def __init__(self, headers: Headers) -> None:
        self.facts = AnswerFacts()
        self._framing = AnswerFraming(headers)

    def feed(self, data: bytes) -> None:
        """More decoded bytes: kept until the end, since there is nothing to see before it."""
        self._framing.feed(data)

    def finish(self) -> None:
        """The body ended cleanly: read it."""
        for event in self._framing.finish():
            payload = loads_or_none(event.data)
            self.facts.ended = payload is not None
            if not is_object(payload):
                continue
            if payload.get("error"):
                self.facts.failure = failure_in_band(payload)
            self.facts.content = self.facts.useful = whole_number(payload.get("input_tokens")) is not None
