"""Gemini's generateContent and streamGenerateContent, on the Gemini API and on Vertex.

Owns what such a request asks. Its answers are read in gemini_answer, whether it may run twice is in gemini_safety, how a
stream becomes one body in gemini_assembly.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime

from hedgerow.dialects.base import AnswerReader, AssemblingReader
from hedgerow.dialects.gemini_answer import GeminiReader
from hedgerow.dialects.gemini_assembly import AssemblingGeminiReader, streamed_content
from hedgerow.dialects.gemini_failures import gemini_failure_of_status
from hedgerow.dialects.gemini_paths import STREAM, WHOLE, in_camel_case, method_of, model_of
from hedgerow.dialects.gemini_safety import reservations, tools_in
from hedgerow.dialects.headers import Headers
from hedgerow.dialects.lenient_json import is_array, is_object, text_of, written_length
from hedgerow.dialects.openai_assembly_refusal import refuses_streaming
from hedgerow.dialects.request_body import largest_of, object_of, tokens_estimate, unreadable_reason
from hedgerow.short_text import name_of
from hedgerow.values.failure import Failure
from hedgerow.values.request import RequestFacts, StreamedRequest, WireRequest, size_class

__all__ = ["Gemini", "input_tokens_estimate"]


class Gemini:
    """POST …:generateContent and …:streamGenerateContent. Stateless: may be shared by all tasks and threads."""

    name = "gemini"

    def recognises(self, request: WireRequest) -> bool:
        """Does it ask a model for content?"""
        return method_of(request) in (WHOLE, STREAM)

    def facts(self, request: WireRequest) -> RequestFacts:
        """What the request asks; forbidden when its body cannot be read."""
        stream = method_of(request) == STREAM
        body = object_of(request)
        if body is None:
            reason = unreadable_reason(request)
            return RequestFacts(
                dialect=self.name, model=model_of(request), stream=stream, answer_known=True, forbidden=(reason,)
            )
        forbidden, needs = reservations(body, request)
        fields = in_camel_case(body)
        settings = _object(fields.get("generationConfig"))
        return RequestFacts(
            dialect=self.name,
            model=model_of(request),
            stream=stream,
            tools=bool(tools_in(body)),
            effort=_effort(_object(settings.get("thinkingConfig"))),
            cached_context=fields.get("cachedContent") is not None,
            input_tokens_estimate=input_tokens_estimate(fields),
            max_output_tokens=largest_of(settings.get("maxOutputTokens")),
            answers=largest_of(settings.get("candidateCount")) or 1,
            answer_known=True,
            forbidden=forbidden,
            needs=needs,
        )

    def reader(self, facts: RequestFacts, headers: Headers) -> AnswerReader:  # noqa: ARG002 the answer says itself whether it streams
        """A fresh reader: whether the answer is a stream or one body is told by the answer, not by what was asked."""
        return GeminiReader(headers)

    def failure(self, status: int, headers: Headers, body: bytes, *, now: datetime | None = None) -> Failure:
        """See gemini_failures.py."""
        return gemini_failure_of_status(status, headers=headers, body=body, now=now)

    def streamed(self, request: WireRequest) -> StreamedRequest | None:
        """See gemini_assembly.py."""
        return streamed_content(request)

    def assembling_reader(self, facts: RequestFacts, headers: Headers) -> AssemblingReader:  # noqa: ARG002
        """A fresh reader that also gives the answer as one body."""
        return AssemblingGeminiReader(headers)

    def refuses_streaming(self, status: int, body: bytes) -> bool:
        """Does it say that this model has no streams?"""
        return refuses_streaming(status, body) or (status == 400 and f"{STREAM} is not".encode() in body)


def input_tokens_estimate(fields: Mapping[str, object]) -> int:
    """Characters / 4 of all texts and declarations, and a flat number for each attachment."""
    chars = attachments = 0
    for part in _parts(fields):
        if text := text_of(part.get("text")):
            chars += len(text)
        elif "inlineData" in part or "fileData" in part:
            attachments += 1
        else:
            chars += written_length(part)
    if tools := fields.get("tools"):
        chars += written_length(tools)
    return tokens_estimate(chars, attachments)


def _parts(fields: Mapping[str, object]) -> Iterator[dict[str, object]]:
    contents = fields.get("contents") or fields.get("content")
    for content in [*(contents if is_array(contents) else [contents]), fields.get("systemInstruction")]:
        parts = content.get("parts") if is_object(content) else None
        for part in parts if is_array(parts) else [parts]:
            if is_object(part):
                yield in_camel_case(part)


def _effort(thinking: Mapping[str, object]) -> str | None:
    """The level if it is stated; a budget by its size, since every number of its own would be a key of its own."""
    if level := name_of(thinking.get("thinkingLevel")):
        return level.lower().removeprefix("thinking_level_")
    budget = thinking.get("thinkingBudget")
    if not isinstance(budget, int) or isinstance(budget, bool):
        return None
    if budget <= 0:
        return "none" if budget == 0 else "dynamic"
    return f"budget_{size_class(budget)}"


def _object(value: object) -> dict[str, object]:
    return in_camel_case(value) if is_object(value) else {}
