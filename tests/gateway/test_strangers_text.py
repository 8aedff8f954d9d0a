"""Text that clients and providers choose: what goes on stays as sent, what is kept or shown is short and clean."""

from collections.abc import AsyncIterator, Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import httpx2
import orjson
import pytest
from tests.gateway.running import Running
from tests.gateway.upstreams import Bare, answer, bare_upstream
from tests.sdk.racing import eventually

from hedgerow.gateway.client_keys import digest_of

Start = Callable[..., Any]

SECRET = "SECRETPROMPT"
LONG = "a" * 300 + SECRET * 4_000
SAY = {"role": "user", "content": "hi"}
JSON = "content-type: application/json"


def whole(**fields: Any) -> bytes:
    """A chat completion."""
    choice = {"index": 0, "message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return orjson.dumps(
        {"id": "c", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage, **fields}
    )


@pytest.fixture
async def bare() -> AsyncIterator[Bare]:
    async with bare_upstream() as upstream:
        upstream.answers = [answer(whole(), JSON)]
        yield upstream


def tables(bare: Bare, folder: Path, dialect: str = "openai", **route: Any) -> dict[str, Any]:
    base_url = f"{bare.url}/v1" if dialect == "openai" else bare.url
    return {
        "gateway": {"listen": "127.0.0.1:0", "events": f"sqlite:///{folder}/calls.db"},
        "target": [{"name": "t", "dialect": dialect, "base_url": base_url, "api_key": "their-key"}],
        "route": [{"path": "*", "targets": ["t"], "policy": "soon", **route}],
    }


async def post(gateway: Running, path: str, body: dict[str, Any], **headers: str) -> httpx2.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    async with httpx2.AsyncClient(timeout=30.0) as client:
        return await client.post(f"{gateway.url}{path}", content=orjson.dumps(body), headers=named)


async def nothing_long_is_kept(gateway: Running, got: httpx2.Response, logged: str) -> None:
    """Not in our headers, the event, the statistics or the log; and what is kept is on one line."""
    ours = {name: value for name, value in got.headers.items() if name.startswith(("hedgerow-", "server-timing"))}
    await eventually(lambda: len(list(gateway.house.store)) == 1)
    (event,) = gateway.house.store
    async with httpx2.AsyncClient() as client:
        stats = (await client.get(f"{gateway.url}/admin/stats")).text
    for told in (str(ours), repr(event), stats, logged):
        assert SECRET.lower() not in told.lower()
        assert len(told) < 10_000
    texts = [value for part in (event, *event.attempts) for value in asdict(part).values() if isinstance(value, str)]
    assert all(text.isprintable() and len(text) <= 300 for text in texts)


FIELDS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "a field": ("openai", "/v1/chat/completions", {"model": "m", "messages": [SAY], LONG: 1}),
    "a short field": (
        "openai",
        "/v1/chat/completions",
        {"model": "m", "messages": [SAY], f"{SECRET} is what I ask": 1},
    ),
    "a responses field": ("openai", "/v1/responses", {"model": "m", "input": "hi", LONG: 1}),
    "a messages field": ("anthropic", "/v1/messages", {"model": "m", "max_tokens": 9, "messages": [SAY], LONG: 1}),
    "a gemini field": ("gemini", "/v1beta/models/m:generateContent", {"contents": [], LONG: 1}),
    "a tool": ("openai", "/v1/chat/completions", {"model": "m", "messages": [SAY], "tools": [{"type": LONG}]}),
    "an anthropic tool": ("anthropic", "/v1/messages", {"model": "m", "messages": [SAY], "tools": [{"type": LONG}]}),
    "a modality": ("openai", "/v1/chat/completions", {"model": "m", "messages": [SAY], "modalities": [{"x": LONG}]}),
    "an odd model": ("openai", "/v1/chat/completions", {"model": "m\r\nx\x00", "messages": [SAY]}),
    "an odd responses model": ("openai", "/v1/responses", {"model": "m\u2028\u202e", "input": "hi"}),
    "an odd model in an address": ("gemini", "/v1beta/models/m%E2%80%AEx:generateContent", {"contents": []}),
    "an odd effort": ("openai", "/v1/chat/completions", {"model": "m", "messages": [SAY], "reasoning_effort": "a\nb"}),
    "an effort": ("openai", "/v1/chat/completions", {"model": "m", "messages": [SAY], "reasoning_effort": LONG}),
    "a responses effort": ("openai", "/v1/responses", {"model": "m", "input": "hi", "reasoning": {"effort": LONG}}),
    "a messages effort": (
        "anthropic",
        "/v1/messages",
        {"model": "m", "messages": [SAY], "output_config": {"effort": LONG}},
    ),
}


@pytest.mark.parametrize(("dialect", "path", "body"), FIELDS.values(), ids=FIELDS)
async def test_what_a_client_chooses_goes_on_as_sent_and_is_kept_nowhere(
    start: Start,
    bare: Bare,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    dialect: str,
    path: str,
    body: dict[str, Any],
) -> None:
    gateway: Running = await start(**tables(bare, tmp_path, dialect))
    got = await post(gateway, path, body, **({"anthropic_version": "2023-06-01"} if dialect == "anthropic" else {}))
    assert got.status_code == 200, got.text
    assert orjson.loads(bare.last_body) == body
    await nothing_long_is_kept(gateway, got, caplog.text)


ANSWERS: dict[str, bytes] = {
    "a model": answer(whole(model=LONG), JSON),
    "an odd model": answer(whole(model="m\n\x1b[2J"), JSON),
    "a tier": answer(whole(service_tier=LONG), JSON),
    "an id": answer(whole(), JSON, f"x-request-id: {LONG}"),
    "an id of high characters": answer(whole(), JSON, "request-id: a\x85b"),
    "a finish reason": answer(whole(choices=[{"index": 0, "message": {"content": "a"}, "finish_reason": LONG}]), JSON),
    "an error's code": answer(orjson.dumps({"error": {"code": LONG, "message": "no"}}), JSON, status="400 Bad Request"),
    "an error's type": answer(orjson.dumps({"error": {"type": LONG}}), JSON, status="404 Not Found"),
    "an error's odd code": answer(orjson.dumps({"error": {"code": "no\tsuch\x00"}}), JSON, status="400 Bad Request"),
    "an error in a 200": answer(orjson.dumps({"error": {"code": LONG, "message": "no"}}), JSON),
    "counts": answer(whole(usage={"prompt_tokens": 2**60, "completion_tokens": 2**62}), JSON),
}


@pytest.mark.parametrize("said", ANSWERS.values(), ids=ANSWERS)
async def test_what_a_provider_chooses_reaches_the_client_and_is_kept_nowhere(
    start: Start, bare: Bare, tmp_path: Path, caplog: pytest.LogCaptureFixture, said: bytes
) -> None:
    bare.answers = [said]
    gateway: Running = await start(**tables(bare, tmp_path))
    got = await post(gateway, "/v1/chat/completions", {"model": "m", "messages": [SAY]})
    assert got.content == said.partition(b"\r\n\r\n")[2]
    for name in ("x-request-id", "request-id"):
        assert (f"\r\n{name}:" in said.partition(b"\r\n\r\n")[0].decode("latin-1")) == (name in got.headers)
    await nothing_long_is_kept(gateway, got, caplog.text)
    (event,) = gateway.house.store
    for attempt in event.attempts:
        assert all(count is None or count <= 2**53 for count in (attempt.input_tokens, attempt.output_tokens))


@pytest.mark.parametrize("segment", [LONG[:20_000], "a\x85b", "a\tb" * 200])
async def test_a_segment_is_kept_short(
    start: Start, bare: Bare, tmp_path: Path, caplog: pytest.LogCaptureFixture, segment: str
) -> None:
    key = {"name": "k", "sha256": digest_of("s3cret"), "trust_segment": "header"}
    gateway: Running = await start(**(tables(bare, tmp_path) | {"client_key": [key]}))
    headers = {b"authorization": b"Bearer s3cret", b"hedgerow-segment": segment.encode("latin-1")}
    async with httpx2.AsyncClient(timeout=30.0) as client:
        got = await client.post(
            f"{gateway.url}/v1/chat/completions", json={"model": "m", "messages": [SAY]}, headers=headers
        )
    assert got.status_code == 200
    await nothing_long_is_kept(gateway, got, caplog.text)


@pytest.mark.parametrize("deadline", ["1e300", "9" * 400, "inf", "nan", "x" * 5_000])
async def test_a_deadline_that_no_call_has_is_refused_in_short(
    start: Start, bare: Bare, tmp_path: Path, deadline: str
) -> None:
    gateway: Running = await start(**tables(bare, tmp_path))
    got = await post(gateway, "/v1/chat/completions", {"model": "m"}, hedgerow_deadline_ms=deadline)
    assert (got.status_code, got.json()["error"]["code"]) == (400, "bad_header")
    assert len(got.text) < 400
    assert not bare.asked


@pytest.mark.parametrize("model", ["m-mini" + "a" * 300, "m-" + "a" * 300 + "-mini", "m-mini" + "\n" * 300])
@pytest.mark.parametrize("pattern", ["*", "m-*"])
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/chat/completions", {"messages": [SAY]}),
        ("/openai/deployments/m-mini/chat/completions", {"messages": [SAY]}),
        ("/v1/responses", {"input": "hi"}),
        ("/v1/embeddings", {"input": "hi"}),
        ("/v1/images/generations", {"prompt": "hi"}),
    ],
)
async def test_no_route_is_for_a_model_that_it_cannot_see_to_its_end(
    start: Start, bare: Bare, tmp_path: Path, path: str, body: dict[str, Any], model: str, pattern: str
) -> None:
    gateway: Running = await start(**tables(bare, tmp_path, model=pattern))
    assert (await post(gateway, path, body | {"model": "m-mini"})).status_code == 200
    got = await post(gateway, path, body | {"model": model})
    assert (got.status_code, got.json()["error"]["code"]) == (404, "no_route")
    assert len(got.text) < 600
    assert len(bare.asked) == 1


@pytest.mark.parametrize("method", ["generateContent", "streamGenerateContent", "countTokens"])
async def test_nor_for_one_in_an_address(start: Start, bare: Bare, tmp_path: Path, method: str) -> None:
    gateway: Running = await start(**tables(bare, tmp_path, "gemini"))
    got = await post(gateway, f"/v1beta/models/{'g' * 300}:{method}", {"contents": []})
    assert got.status_code == 404
    assert not bare.asked
