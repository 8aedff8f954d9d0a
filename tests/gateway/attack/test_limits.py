"""Bombs, clients that are slow or idle, TLS that is not what it says, and stores that fail."""

import asyncio
import gzip
import ssl
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.gateway.attack.conftest import Three
from tests.gateway.attack.test_raw_requests import CLOSE, HOST, JSON, post
from tests.gateway.raw_client import RawClient
from tests.gateway.upstreams import Bare, answer, bare_upstream
from tests.sdk.racing import eventually

from hedgerow.gateway import client as client_side
from hedgerow.gateway import patience

Start = Callable[..., Awaitable[Three]]
MB = 1_000_000
JSON_TYPE = "content-type: application/json"
EVENTS = "content-type: text/event-stream"
CHUNK = b'data: {"choices":[{"index":0,"delta":{"content":"%b"}}]}\n\n'


def streamed(*texts: bytes) -> bytes:
    return answer(b"".join(CHUNK % text for text in texts) + b"data: [DONE]\n\n", EVENTS)


@pytest.mark.parametrize(
    ("body", "lines", "status"),
    [
        (gzip.compress(b'{"model":"gpt-x","x":"' + b"a" * 100 * MB + b'"}'), b"content-encoding: gzip\r\n", 413),
        (gzip.compress(gzip.compress(b"a" * 100 * MB)), b"content-encoding: gzip\r\n", 200),  # one layer only
        (b'{"model":"gpt-x","messages":[' + b"{}," * 2 * MB + b"{}]}", b"", 400),
        (b'{"model":"gpt-x","messages":[' + b"[]," * 2 * MB + b"[]]}", b"", 400),
        (b'{"model":"gpt-x",' + b",".join(b'"%d":1' % each for each in range(1_100_000)) + b"}", b"", 400),
        (
            b'{"model":"gpt-x","messages":' + b"[" * 400_000 + b"]" * 400_000 + b"}",
            b"",
            200,
        ),  # depth: passed on, unhedged
        (b"a" * 21 * MB, b"", 413),
    ],
    ids=["gzip", "gzip in gzip", "objects", "lists", "fields", "depth", "length"],
)
async def test_a_bomb_of_a_request_is_refused(three: Three, body: bytes, lines: bytes, status: int) -> None:
    got = await three.say(post(b"/v1/chat/completions", lines, body=body))
    assert got.startswith(b"HTTP/1.1 %d " % status), got[:300]
    assert len(three.reached) == (status == 200)
    assert (await three.say(post())).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    ("said", "status", "code"),
    [
        (answer(b'{"x":"' + b"a" * 2 * MB + b'"}', "content-type: application/json"), 502, b"answer_too_large"),
        (
            answer(gzip.compress(b'{"x":"' + b"a" * 2 * MB + b'"}'), JSON_TYPE, "content-encoding: gzip"),
            502,
            b"answer_too_large",
        ),
        (answer(b"a" * 2 * MB, "content-type: text/html", status="500 Odd"), 502, b"answer_too_large"),
        (answer(b": " + b"a" * 2 * MB + b"\n\n", EVENTS), 502, b"answer_too_large"),
    ],
    ids=["JSON", "gzip", "error", "a comment before content"],
)
async def test_a_bomb_of_an_answer_is_cut_off(behind: Start, said: bytes, status: int, code: bytes) -> None:
    three = await behind({"max_answer": "1MB"})
    provider = three.providers["openai"]
    provider.answers = [said]
    asked = b'{"model":"gpt-x","messages":[{"role":"user","content":"hi"}],"stream":true}'
    got = await three.say(post(body=asked if b"event-stream" in said[:200] else b'{"model":"gpt-x","messages":[]}'))
    assert got.startswith(b"HTTP/1.1 %d " % status), got[:300]
    assert code in got
    assert three.gateway.house.held.now_bytes == 0


async def test_a_stream_that_is_delivered_as_it_comes_may_be_longer(behind: Start) -> None:
    three = await behind({"max_answer": "1MB"})
    three.providers["openai"].answers = [streamed(*[b"a" * 100_000] * 30)]
    got = await three.say(post(body=b'{"model":"gpt-x","messages":[{"role":"user","content":"hi"}],"stream":true}'))
    assert got.startswith(b"HTTP/1.1 200 ")
    assert got.count(b"a" * 100_000) == 30


async def test_all_answers_together_have_a_limit_and_it_is_told_when_to_come_again(behind: Start) -> None:
    three = await behind({"max_held": "1MB"})
    three.providers["openai"].answers = [answer(b'{"x":"' + b"a" * 2 * MB + b'"}', "content-type: application/json")]
    got = await three.say(post())
    assert got.startswith(b"HTTP/1.1 503 ")
    assert b"retry-after: 1" in got
    assert b"max_held" in got
    assert three.gateway.house.held.now_bytes == 0


@pytest.mark.parametrize(
    "said",
    [
        b"POST /v1/chat/completions HTTP/1.1\r\n",
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nx-slow: ",
        b"",
    ],
)
async def test_a_client_that_does_not_end_its_head_is_cut_off(
    three: Three, monkeypatch: pytest.MonkeyPatch, said: bytes
) -> None:
    monkeypatch.setattr(patience, "HEAD_S", 0.1)
    assert b"200" not in await three.say(said)
    assert not three.reached


async def test_a_client_that_does_not_end_its_body_is_told_so(three: Three, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_side, "BODY_PAUSE_S", 0.1)
    got = await three.say(
        b"POST /v1/chat/completions HTTP/1.1\r\n" + HOST + JSON + CLOSE + b"content-length: 99\r\n\r\n{"
    )
    assert got.startswith(b"HTTP/1.1 408 ")
    assert not three.reached


class Silent(Bare):
    """A provider that says nothing until it is left."""

    left = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.asked.append(await reader.readuntil(b"\r\n\r\n"))
        while await reader.read(65_536):
            pass
        self.left += 1
        writer.close()


@pytest.mark.parametrize("how", ["fin", "rst", "half_close"])
@pytest.mark.parametrize("size", [10, 60_000, 70_000, 300_000, 3 * MB])
async def test_whoever_leaves_is_noticed_whatever_was_sent(behind: Start, how: str, size: int) -> None:
    three = await behind()
    async with bare_upstream(Silent()) as silent:
        assert isinstance(silent, Silent)
        target = three.gateway.house.config.targets["openai"]
        object.__setattr__(target, "base_url", type(target.base_url).parse(f"{silent.url}/v1"))
        client = await RawClient.connect(three.gateway.url)
        await client.send(post(body=b'{"model":"gpt-x","messages":[{"role":"user","content":"%b"}]}' % (b"a" * size)))
        await eventually(lambda: bool(silent.asked))
        client.leave(how)
        await eventually(lambda: silent.left == 1)
        client.close()


async def test_a_provider_whose_certificate_nobody_signed_gets_nothing(behind: Start, tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    make = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "1",
    ]
    await asyncio.to_thread(
        subprocess.run,
        [*make, "-keyout", str(key), "-out", str(certificate), "-subj", "/CN=localhost"],
        check=True,
        capture_output=True,
    )
    secure, heard = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), list[bytes]()
    secure.load_cert_chain(certificate, key)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.read(1))
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=secure)
    port = server.sockets[0].getsockname()[1]
    three = await behind()
    target = three.gateway.house.config.targets["openai"]
    object.__setattr__(target, "base_url", type(target.base_url).parse(f"https://127.0.0.1:{port}/v1"))
    got = await three.say(post(b"/v1/responses"))  # whose route has no other target
    assert got.startswith(b"HTTP/1.1 502 ")
    assert b"key-of-" not in got
    assert not b"".join(heard)
    server.close()


@pytest.mark.parametrize("fault", ["deleted", "a folder", "no database"])
async def test_a_store_that_breaks_costs_no_call(behind: Start, tmp_path: Path, fault: str) -> None:
    place = tmp_path / "events.db"
    three = await behind({"events": f"sqlite:///{place}"})
    for beside in tmp_path.glob("events.db*"):
        beside.unlink()
    if fault == "a folder":
        place.mkdir()
    elif fault == "no database":
        place.write_bytes(b"this is no database" * 99)
    for _ in range(3):
        assert (await three.say(post())).startswith(b"HTTP/1.1 200 ")


async def test_a_gateway_with_client_keys_tells_strangers_nothing(behind: Start) -> None:
    from hedgerow.gateway.client_keys import digest_of

    keys: list[dict[str, Any]] = [
        {"name": "narrow", "sha256": digest_of("narrow"), "paths": ["/v1/chat/*"]},
        {"name": "wide", "sha256": digest_of("wide")},
    ]
    three = await behind(client_key=keys)
    for path in (b"/v1/chat/completions", b"/v1/models", b"/nope", b"/admin/stats"):
        got = await three.say(post(path))
        assert got.split()[1] in (b"401", b"403"), got[:300]
        assert b"route" not in got
    for key, path, status in (
        (b"narrow", b"/v1/chat/completions", 200),
        (b"narrow", b"/v1/responses", 403),
        (b"narrow", b"/v1/chat/%63ompletions", 200),
        (b"wide", b"/v1/responses", 200),
        (b"wide", b"/v1/fine_tuning/jobs", 404),
    ):
        three.forget()
        got = await three.say(post(path, b"x-api-key: %b\r\n" % key))
        assert int(got.split()[1]) == status, got[:300]
        assert len(three.reached) == (status == 200)
