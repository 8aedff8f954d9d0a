"""OpenAI's embeddings: one JSON body, no stream, nothing kept by the provider, so always safe to run twice."""

from collections.abc import Mapping
from datetime import datetime

from hedgerow.dialects.base import AnswerReader
from hedgerow.dialects.failures import failure_in_band, failure_of_status
from hedgerow.dialects.headers import Headers
from hedgerow.dialects.lenient_json import is_array
from hedgerow.dialects.openai_chat import model_asked
from hedgerow.dialects.openai_chat_answer import usage_of
from hedgerow.dialects.request_body import CHARS_PER_TOKEN, object_of, unreadable_reason
from hedgerow.dialects.whole_answer import WholeAnswerReader
from hedgerow.short_text import name_of
from hedgerow.values.failure import Failure
from hedgerow.values.request import RequestFacts, WireRequest

__all__ = ["EmbeddingsAnswerReader", "OpenAIEmbeddings"]


class OpenAIEmbeddings:
    """POST …/embeddings. Stateless: may be shared by all tasks and threads."""

    name = "openai_embeddings"

    def recognises(self, request: WireRequest) -> bool:
        """Is it a POST to a path that ends in /embeddings (Azure's deployments included)?"""
        return request.method.upper() == "POST" and request.path.rstrip("/").endswith("/embeddings")

    def facts(self, request: WireRequest) -> RequestFacts:
        """What the request asks; forbidden only when its body cannot be read."""
        body = object_of(request)
        if body is None:
            return RequestFacts(dialect=self.name, answer_known=True, forbidden=(unreadable_reason(request),))
        return RequestFacts(
            dialect=self.name,
            model=model_asked(body, request),
            input_tokens_estimate=_input_tokens_estimate(body),
            answer_known=True,
        )

    def reader(self, facts: RequestFacts, headers: Headers) -> AnswerReader:  # noqa: ARG002 every answer is of one kind
        """A fresh reader; its facts are complete after `finish`."""
        return EmbeddingsAnswerReader(headers)

    def failure(self, status: int, headers: Headers, body: bytes, *, now: datetime | None = None) -> Failure:
        """See failures.py."""
        return failure_of_status(status, headers=headers, body=body, now=now)


class EmbeddingsAnswerReader(WholeAnswerReader):
    """One attempt's reader; not shared. An answer is useful when its list of vectors is not empty."""

    __slots__ = ()

    def read(self, answer: Mapping[str, object]) -> None:
        """Fill in the facts."""
        facts = self.facts
        if error := answer.get("error"):
            facts.failure = failure_in_band(error)
        elif answer.get("object") == "error":
            facts.failure = failure_in_band(answer)
        facts.model = name_of(answer.get("model"))
        facts.usage = usage_of(answer.get("usage"))
        facts.content = facts.useful = bool(is_array(vectors := answer.get("data")) and vectors)
        facts.chunks = int(facts.content)


def _input_tokens_estimate(body: Mapping[str, object]) -> int:
    """Texts by their characters; token ids as they are."""
    asked = body.get("input")
    tokens = chars = 0
    for item in asked if is_array(asked) else [asked]:
        if isinstance(item, str):
            chars += len(item)
        elif is_array(item):
            tokens += len(item)
        elif isinstance(item, int):
            tokens += 1
    return chars // CHARS_PER_TOKEN + tokens
