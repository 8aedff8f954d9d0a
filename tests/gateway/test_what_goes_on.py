"""What of a request goes on to a provider, and what of its answer comes back: bodies untouched, keys and hops filtered."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx2
import orjson
import pytest
from tests.gateway.raw_client import RawClient, request_of
from tests.gateway.running import SOON
from tests.gateway.upstreams import Bare, answer, bare_upstream

from hedgerow.gateway import connecting

Start = Callable[..., Any]

CHAT = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
WHOLE = {
    "id": "c",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
}
DIALECTS = {
    "openai": ("/v1/chat/completions", "authorization", "Bearer their-key"),
    "anthropic": ("/v1/messages", "x-api-key", "their-key"),
    "gemini": ("/v1beta/models/g:generateContent", "x-goog-api-key", "their-key"),
}


@pytest.fixture
async def bare() -> AsyncIterator[Bare]:
    async with bare_upstream() as upstream:
        upstream.answers = [answer(orjson.dumps(WHOLE), "content-type: application/json", "x-request-id: theirs")]
        yield upstream


def tables(bare: Bare, dialect: str = "openai", **target: Any) -> dict[str, Any]:
    base_url = f"{bare.url}/v1" if dialect == "openai" else bare.url
    first = {"name": "t", "dialect": dialect, "base_url": base_url, "api_key": "their-key", **target}
    return {"target": [first], "route": [{"path": "*", "targets": ["t"], "policy": "soon"}]}


async def post(url: str, path: str, body: Any = None, **headers: str) -> httpx2.Response:
    content = body if isinstance(body, bytes) else orjson.dumps(CHAT if body is None else body)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    async with httpx2.AsyncClient() as client:
        return await client.post(url + path, content=content, headers={"content-type": "application/json", **named})


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("header", ["authorization", "x_api_key", "x_goog_api_key", "?key="])
async def test_a_clients_key_stays_here_and_the_targets_own_goes_where_its_api_wants_it(
    start: Start, bare: Bare, dialect: str, header: str
) -> None:
    gateway = await start(**tables(bare, dialect))
    path, wanted, value = DIALECTS[dialect]
    if header == "?key=":
        await post(gateway.url, f"{path}?key=clients-secret&x=1")
    else:
        await post(
            gateway.url, path, **{header: "Bearer clients-secret" if header == "authorization" else "clients-secret"}
        )
    assert bare.last_headers[wanted] == value
    assert "clients-secret" not in bare.last_head
    assert bare.last_head.split("\r\n")[0].endswith("?x=1 HTTP/1.1" if header == "?key=" else "HTTP/1.1")


async def test_azures_clients_find_their_key_where_they_put_it(start: Start, bare: Bare) -> None:
    gateway = await start(**tables(bare))
    await post(gateway.url, "/v1/chat/completions", api_key="clients-secret")
    assert bare.last_headers["api-key"] == "their-key"
    assert "authorization" not in bare.last_headers


async def test_a_clients_own_key_goes_through_where_the_file_says_so(start: Start, bare: Bare) -> None:
    gateway = await start(**tables(bare, api_key="client"))
    await post(gateway.url, "/v1/chat/completions", authorization="Bearer sk-mine", openai_organization="org")
    assert bare.last_headers["authorization"] == "Bearer sk-mine"
    assert bare.last_headers["openai-organization"] == "org"
    await post(gateway.url, "/v1/chat/completions?key=mine&a=b")
    assert "/v1/chat/completions?a=b&key=mine " in bare.last_head


async def test_the_body_goes_on_byte_for_byte_and_so_does_the_answer(start: Start, bare: Bare) -> None:
    odd = b'{ "model":"m" ,"messages": [{"role":"user","content":"\xc3\xa9\\u00e9"}],  "x_unknown": 1.50 }\n'
    body = b'{"id": "c",   "choices":[{"index":0,"message":{"role":"assistant","content":"\\u0041"},"finish_reason":"stop"}]}'
    bare.answers = [answer(body, "content-type: application/json; odd=1", "x-request-id: theirs", "x-Custom: v")]
    gateway = await start(**tables(bare))
    got = await post(gateway.url, "/v1/chat/completions", odd)
    assert bare.last_body == odd
    assert got.content == body
    assert got.headers["content-type"] == "application/json; odd=1"
    assert (got.headers["x-request-id"], got.headers["x-custom"]) == ("theirs", "v")


async def test_the_gateway_adds_no_header_upstream_and_drops_those_of_the_way(start: Start, bare: Bare) -> None:
    gateway = await start(**tables(bare))
    await post(
        gateway.url,
        "/v1/chat/completions",
        connection="keep-alive, x-hop",
        x_hop="1",
        x_forwarded_for="10.0.0.7",
        cookie="session=1",
        hedgerow_segment="pro",
        x_conversation_id="lives on",
        openai_beta="kept",
        accept="application/json",
        user_agent="mine/1",
        accept_encoding="br, gzip",
    )
    assert bare.last_headers == {
        "host": bare.url.removeprefix("http://"),
        "accept": "application/json",
        "accept-encoding": "gzip",
        "user-agent": "mine/1",
        "content-type": "application/json",
        "openai-beta": "kept",
        "authorization": "Bearer their-key",
        "content-length": str(len(orjson.dumps(CHAT))),
    }


async def test_what_a_target_sets_is_laid_over_the_body(start: Start, bare: Bare) -> None:
    over = {"service_tier": "priority", "metadata": {"a": "1"}}
    gateway = await start(**tables(bare, set=over))
    await post(gateway.url, "/v1/chat/completions", {**CHAT, "metadata": {"b": "2"}})
    assert orjson.loads(bare.last_body) == {**CHAT, "service_tier": "priority", "metadata": {"b": "2", "a": "1"}}


async def test_a_set_model_stands_in_googles_address(start: Start, bare: Bare) -> None:
    gateway = await start(**tables(bare, "gemini", set={"model": "gemini-b"}))
    await post(gateway.url, "/v1beta/models/gemini-a:generateContent", {"contents": []})
    assert "/v1beta/models/gemini-b:generateContent " in bare.last_head
    assert orjson.loads(bare.last_body) == {"contents": []}


async def test_each_attempt_is_a_span_of_its_own_in_the_clients_trace(start: Start, bare: Bare) -> None:
    gateway = await start(**tables(bare))
    trace, span = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
    spans = set[str]()
    for _ in range(2):
        await post(gateway.url, "/v1/chat/completions", traceparent=f"00-{trace}-{span}-01", tracestate="a=b")
        version, same, new, flags = bare.last_headers["traceparent"].split("-")
        assert (version, same, flags, bare.last_headers["tracestate"]) == ("00", trace, "01", "a=b")
        spans.add(new)
        assert bare.last_head.count("traceparent") == 1
    assert len(spans | {span}) == 3
    assert [event.trace_id for event in gateway.hedger.events] == [trace, trace]
    await post(gateway.url, "/v1/chat/completions", traceparent="00-nonsense")
    assert bare.last_headers["traceparent"] == "00-nonsense"


async def test_the_answer_tells_how_it_came_about(start: Start, bare: Bare) -> None:
    gateway = await start(**tables(bare))
    got = await post(gateway.url, "/v1/chat/completions")
    (event,) = gateway.hedger.events
    assert got.headers["hedgerow-id"] == event.id
    assert got.headers["hedgerow-winner"] == "0 t"
    assert (got.headers["hedgerow-attempts"], got.headers["hedgerow-reason"]) == ("1", "hedge")
    assert "total;dur=" in got.headers["server-timing"]
    assert event.route == "*"


async def test_a_provider_cannot_speak_in_the_gateways_name_or_set_cookies(start: Start, bare: Bare) -> None:
    forged = (
        "content-type: application/json",
        "hedgerow-id: forged",
        "set-cookie: a=b",
        "keep-alive: timeout=5",
        "server: x",
    )
    bare.answers = [answer(orjson.dumps(WHOLE), *forged)]
    gateway = await start(**tables(bare))
    got = await post(gateway.url, "/v1/chat/completions")
    assert got.headers.get_list("hedgerow-id") == [next(iter(gateway.hedger.events)).id]
    assert not {"set-cookie", "keep-alive", "server"} & set(got.headers)


@pytest.mark.parametrize("path", ["/v1/models", "/v1/files", "/v1/audio/transcriptions"])
async def test_other_paths_of_a_known_api_pass_through_unhedged(start: Start, bare: Bare, path: str) -> None:
    gateway = await start(SOON, **tables(bare))
    upload = b"--b\r\ncontent-disposition: form-data; name=file; filename=a.wav\r\n\r\n\x00\xff\r\n--b--\r\n"
    got = await post(gateway.url, path, upload, content_type="multipart/form-data; boundary=b")
    assert (got.status_code, bare.last_body) == (200, upload)
    (event,) = gateway.hedger.events
    assert (event.plan, len(event.attempts)) == ("not_safe:endpoint", 1)


async def test_paths_and_models_that_lead_nowhere_are_a_404_in_the_clients_own_dialect(
    start: Start, bare: Bare
) -> None:
    routes = [{"path": "/v1/chat/completions", "model": "gpt-*", "targets": ["t"], "policy": "soon"}]
    gateway = await start(**{**tables(bare), "route": routes})
    got = await post(gateway.url, "/v1/chat/completions")
    assert (got.status_code, got.json()["error"]["code"]) == (404, "no_route")
    assert "model 'm'" in got.json()["error"]["message"]
    for path in ("/nope", "/v1beta/models/g:generateContent", "/v1/messages"):
        assert (await post(gateway.url, path)).status_code == 404
    assert (await post(gateway.url, "/v1/messages")).json()["type"] == "error"
    assert (await post(gateway.url, "/v1beta/models/g:countTokens")).json()["error"]["status"] == "NOT_FOUND"
    assert (await post(gateway.url, "/v1/chat/completions", {**CHAT, "model": "GPT-4o"})).status_code == 200
    assert len(bare.asked) == 1
    assert (
        await post(gateway.url, "/v1/models")
    ).status_code == 404  # the API is known, and there is a target, but no route
    assert len(bare.asked) == 1


async def test_no_redirect_is_followed_and_no_address_of_a_clients_reached(start: Start, bare: Bare) -> None:
    bare.answers = [answer(b"", "location: http://127.0.0.1:1/", status="302 Found")]
    gateway = await start(**tables(bare))
    assert (await post(gateway.url, "/v1/files")).status_code == 302
    assert (await post(gateway.url, "/v1/%2e%2e/%2e%2e/secret")).status_code == 400
    assert len(bare.asked) == 1


@pytest.mark.parametrize("body", [b"", b"half"])
async def test_what_breaks_off_reaches_the_client_as_far_as_it_came_and_its_end_shows(
    start: Start, bare: Bare, body: bytes
) -> None:
    """Of what cannot end in an error of its own (a file): its head says how long it should be."""
    bare.answers, bare.cuts = [b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n" + body], True
    gateway = await start(**tables(bare))
    client = await RawClient.connect(gateway.url)
    await client.send(b"GET /v1/files/f/content HTTP/1.1\r\nhost: localhost\r\n\r\n")
    head, _, rest = (await client.read_to_end()).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 ")
    assert b"content-length: 9" in head
    assert rest == body
    client.close()


class Slow(Bare):
    """Says the head of a stream, and the rest when it is `told`."""

    def __init__(self) -> None:
        super().__init__()
        self.told = asyncio.Event()

    async def reply(self, request: bytes, writer: asyncio.StreamWriter) -> bool:  # noqa: ARG002
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
        await self.told.wait()
        writer.write(b"data: 1\n\n")
        return True


async def test_the_head_of_a_stream_that_nobody_hedges_does_not_wait_for_its_first_byte(start: Start) -> None:
    async with bare_upstream(slow := Slow()):
        gateway = await start(**tables(slow))
        client = await RawClient.connect(gateway.url)
        await client.send(b"GET /v1/threads/t/events HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        assert b"text/event-stream" in await client.read_until(b"\r\n\r\n")
        assert b"data: 1" not in client.got
        slow.told.set()
        assert b"data: 1" in await client.read_to_end()
        client.close()


async def test_a_client_is_not_told_where_a_provider_is_that_cannot_be_reached(
    start: Start, bare: Bare, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(*_: object, **__: object) -> None:
        await asyncio.Event().wait()

    gateway = await start({"max_backups": 0}, **tables(bare))
    monkeypatch.setattr(connecting, "CONNECT_S", 0.05)
    monkeypatch.setattr(connecting.aiohappyeyeballs, "start_connection", never)
    got = await post(gateway.url, "/v1/chat/completions")
    assert got.status_code == 504
    assert "ConnectTimeout" in got.text
    assert "127.0.0.1" not in got.text


@pytest.mark.parametrize("connection", ["keep-alive", "close"])
async def test_a_whole_answer_comes_in_one_packet(start: Start, bare: Bare, connection: str) -> None:
    gateway = await start(**tables(bare))
    client = await RawClient.connect(gateway.url)
    await client.send(request_of("/v1/chat/completions", CHAT, connection=connection))
    got = await asyncio.get_running_loop().sock_recv(client.socket, 65_536)
    assert orjson.loads(got.partition(b"\r\n\r\n")[2]) == WHOLE
    client.close()
