"""OpenAI's chat completions, as OpenAI, Azure, Mistral, OpenRouter, DeepSeek, vLLM, llama.cpp and others speak them.

Owns what a chat request asks. Its answers are read in openai_chat_answer, whether it may run twice is in openai_safety,
how a stream becomes one body in openai_chat_assembly.
"""

import re
from collections.abc import Mapping
from datetime import datetime

from hedgerow.dialects.base import AnswerReader, AssemblingReader
from hedgerow.dialects.failures import failure_of_status
from hedgerow.dialects.headers import Headers
from hedgerow.dialects.lenient_json import is_array, is_object, text_of, written_length
from hedgerow.dialects.openai_assembly_refusal import refuses_streaming
from hedgerow.dialects.openai_assembly_request import streamed_request
from hedgerow.dialects.openai_chat_answer import ChatAnswerReader
from hedgerow.dialects.openai_chat_assembly import AssemblingChatReader
from hedgerow.dialects.openai_safety import reservations
from hedgerow.dialects.request_body import largest_of, object_of, object_to_rewrite, tokens_estimate, unreadable_reason
from hedgerow.short_text import name_of
from hedgerow.values.failure import Failure
from hedgerow.values.request import RequestFacts, WireRequest

__all__ = ["OpenAIChat", "model_asked"]

ATTACHMENT_PARTS = frozenset({"audio_url", "file", "image_url", "input_audio", "input_image", "video_url"})
LIMITS = ("max_completion_tokens", "max_tokens", "n_predict")
CACHE_FIELDS = ("prompt_cache_key", "prompt_cache_options", "prompt_cache_retention")
AZURE_DEPLOYMENT = re.compile(r"/openai/deployments/([^/]+)/")


class OpenAIChat:
    """POST …/chat/completions. Stateless: may be shared by all tasks and threads."""

    name = "openai_chat"

    def recognises(self, request: WireRequest) -> bool:
        """Is it a POST to a path that ends in /chat/completions (Azure's deployments included)?"""
        return request.method.upper() == "POST" and request.path.rstrip("/").endswith("/chat/completions")

    def facts(self, request: WireRequest) -> RequestFacts:
        """What the request asks; forbidden when its body cannot be read."""
        body = object_of(request)
        if body is None:
            return RequestFacts(dialect=self.name, answer_known=True, forbidden=(unreadable_reason(request),))
        forbidden, needs = reservations(body, request)
        return RequestFacts(
            dialect=self.name,
            model=model_asked(body, request),
            stream=body.get("stream") is True,
            tools=bool(body.get("tools") or body.get("functions")),
            effort=_effort(body),
            cached_context=any(body.get(field) is not None for field in CACHE_FIELDS),
            input_tokens_estimate=_input_tokens_estimate(body),
            max_output_tokens=largest_of(*(body.get(field) for field in LIMITS)),
            answers=largest_of(body.get("n"), body.get("best_of")) or 1,
            answer_known=True,
            forbidden=forbidden,
            needs=needs,
        )

    def reader(self, facts: RequestFacts, headers: Headers) -> AnswerReader:  # noqa: ARG002 the answer says itself whether it streams
        """A fresh reader: whether the answer is a stream or one body is told by the answer, not by what was asked."""
        return ChatAnswerReader(headers)

    def failure(self, status: int, headers: Headers, body: bytes, *, now: datetime | None = None) -> Failure:
        """See failures.py."""
        return failure_of_status(status, headers=headers, body=body, now=now)

    def streamed(self, request: WireRequest) -> bytes | None:
        """See openai_assembly_request.py; None, too, for a body we could not write again: not strict JSON, or signed."""
        body = object_to_rewrite(request)
        return None if body is None else streamed_request(body)

    def assembling_reader(self, facts: RequestFacts, headers: Headers) -> AssemblingReader:  # noqa: ARG002
        """A fresh reader that also gives the answer as one body."""
        return AssemblingChatReader(headers)

    def refuses_streaming(self, status: int, body: bytes) -> bool:
        """See openai_assembly_refusal.py."""
        return refuses_streaming(status, body)


def model_asked(body: Mapping[str, object], request: WireRequest) -> str | None:
    """The model of the body, or else Azure's deployment in the path."""
    deployment = AZURE_DEPLOYMENT.search(request.path)
    return name_of(body.get("model")) or (deployment[1] if deployment else None)


def _effort(body: Mapping[str, object]) -> str | None:
    reasoning = body.get("reasoning")
    nested = reasoning.get("effort") if is_object(reasoning) else None
    return name_of(body.get("reasoning_effort")) or name_of(nested)


def _input_tokens_estimate(body: Mapping[str, object]) -> int:
    chars = attachments = 0
    for message in _objects(body.get("messages")):
        content = message.get("content")
        if isinstance(content, str):
            chars += len(content)
        for part in _objects(content):
            if text_of(part.get("type")) in ATTACHMENT_PARTS:
                attachments += 1
            else:
                chars += len(text_of(part.get("text")) or "")
        for call in _objects(message.get("tool_calls")):
            function = call.get("function")
            chars += len(text_of(function.get("arguments")) or "") if is_object(function) else 0
    for field in ("tools", "functions"):
        if declared := body.get(field):
            chars += written_length(declared)
    return tokens_estimate(chars, attachments)


def _objects(value: object) -> list[dict[str, object]]:
    return [item for item in value if is_object(item)] if is_array(value) else []
