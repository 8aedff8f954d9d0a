"""Anthropic's messages, as Anthropic, its Vertex endpoint and compatible servers speak them.

Owns what a message asks. Its answers are read in anthropic_answer, whether it may run twice is in anthropic_safety, how a
stream becomes one body in anthropic_assembly.
"""

import re
from collections.abc import Mapping
from datetime import datetime

from hedgerow.dialects.anthropic_answer import MessageReader
from hedgerow.dialects.anthropic_assembly import AssemblingMessageReader, streamed_message
from hedgerow.dialects.anthropic_safety import reservations
from hedgerow.dialects.base import AnswerReader, AssemblingReader
from hedgerow.dialects.failures import failure_of_status
from hedgerow.dialects.headers import Headers
from hedgerow.dialects.lenient_json import is_array, is_object, whole_number, written_length
from hedgerow.dialects.openai_assembly_refusal import refuses_streaming
from hedgerow.dialects.request_body import largest_of, object_of, object_to_rewrite, tokens_estimate, unreadable_reason
from hedgerow.short_text import name_of
from hedgerow.values.failure import Failure
from hedgerow.values.request import RequestFacts, WireRequest, size_class

__all__ = ["AnthropicMessages"]

MESSAGES = re.compile(r"(?:.*/)?v1/messages")
UNCHECKED_INPUT = "fine-grained-tool-streaming"  # a beta: what streams of a tool's input need not be JSON
# Vertex names model and manner in the path; only its streams are streams.
VERTEX = re.compile(r".*/publishers/anthropic/models/([^/:]+):(rawPredict|streamRawPredict)")


class AnthropicMessages:
    """POST …/v1/messages. Stateless: may be shared by all tasks and threads."""

    name = "anthropic"

    def recognises(self, request: WireRequest) -> bool:
        """Is it a POST to a path that ends in /v1/messages, or to a Claude model on Vertex?"""
        path = request.path.rstrip("/")
        return request.method.upper() == "POST" and bool(MESSAGES.fullmatch(path) or VERTEX.fullmatch(path))

    def facts(self, request: WireRequest) -> RequestFacts:
        """What the request asks; forbidden when its body cannot be read."""
        body = object_of(request)
        if body is None:
            return RequestFacts(dialect=self.name, answer_known=True, forbidden=(unreadable_reason(request),))
        forbidden, needs = reservations(body, request)
        on_vertex = VERTEX.fullmatch(request.path.rstrip("/"))
        return RequestFacts(
            dialect=self.name,
            model=name_of(body.get("model")) or (on_vertex[1] if on_vertex else None),
            stream=body.get("stream") is True,
            tools=bool(body.get("tools")),
            effort=_effort(body),
            cached_context=_marks_a_cache(body),
            input_tokens_estimate=_input_tokens_estimate(body),
            max_output_tokens=largest_of(body.get("max_tokens")),
            answer_known=True,
            forbidden=forbidden,
            needs=needs,
        )

    def reader(self, facts: RequestFacts, headers: Headers) -> AnswerReader:  # noqa: ARG002 the answer says itself whether it streams
        """A fresh reader: whether the answer is a stream or one body is told by the answer, not by what was asked."""
        return MessageReader(headers)

    def failure(self, status: int, headers: Headers, body: bytes, *, now: datetime | None = None) -> Failure:
        """See failures.py."""
        return failure_of_status(status, headers=headers, body=body, now=now)

    def streamed(self, request: WireRequest) -> bytes | None:
        """See anthropic_assembly.py; None on Vertex, whose streams have a path of their own, and for what is not strict JSON."""
        if VERTEX.fullmatch(request.path.rstrip("/")) or UNCHECKED_INPUT in (request.header(b"anthropic-beta") or ""):
            return None
        body = object_to_rewrite(request)
        return None if body is None else streamed_message(body)

    def assembling_reader(self, facts: RequestFacts, headers: Headers) -> AssemblingReader:  # noqa: ARG002
        """A fresh reader that also gives the answer as one body."""
        return AssemblingMessageReader(headers)

    def refuses_streaming(self, status: int, body: bytes) -> bool:
        """Anthropic refuses no stream; servers that only speak like it may. See openai_assembly_refusal.py."""
        return refuses_streaming(status, body)


def _effort(body: Mapping[str, object]) -> str | None:
    """`output_config.effort`; else what `thinking` says: "none", "adaptive", or a budget by its size ("budget:8k")."""
    config, thinking = body.get("output_config"), body.get("thinking")
    kind = name_of(thinking.get("type")) if is_object(thinking) else None
    if kind == "disabled":
        return "none"
    if is_object(config) and (effort := name_of(config.get("effort"))):
        return effort
    budget = whole_number(thinking.get("budget_tokens")) if is_object(thinking) else None
    return kind if budget is None else f"budget:{size_class(budget)}"


def _marks_a_cache(body: Mapping[str, object]) -> bool:
    """Is there a `cache_control` at the top, on a tool, or on a block of system or messages, however deep?"""
    waiting: list[object] = [body.get("cache_control"), body.get("system"), body.get("tools"), body.get("messages")]
    if waiting[0] is not None:
        return True
    while waiting:
        item = waiting.pop()
        if is_array(item):
            waiting.extend(item)
        elif is_object(item):
            if item.get("cache_control") is not None:
                return True
            waiting.append(item.get("content"))
    return False


def _input_tokens_estimate(body: Mapping[str, object]) -> int:
    chars = attachments = 0
    waiting: list[object] = [body.get("system"), body.get("messages")]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            chars += len(item)
        elif is_array(item):
            waiting.extend(item)
        elif is_object(item):
            source = item.get("source")
            if is_object(source) and source.get("type") not in ("text", "content"):
                attachments += (
                    1  # an image or a file: its base64 has thousands of characters, the model reads far fewer tokens
                )
            elif is_object(source):
                waiting.append(source.get("data") or source.get("content"))
            if (called_with := item.get("input")) is not None:
                chars += written_length(called_with)
            waiting += [item.get("content"), item.get("text"), item.get("thinking")]
    if tools := body.get("tools"):
        chars += written_length(tools)
    return tokens_estimate(chars, attachments)
