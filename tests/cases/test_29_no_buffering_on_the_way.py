"""LiteLLM PR 29557: a reverse proxy in front of the gateway kept streams back until they were whole.

Right: every stream says `x-accel-buffering: no`, whatever its framing, also the one that begins with a keep-alive comment; the
gateway compresses nothing, whatever the client would accept; and what the provider has sent is with the client before the
provider sends more.
"""

import json
import zlib
from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from tests.cases.support import NEVER_S
from tests.gateway.raw_client import CHAT, RawClient, request_of
from tests.gateway.upstreams import bare_upstream
from tests.sdk.racing import QUICK, idle, outcomes, scripted

from hedgerow.testing.process import SandboxProcess

Start = Callable[..., Any]
CONTENTS = {"contents": [{"parts": [{"text": "hi"}]}]}
SAID = {
    "candidates": [{"content": {"role": "model", "parts": [{"text": "first"}]}, "finishReason": "STOP", "index": 0}]
}
AS_ARRAY = {"headers": {"content-type": "application/json; charset=UTF-8"}, "raw_body": f"[{json.dumps(SAID)}\n"}
STREAMS: dict[str, tuple[str, dict[str, Any]]] = {
    "chat": ("/v1/chat/completions", {**CHAT, "stream": True}),
    "responses": ("/v1/responses", {"model": "m", "input": "hi", "store": False, "stream": True}),
    "anthropic": ("/v1/messages", {**CHAT, "max_tokens": 100, "stream": True}),
    "gemini": ("/v1beta/models/g:streamGenerateContent?alt=sse", CONTENTS),
}
each_stream_and_array = pytest.mark.parametrize(
    ("path", "body", "script"),
    [
        *((path, body, {"text": "first second third"}) for path, body in STREAMS.values()),
        ("/v1beta/models/g:streamGenerateContent", CONTENTS, AS_ARRAY),
    ],
    ids=[*STREAMS, "gemini, JSON array"],
)
EVERY_CODING = {"accept-encoding": "gzip, deflate, br, zstd"}


@each_stream_and_array
async def test_every_stream_tells_a_proxy_not_to_keep_it_back(
    start: Start, path: str, body: dict[str, Any], script: dict[str, Any]
) -> None:
    gateway = await start()
    async with httpx2.AsyncClient() as client:
        got = await client.post(
            gateway.url + path, json=body, headers={**EVERY_CODING, **scripted("29", QUICK | script)}
        )
    assert (got.status_code, got.headers.get_list("x-accel-buffering")) == (200, ["no"])
    assert "content-encoding" not in got.headers


@each_stream_and_array
async def test_the_first_token_is_with_the_client_before_the_provider_sends_the_next(
    start: Start, hedgerow_sandbox: SandboxProcess, path: str, body: dict[str, Any], script: dict[str, Any]
) -> None:
    gateway = await start({"trigger": "off"})
    client = await RawClient.connect(gateway.url)
    stalls = {"first_token_s": 0.0, "stall": {"after": 1, "s": NEVER_S}, **script}
    try:
        await client.send(request_of(path, body, **EVERY_CODING, **scripted("29", stalls)))
        assert b"second" not in await client.read_until(b"first")
        assert outcomes(hedgerow_sandbox, "29") == [None]
    finally:
        client.close()
    await idle(hedgerow_sandbox)


async def test_what_a_provider_tells_its_own_proxy_does_not_reach_ours(start: Start) -> None:
    gateway = await start()
    theirs = {"x-accel-buffering": "yes", "x-accel-redirect": "/internal/", "X-Accel-Limit-Rate": "1"}
    path, body = STREAMS["chat"]
    async with httpx2.AsyncClient() as client:
        script = scripted("29", QUICK | {"headers": theirs})
        got = await client.post(gateway.url + path, json=body, headers=script)
    assert [pair for pair in got.headers.multi_items() if pair[0].startswith("x-accel")] == [
        ("x-accel-buffering", "no")
    ]


async def test_a_stream_that_the_provider_compresses_passes_as_it_comes(start: Start) -> None:
    pack, chunk = zlib.compressobj(wbits=31), b'data: {"choices":[{"index":0,"delta":{"content":"first"}}]}\n\n'
    packed = pack.compress(chunk) + pack.flush(zlib.Z_SYNC_FLUSH)
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: gzip\r\nconnection: close\r\n\r\n"
    async with bare_upstream() as bare:
        bare.answers = [head + packed]
        target = {"name": "t", "dialect": "openai", "base_url": f"{bare.url}/v1", "api_key": "their-key"}
        gateway = await start(
            {"trigger": "off"}, target=[target], route=[{"path": "*", "targets": ["t"], "policy": "soon"}]
        )
        client = await RawClient.connect(gateway.url)
        try:
            await client.send(request_of("/v1/chat/completions", {**CHAT, "stream": True}, **EVERY_CODING))
            got = await client.read_until(packed)
        finally:
            client.close()
    assert b"content-encoding: gzip" in got.partition(b"\r\n\r\n")[0]
