"""OpenAI's responses, as OpenAI, Azure, OpenRouter, vLLM and others speak them.

Owns what a request asks. Its answers are read in openai_responses_answer, whether it may run twice is in
openai_responses_safety, how a stream becomes one body in openai_responses_assembly.
"""

from collections.abc import Mapping
from datetime import datetime

from hedgerow.dialects.base import AnswerReader, AssemblingReader
from hedgerow.dialects.failures import failure_of_status
from hedgerow.dialects.headers import Headers
from hedgerow.dialects.lenient_json import is_array, is_object, text_of, written_length
from hedgerow.dialects.openai_assembly_refusal import refuses_streaming
from hedgerow.dialects.openai_chat import ATTACHMENT_PARTS, CACHE_FIELDS
from hedgerow.dialects.openai_responses_answer import ResponseReader
from hedgerow.dialects.openai_responses_assembly import AssemblingResponseReader, streamed_response
from hedgerow.dialects.openai_responses_safety import reservations
from hedgerow.dialects.request_body import largest_of, object_of, object_to_rewrite, tokens_estimate, unreadable_reason
from hedgerow.short_text import name_of
from hedgerow.values.failure import Failure
from hedgerow.values.request import RequestFacts, WireRequest

__all__ = ["OpenAIResponses"]

ATTACHMENTS = ATTACHMENT_PARTS | {"computer_screenshot", "input_file"}
# Where items and parts keep what the model reads.
TEXT_FIELDS = ("arguments", "input", "refusal", "text")
LIST_FIELDS = ("content", "output", "summary")


class OpenAIResponses:
    """POST …/responses. Stateless: may be shared by all tasks and threads."""

    name = "openai_responses"

    def recognises(self, request: WireRequest) -> bool:
        """Is it a POST to a path that ends in /responses (Azure's included)?"""
        return request.method.upper() == "POST" and request.path.rstrip("/").endswith("/responses")

    def facts(self, request: WireRequest) -> RequestFacts:
        """What the request asks; forbidden when its body cannot be read."""
        body = object_of(request)
        if body is None:
            return RequestFacts(dialect=self.name, answer_known=True, forbidden=(unreadable_reason(request),))
        forbidden, needs = reservations(body, request)
        reasoning = body.get("reasoning")
        return RequestFacts(
            dialect=self.name,
            model=name_of(body.get("model")),
            stream=body.get("stream") is True,
            tools=bool(body.get("tools")),
            effort=name_of(reasoning.get("effort")) if is_object(reasoning) else None,
            cached_context=any(body.get(field) is not None for field in CACHE_FIELDS),
            input_tokens_estimate=_input_tokens_estimate(body),
            max_output_tokens=largest_of(body.get("max_output_tokens")),
            answer_known=True,
            forbidden=forbidden,
            needs=needs,
        )

    def reader(self, facts: RequestFacts, headers: Headers) -> AnswerReader:  # noqa: ARG002 the answer says itself whether it streams
        """A fresh reader: whether the answer is a stream or one body is told by the answer, not by what was asked."""
        return ResponseReader(headers)

    def failure(self, status: int, headers: Headers, body: bytes, *, now: datetime | None = None) -> Failure:
        """See failures.py."""
        return failure_of_status(status, headers=headers, body=body, now=now)

    def streamed(self, request: WireRequest) -> bytes | None:
        """See openai_responses_assembly.py; None, too, for a body we could not write again."""
        body = object_to_rewrite(request)
        return None if body is None else streamed_response(body)

    def assembling_reader(self, facts: RequestFacts, headers: Headers) -> AssemblingReader:  # noqa: ARG002
        """A fresh reader that also gives the answer as one body."""
        return AssemblingResponseReader(headers)

    def refuses_streaming(self, status: int, body: bytes) -> bool:
        """See openai_assembly_refusal.py."""
        return refuses_streaming(status, body)


def _input_tokens_estimate(body: Mapping[str, object]) -> int:
    chars = attachments = 0
    waiting: list[object] = [body.get("instructions"), body.get("input")]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            chars += len(item)
        elif is_array(item):
            waiting.extend(item)
        elif is_object(item):
            if text_of(item.get("type")) in ATTACHMENTS:
                attachments += 1
                continue
            chars += sum(len(text_of(item.get(field)) or "") for field in TEXT_FIELDS)
            waiting += [item.get(field) for field in LIST_FIELDS]
    if tools := body.get("tools"):
        chars += written_length(tools)
    return tokens_estimate(chars, attachments)
