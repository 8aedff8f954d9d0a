"""Whatever stands where a dialect expects something else: nothing raises. Each value of good requests and answers is replaced by
each of some odd ones, one at a time, so that a gateway's clients and providers can send what they like."""

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest

from hedgerow.dialects.base import StreamingDialect
from hedgerow.dialects.registry import dialect_for
from hedgerow.values.request import WireRequest

ODD: tuple[Any, ...] = (
    None,
    True,
    -1,
    1.5,
    10**30,
    "",
    "?",
    [],
    {},
    [[]],
    [None],
    {"": []},
    [{}],
    [{"type": []}],
    {"type": {}},
)
TOOL = {"name": "f", "description": "d", "parameters": {"type": "object", "properties": {}}}
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA==", "detail": "low"}}
USAGE = {
    "prompt_tokens": 1,
    "completion_tokens": 2,
    "total_tokens": 3,
    "prompt_tokens_details": {"cached_tokens": 1},
    "completion_tokens_details": {"reasoning_tokens": 1},
}
CALL = {"id": "c", "index": 0, "type": "function", "function": {"name": "f", "arguments": "{}"}}

REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "chat": (
        "/v1/chat/completions",
        {
            "model": "m",
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "hi"}, IMAGE]},
                {"role": "assistant", "tool_calls": [CALL]},
            ],
            "tools": [{"type": "function", "function": TOOL}],
            "tool_choice": {"type": "function", "function": {"name": "f"}},
            "n": 1,
            "stream": True,
            "stream_options": {"include_usage": True},
            "modalities": ["text"],
            "service_tier": "auto",
            "reasoning_effort": "low",
            "response_format": {"type": "json_object"},
            "max_tokens": 5,
            "store": False,
        },
    ),
    "responses": (
        "/v1/responses",
        {
            "model": "m",
            "input": [
                {
                    "role": "user",
                    "content": [{"type": "input_text", "text": "hi"}, {"type": "input_image", "file_id": "f"}],
                }
            ],
            "tools": [{"type": "function", **TOOL}],
            "store": False,
            "stream": True,
            "include": ["reasoning.encrypted_content"],
            "reasoning": {"effort": "low"},
            "service_tier": "auto",
            "max_output_tokens": 5,
        },
    ),
    "messages": (
        "/v1/messages",
        {
            "model": "m",
            "max_tokens": 5,
            "system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}],
            "messages": [
                {
                    "role": "user",
                    "content": [{"type": "image", "source": {"type": "base64", "media_type": "x", "data": "AA=="}}],
                },
                {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "x"}]},
            ],
            "tools": [{"name": "f", "input_schema": {"type": "object"}}],
            "thinking": {"type": "enabled", "budget_tokens": 1024},
            "stream": True,
        },
    ),
    "gemini": (
        "/v1beta/models/g:streamGenerateContent",
        {
            "contents": [
                {"role": "user", "parts": [{"text": "hi"}, {"inlineData": {"mimeType": "image/png", "data": "AA=="}}]}
            ],
            "tools": [{"functionDeclarations": [TOOL]}],
            "toolConfig": {"functionCallingConfig": {"mode": "AUTO"}},
            "generationConfig": {"maxOutputTokens": 5, "thinkingConfig": {"thinkingBudget": 5}, "candidateCount": 1},
            "safetySettings": [{"category": "C", "threshold": "T"}],
        },
    ),
    "embeddings": (
        "/v1/embeddings",
        {"model": "m", "input": ["a", [1, 2]], "encoding_format": "float", "dimensions": 5},
    ),
    "counts": ("/v1/messages/count_tokens", {"model": "m", "messages": [{"role": "user", "content": "hi"}]}),
}
MESSAGE = {
    "id": "m",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [
        {"type": "text", "text": "a", "citations": []},
        {"type": "tool_use", "id": "t", "name": "f", "input": {}},
    ],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 1, "output_tokens": 1, "cache_read_input_tokens": 1, "service_tier": "standard"},
}
OUTPUT = {
    "id": "o",
    "type": "message",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "a", "annotations": []}],
}
RESPONSE = {
    "id": "r",
    "object": "response",
    "status": "completed",
    "model": "m",
    "output": [OUTPUT, {"type": "function_call", "name": "f", "arguments": "{}", "call_id": "c", "id": "fc"}],
    "usage": {"input_tokens": 1, "output_tokens": 1, "input_tokens_details": {"cached_tokens": 1}},
    "error": None,
}
CANDIDATE = {
    "index": 0,
    "content": {"role": "model", "parts": [{"text": "a"}, {"functionCall": {"name": "f", "args": {}}}]},
}
ANSWERS: dict[str, list[dict[str, Any]]] = {
    "chat": [
        {
            "id": "c",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "m",
            "service_tier": "default",
            "choices": [
                {
                    "index": 0,
                    "delta": {"role": "assistant", "content": "a", "refusal": None, "tool_calls": [CALL]},
                    "logprobs": {"content": [{"token": "a", "logprob": -0.1, "bytes": [97], "top_logprobs": []}]},
                    "finish_reason": "stop",
                }
            ],
            "usage": USAGE,
        },
        {
            "id": "c",
            "object": "chat.completion",
            "choices": [{"index": 0, "message": {"content": "a"}, "finish_reason": "stop"}],
        },
        {"error": {"message": "m", "type": "t", "code": 503}},
    ],
    "responses": [
        {"type": "response.created", "response": {**RESPONSE, "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": OUTPUT},
        {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "item_id": "o", "delta": "a"},
        {"type": "response.completed", "response": RESPONSE},
        {"type": "error", "code": "c", "message": "m"},
        RESPONSE,
    ],
    "messages": [
        {"type": "message_start", "message": {**MESSAGE, "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "a"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "citations_delta", "citation": {"type": "x"}}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
        {"type": "error", "error": {"type": "overloaded_error", "message": "m"}},
        MESSAGE,
    ],
    "gemini": [
        {
            "candidates": [{**CANDIDATE, "finishReason": "STOP", "safetyRatings": [{"category": "C"}]}],
            "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "thoughtsTokenCount": 1},
            "modelVersion": "g",
            "promptFeedback": {"blockReason": "X"},
        },
        {
            "error": {
                "code": 503,
                "message": "m",
                "status": "UNAVAILABLE",
                "details": [{"@type": "t", "retryDelay": "3s"}],
            }
        },
    ],
    "embeddings": [{"object": "list", "data": [{"embedding": [0.1], "index": 0}], "usage": {"prompt_tokens": 1}}],
    "counts": [{"input_tokens": 5}],
}
STATUSES = (400, 429, 503)


def altered(value: Any) -> Iterator[Any]:
    """The value with each of its parts, itself included, replaced by each odd one."""
    for path in list(paths(value)):
        for odd in ODD:
            whole = {"": copy.deepcopy(value)}
            holder: Any = whole
            for step in ("", *path)[:-1]:
                holder = holder[step]
            holder[("", *path)[-1]] = odd
            yield whole[""]


def paths(value: Any, here: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield here
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from paths(inner, (*here, key))


def request(path: str, body: Any) -> WireRequest:
    return WireRequest(method="POST", path=path, headers=(), body=json.dumps(body).encode())


@pytest.mark.parametrize("name", REQUESTS)
def test_no_request_with_an_odd_value_raises(name: str) -> None:
    path, good = REQUESTS[name]
    dialect = dialect_for(request(path, good))
    assert not dialect.facts(request(path, good)).forbidden
    for body in altered(good):
        dialect.facts(request(path, body))
        if isinstance(dialect, StreamingDialect):
            dialect.streamed(request(path, body))


def bodies_of(answer: Any) -> Iterator[tuple[bytes, bytes]]:
    data = json.dumps(answer).encode()
    kind = answer.get("type") if isinstance(answer, dict) else None
    event = f"event: {kind}\n" if isinstance(kind, str) else ""
    yield b"text/event-stream", event.encode() + b"data: " + data + b"\n\n"
    yield b"application/json", data


@pytest.mark.parametrize("name", ANSWERS)
def test_no_answer_with_an_odd_value_raises(name: str) -> None:
    path, good = REQUESTS[name]
    dialect = dialect_for(request(path, good))
    facts = dialect.facts(request(path, good))
    for before, answer in enumerate(ANSWERS[name]):
        opening = b"".join(next(bodies_of(each))[1] for each in ANSWERS[name][:before])
        for odd in altered(answer):
            for status in STATUSES:
                dialect.failure(status, (), json.dumps(odd).encode())
            for kind, body in bodies_of(odd):
                headers = ((b"content-type", kind),)
                readers: list[Any] = [dialect.reader(facts, headers)]
                if isinstance(dialect, StreamingDialect):
                    readers.append(dialect.assembling_reader(facts, headers))
                for reader in readers:
                    reader.feed((opening if kind.startswith(b"text") else b"") + body)
                    reader.finish()
                if len(readers) == 2:
                    readers[1].error_response()
                    if readers[1].facts.ended and readers[1].complete:
                        readers[1].response()
