"""Compressed requests: what is read, what is refused, and what a bomb of each kind may cost."""

import asyncio
import gzip
import json
import zlib
from typing import Any

import pytest
from tests.gateway.attack.conftest import Three
from tests.gateway.attack.test_raw_requests import CHAT, PATH, post

from hedgerow.gateway import request_body
from hedgerow.gateway.client import Refused
from hedgerow.gateway.request_body import plain_body

MB = 1_000_000
BARE_DEFLATE = zlib.compress(CHAT)[2:-4]


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("deflate", BARE_DEFLATE),
        ("gzip", gzip.compress(CHAT[:9]) + gzip.compress(CHAT[9:])),
        ("gzip", gzip.compress(CHAT) + b"\0" * 100_000),
        ("GZIP", gzip.compress(CHAT)),
    ],
    ids=["bare deflate", "two members", "padding", "capitals"],
)
async def test_what_clients_send_is_read(three: Three, coding: str, body: bytes) -> None:
    got = await three.say(post(PATH, b"content-encoding: %b\r\n" % coding.encode(), body=body))
    assert got.startswith(b"HTTP/1.1 200 "), got
    assert json.loads(three.providers["openai"].last_body) == json.loads(CHAT)


async def test_no_body_needs_no_coding(three: Three) -> None:
    got = await three.say(post(PATH, b"content-encoding: gzip\r\n", body=b""))
    assert b"bad_encoding" not in got


@pytest.mark.parametrize("where", ["short", "long"])
async def test_a_million_empty_members_are_refused_at_once(three: Three, where: str) -> None:
    """Each was copied with all that follows it: 4 MB took minutes."""
    body = gzip.compress(b"") * (2_000 if where == "short" else 200_000) + gzip.compress(CHAT)
    got = await three.say(post(PATH, b"content-encoding: gzip\r\n", body=body))
    assert got.startswith(b"HTTP/1.1 400 "), got
    assert b"bad_encoding" in got
    assert not three.reached


@pytest.mark.parametrize("space", [b" ", b"\n", b"\t\r\n "])
async def test_fields_are_counted_however_they_are_written(three: Three, space: bytes) -> None:
    body = b'{"model":"gpt-x",' + b",".join(b'"%d"%b:1' % (each, space) for each in range(1_010_000)) + b"}"
    got = await three.say(post(body=body))
    assert got.startswith(b"HTTP/1.1 400 "), got[:300]
    assert b"too_many_values" in got


@pytest.mark.parametrize("depth", [200, 900, 990, 1_015, 1_030, 5_000])
@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("/v1/chat/completions", b'{"model":"gpt-x","messages":[],"tools":%b}'),
        ("/v1/chat/completions", b'{"model":"gpt-x","messages":[{"role":"user","content":%b}]}'),
        ("/v1/responses", b'{"model":"gpt-x","input":%b,"tools":%b}'),
        ("/v1/messages", b'{"model":"c","max_tokens":9,"messages":[{"role":"user","content":%b}],"tools":%b}'),
        ("/v1beta/models/g:generateContent", b'{"contents":[{"parts":[{"functionCall":{"args":%b}}]}],"tools":%b}'),
        ("/v1beta/models/g:embedContent", b'{"content":{"parts":[{"data":%b}]}}'),
        ("/v1/embeddings", b'{"model":"gpt-x","input":%b}'),
    ],
)
@pytest.mark.parametrize("parts", [(b"[", b"]"), (b'[{"a":', b"}]")])
async def test_nesting_is_passed_on_whatever_its_depth(
    three: Three, path: str, form: bytes, depth: int, parts: tuple[bytes, bytes]
) -> None:
    """Between what orjson reads and what it writes stood a 500."""
    nested = parts[0] * depth + b"1" + parts[1] * depth
    body = form.replace(b"%b", nested)
    got = await three.say(post(path.encode(), body=body))
    assert got.startswith(b"HTTP/1.1 200 "), got
    (provider,) = [provider for provider in three.providers.values() if provider.asked]
    assert provider.last_body == body


async def test_an_error_of_our_own_is_told_in_the_apis_form(three: Three, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RecursionError

    monkeypatch.setattr("hedgerow.gateway.asking._understood", broken)
    got = await three.say(post(b"/v1/messages"))
    assert got.startswith(b"HTTP/1.1 500 ")
    assert json.loads(got.partition(b"\r\n\r\n")[2])["error"]["type"] == "api_error"


def zstd() -> Any:
    """Python's own, or the package of the extra."""
    if request_body.ZSTD is None:
        pytest.skip("neither Python 3.14 nor hedgerow[zstd]")
    return request_body.ZSTD


async def test_zstd_is_decoded_where_it_can_be(three: Three) -> None:
    body = zstd().compress(CHAT[:9]) + b"\x50\x2a\x4d\x18\x02\0\0\0hi" + zstd().compress(CHAT[9:])
    got = await three.say(post(PATH, b"content-encoding: zstd\r\n", body=body))
    assert got.startswith(b"HTTP/1.1 200 "), got
    assert json.loads(three.providers["openai"].last_body) == json.loads(CHAT)
    assert "content-encoding" not in three.last_head


async def test_zstd_is_refused_where_it_cannot_be(three: Three, monkeypatch: pytest.MonkeyPatch) -> None:
    codings = {name: coding for name, coding in request_body.CODINGS.items() if name != "zstd"}
    monkeypatch.setattr(request_body, "CODINGS", codings)
    got = await three.say(post(PATH, b"content-encoding: zstd\r\n"))
    assert got.startswith(b"HTTP/1.1 415 ")
    assert b"\r\naccept-encoding: gzip, deflate\r\n" in got


def wide() -> bytes:
    """A frame that asks for more memory than a request may."""
    parameter = zstd().CompressionParameter
    options = {parameter.window_log: 25, parameter.content_size_flag: 0}
    return zstd().compress(bytes(range(256)) * 200_000, options=options)


@pytest.mark.parametrize(
    ("made", "status"),
    [
        (lambda: zstd().compress(b"a" * 30 * MB), 413),
        (lambda: zstd().compress(b"") * 100_000, 400),
        (lambda: zstd().compress(CHAT)[:-3], 400),
        (lambda: zstd() and CHAT, 400),
        (wide, 400),
    ],
    ids=["bomb", "frames", "cut", "no zstd", "window"],
)
def test_what_zstd_must_not_cost(made: Any, status: int) -> None:
    limit_bytes = 100 * MB if made is wide else 20 * MB
    with pytest.raises(Refused) as refused:
        asyncio.run(plain_body(made(), [(b"content-encoding", b"zstd")], limit_bytes))
    assert refused.value.trouble.status == status
