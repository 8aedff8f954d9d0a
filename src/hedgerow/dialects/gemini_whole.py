"""Gemini's calls that answer with one body and keep nothing: embeddings and token counts, always safe to run twice."""

from collections.abc import Mapping
from datetime import datetime

from hedgerow.dialects.base import AnswerReader
from hedgerow.dialects.gemini import input_tokens_estimate
from hedgerow.dialects.gemini_answer import usage_of
from hedgerow.dialects.gemini_failures import gemini_failure_in_band, gemini_failure_of_status
from hedgerow.dialects.gemini_paths import in_camel_case, method_of, model_of
from hedgerow.dialects.headers import Headers
from hedgerow.dialects.lenient_json import is_array, is_object, whole_number
from hedgerow.dialects.request_body import object_of, unreadable_reason
from hedgerow.dialects.whole_answer import WholeAnswerReader
from hedgerow.values.failure import Failure
from hedgerow.values.request import RequestFacts, WireRequest

__all__ = ["GeminiWhole", "GeminiWholeReader"]

METHODS = frozenset({"batchEmbedContents", "countTokens", "embedContent"})


class GeminiWhole:
    """POST …:embedContent, …:batchEmbedContents and …:countTokens. Stateless: may be shared by all tasks and threads."""

    name = "gemini_whole"

    def recognises(self, request: WireRequest) -> bool:
        """Does it ask a model for embeddings or for a count?"""
        return method_of(request) in METHODS

    def facts(self, request: WireRequest) -> RequestFacts:
        """What the request asks; forbidden only when its body cannot be read."""
        body = object_of(request)
        if body is None:
            return RequestFacts(dialect=self.name, answer_known=True, forbidden=(unreadable_reason(request),))
        asked = body.get("requests")
        bodies = [each for each in asked if is_object(each)] if is_array(asked) else [body]
        return RequestFacts(
            dialect=self.name,
            model=model_of(request),
            input_tokens_estimate=sum(input_tokens_estimate(in_camel_case(each)) for each in bodies),
            answer_known=True,
        )

    def reader(self, facts: RequestFacts, headers: Headers) -> AnswerReader:  # noqa: ARG002 every answer is of one kind
        """A fresh reader; its facts are complete after `finish`."""
        return GeminiWholeReader(headers)

    def failure(self, status: int, headers: Headers, body: bytes, *, now: datetime | None = None) -> Failure:
        """See gemini_failures.py."""
        return gemini_failure_of_status(status, headers=headers, body=body, now=now)


class GeminiWholeReader(WholeAnswerReader):
    """One attempt's reader; not shared. An answer is useful when it has a vector or a count."""

    __slots__ = ()

    def read(self, answer: Mapping[str, object]) -> None:
        """Fill in the facts."""
        answer = in_camel_case(answer)
        facts = self.facts
        if error := answer.get("error"):
            facts.failure = gemini_failure_in_band(error)
        if is_object(usage := answer.get("usageMetadata")):
            facts.usage = usage_of(usage)
        counted = whole_number(answer.get("totalTokens")) is not None
        facts.content = facts.useful = bool(answer.get("embedding") or answer.get("embeddings")) or counted
        facts.chunks = int(facts.content)
