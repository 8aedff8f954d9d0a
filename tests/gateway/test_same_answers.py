"""What a client gets through the gateway is what it would have got without it: the same bytes, or of an answer that was put
together the same JSON."""

import json
import re
from base64 import b64encode
from typing import Any

import httpx2
import pytest
from tests.sdk.racing import scripted

from hedgerow.testing.process import SandboxProcess

USER: Any = [{"role": "user", "content": "hi"}]
WEATHER = {"type": "object", "properties": {"city": {"type": "string"}}}
TOOLS = [{"type": "function", "function": {"name": name, "parameters": WEATHER}} for name in ("weather", "time")]
IMAGE = f"data:image/png;base64,{b64encode(bytes(range(256)) * 40).decode()}"
PICTURE = [{"type": "text", "text": "what is this?"}, {"type": "image_url", "image_url": {"url": IMAGE}}]
LARGE = [{"role": "user", "content": "long " * 1_000_000}]  # 5 MB
ONE_TOKEN = {"token": "hi", "logprob": -0.1, "bytes": [104, 105], "top_logprobs": []}
WITH_LOGPROBS = {
    "id": "c",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "hi", "refusal": None},
            "logprobs": {"content": [ONE_TOKEN], "refusal": None},
            "finish_reason": "stop",
        }
    ],
}
CALLS: Any = {"tool_calls": 1}
CHAT, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/responses", "/v1/messages"
GEMINI = "/v1beta/models/g:generateContent"
CONTENTS = {
    "contents": [{"role": "user", "parts": [{"text": "hi"}, {"inlineData": {"mimeType": "a/b", "data": "AAAA"}}]}]
}
DECLARED = {"tools": [{"functionDeclarations": [{"name": "weather", "parameters": WEATHER}]}]}
ANTHROPICS = {"tools": [{"name": "weather", "input_schema": WEATHER}], "max_tokens": 900, "messages": USER}

WHOLE: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "chat": (CHAT, {"messages": USER}, {}),
    "a tool call": (CHAT, {"messages": USER, "tools": TOOLS}, CALLS),
    "parallel tool calls": (CHAT, {"messages": USER, "tools": TOOLS, "parallel_tool_calls": True}, {"tool_calls": 3}),
    "an image": (CHAT, {"messages": [{"role": "user", "content": PICTURE}]}, {}),
    "three choices": (CHAT, {"messages": USER, "n": 3}, {}),
    "reasoning": (CHAT, {"messages": USER, "reasoning_effort": "low"}, {"reasoning_tokens": 20}),
    "a refusal": (CHAT, {"messages": USER}, {"refusal": "I would rather not."}),
    "a 5 MB body": (CHAT, {"messages": LARGE}, {}),
    "responses": (RESPONSES, {"input": "hi", "store": False}, {}),
    "responses with tools": (
        RESPONSES,
        {"input": "hi", "store": False, "tools": [{"type": "function", "name": "w"}]},
        CALLS,
    ),
    "anthropic": (MESSAGES, {"messages": USER, "max_tokens": 900}, {}),
    "anthropic tools": (MESSAGES, ANTHROPICS, {"tool_calls": 2}),
    "anthropic thinking": (MESSAGES, {"messages": USER, "max_tokens": 900}, {"reasoning_tokens": 20}),
    "gemini": (GEMINI, CONTENTS, {}),
    "gemini tools": (GEMINI, {**CONTENTS, **DECLARED}, {"tool_calls": 2}),
}
AS_THEY_CAME = WHOLE | {
    "logprobs": (CHAT, {"messages": USER, "logprobs": True}, {"raw_body": json.dumps(WITH_LOGPROBS)}),
    "an error": (CHAT, {"messages": USER}, {"status": 400, "error_frame": {"error": {"message": "no", "code": "x"}}}),
    "embeddings": ("/v1/embeddings", {"input": ["a", "b"]}, {}),
    "models": ("/v1/models", {}, {}),
}


def streamed(path: str, body: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The same call, as a stream."""
    if path == GEMINI:
        return path.replace(":generate", ":streamGenerate") + "?alt=sse", body
    return path, {**body, "stream": True, **({"stream_options": {"include_usage": True}} if path == CHAT else {})}


async def answer_of(
    url: str, path: str, body: dict[str, Any], script: dict[str, Any], by: str
) -> tuple[int, str, bytes]:
    """Status, content type and body. by: who asks, which the sandbox's draws do not depend on."""
    quick = {"first_token_s": 0.01, "token_s": 0.0, "tokens": 30, **script}
    method = "POST" if body else "GET"
    async with httpx2.AsyncClient(timeout=60.0) as client:
        named = body if path.startswith("/v1beta") or not body else {"model": "m", **body}
        got = await client.request(method, url + path, json=named or None, headers=scripted(f"{by}/same", quick))
    return got.status_code, got.headers["content-type"], without_marks(got.content)


def without_marks(body: bytes) -> bytes:
    """The body without what is another for each answer: its number in the sandbox, and the second it was made."""
    body = re.sub(rb'"(created|created_at|completed_at)":[0-9.]+', rb'"\1":0', body)
    return re.sub(rb"[0-9a-f]{22}(?![0-9a-f])", b"ID", body)


@pytest.mark.parametrize("as_stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(("path", "body", "script"), AS_THEY_CAME.values(), ids=AS_THEY_CAME)
async def test_the_bytes_are_the_providers(
    start: Any,
    hedgerow_sandbox: SandboxProcess,
    path: str,
    body: dict[str, Any],
    script: dict[str, Any],
    as_stream: bool,
) -> None:
    if as_stream and path in (CHAT, RESPONSES, MESSAGES, GEMINI) and "raw_body" not in script:
        path, body = streamed(path, body)
    gateway = await start({"delay": 600.0})
    direct = await answer_of(hedgerow_sandbox.url, path, body, script, "direct")
    assert await answer_of(gateway.url, path, body, script, "gateway") == direct
    assert direct[0] == script.get("status", 200)


@pytest.mark.parametrize(("path", "body", "script"), WHOLE.values(), ids=WHOLE)
async def test_an_answer_that_was_streamed_upstream_is_the_whole_one(
    start: Any, hedgerow_sandbox: SandboxProcess, path: str, body: dict[str, Any], script: dict[str, Any]
) -> None:
    gateway = await start({"upstream_stream": True, "delay": 600.0, "allow": ["n", "images"]})
    status, kind, direct = await answer_of(hedgerow_sandbox.url, path, body, script, "direct")
    again = await answer_of(gateway.url, path, body, script, "gateway")
    assert again[:2] == (status, kind) == (200, "application/json")
    assert json.loads(again[2]) == json.loads(direct)
    assert next(iter(gateway.hedger.events)).upstream_stream


async def test_a_json_array_that_comes_bit_by_bit_is_the_providers(
    start: Any, hedgerow_sandbox: SandboxProcess
) -> None:
    pieces = [{"candidates": [{"content": {"parts": [{"text": text}], "role": "model"}, "index": 0}]} for text in "abc"]
    pieces[-1]["candidates"][0]["finishReason"] = "STOP"
    script = {
        "headers": {"content-type": "application/json; charset=UTF-8"},
        "raw_body": "[" + ",\r\n".join(json.dumps(piece, indent=2) for piece in pieces) + "\n]\n",
        "chunk_bytes": 7,
    }
    path = GEMINI.replace(":generate", ":streamGenerate")
    gateway = await start({"delay": 600.0})
    direct = await answer_of(hedgerow_sandbox.url, path, CONTENTS, script, "direct")
    assert await answer_of(gateway.url, path, CONTENTS, script, "gateway") == direct
    assert len(json.loads(direct[2])) == 3
    (event,) = gateway.hedger.events
    assert (event.stream, event.outcome) == (True, "answered")
    assert event.first_token_s is not None
