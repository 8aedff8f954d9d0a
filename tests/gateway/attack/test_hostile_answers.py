"""Hostile answers: input · rule · outcome. None harms the next call, and no word of a provider's passes for the gateway's."""

import gzip

import pytest
from tests.gateway.attack.conftest import Three
from tests.gateway.attack.test_raw_requests import post
from tests.gateway.upstreams import answer

WHOLE = (
    b'{"id":"c","object":"chat.completion","model":"m","choices":[{"index":0,"message":'
    b'{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}'
)
JSON = "content-type: application/json"
EVENTS = "content-type: text/event-stream"


def raw(*lines: bytes, body: bytes = b"") -> bytes:
    return b"\r\n".join((*lines, b"", b"")) + body


OK = b"HTTP/1.1 200 OK"
CHUNKED = b"transfer-encoding: chunked"
CHUNKS = b"%x\r\n%b\r\n0\r\n\r\n" % (len(WHOLE), WHOLE)
LENGTH = b"content-length: %d" % len(WHOLE)
TYPE = JSON.encode()

# name: bytes, rule, status; b"" = the connection just ends
ANSWERS: dict[str, tuple[bytes, str, int | tuple[int, ...]]] = {
    "whole": (answer(WHOLE, JSON), "the control", 200),
    "nothing": (b"", "no answer", 502),
    "no HTTP": (b"220 mail.example ESMTP\r\n", "no answer", 502),
    "HTTP/2": (b"\0\0\x12\4\0\0\0\0\0", "no answer", 502),
    "status 0": (raw(b"HTTP/1.1 000 Odd", LENGTH, body=WHOLE), "9110, 15", 502),
    "status 99": (raw(b"HTTP/1.1 099 Odd", LENGTH, body=WHOLE), "9110, 15", 502),
    "status 600": (raw(b"HTTP/1.1 600 Odd", LENGTH, body=WHOLE), "9110, 15", 500),
    "status 1000": (raw(b"HTTP/1.1 1000 Odd", LENGTH, body=WHOLE), "9112, 4", 502),
    "two lengths": (raw(OK, LENGTH, b"content-length: 3", body=WHOLE), "9112, 6.3", 502),
    "the same length twice": (raw(OK, TYPE, LENGTH, LENGTH, body=WHOLE), "6.3: read by all clients", 200),
    "chunked and a length": (raw(OK, TYPE, CHUNKED, LENGTH, body=CHUNKS), "6.3: chunked wins", 200),
    "a length below 0": (raw(OK, b"content-length: -1", body=WHOLE), "8.6", 502),
    "a length too long": (raw(OK, TYPE, b"content-length: 999", body=WHOLE), "cut", 502),
    "a bad chunk": (raw(OK, TYPE, CHUNKED, body=b"zz\r\n{}\r\n"), "7.1", 502),
    "cut in a chunk": (raw(OK, TYPE, CHUNKED, body=CHUNKS[:-20]), "cut", 502),
    "an endless head": (OK + b"\r\n" + b"x-a: b\r\n" * 40_000, "MAX_HEAD_BYTES", 502),
    "one endless line": (OK + b"\r\nx-a: " + b"a" * 300_000, "MAX_HEAD_BYTES", 502),
    "a NUL in a header": (raw(OK, b"x-a: \0", LENGTH, body=WHOLE), "9110, 5.5", 502),
    "header without a name": (raw(OK, b": x", LENGTH, body=WHOLE), "9110, 5.1", (200, 502)),
    "a redirect": (raw(b"HTTP/1.1 302 Found", b"location: http://169.254.169.254/", b"content-length: 0"), "not followed", 302),
    "a page": (answer(b"<html>nginx</html>", "content-type: text/html", status="502 Bad Gateway"), "as it came", 502),
    "junk as gzip": (answer(b"junk", JSON, "content-encoding: gzip"), "as it came", 200),
    "gzip cut": (answer(gzip.compress(WHOLE)[:-9], JSON, "content-encoding: gzip"), "as it came", 200),
    "cookies": (answer(WHOLE, JSON, "set-cookie: a=b; Domain=example"), "dropped", 200),
    "our own headers": (answer(WHOLE, JSON, "hedgerow-winner: 9 evil", "x-accel-redirect: /etc/passwd"), "dropped", 200),
    "CORS": (answer(WHOLE, JSON, "access-control-allow-origin: *"), "dropped: ours to say", 200),
    "hop-by-hop": (answer(WHOLE, JSON, "connection: x-secret", "x-secret: 1", "proxy-authenticate: Basic"), "dropped", 200),
    "an event stream of nothing": (answer(b"", EVENTS), "an end", 200),
    "an event of junk": (answer(b"data: {{{\n\ndata: [DONE]\n\n", EVENTS), "as it came", 200),
    "deep JSON": (answer(b"[" * 5_000 + b"]" * 5_000, JSON), "as it came", 200),
    "NaN": (answer(WHOLE.replace(b'"index":0', b'"index":NaN'), JSON), "as it came", 200),
    "numbers beyond 64 bits": (
        answer(WHOLE[:-1] + b',"usage":{"prompt_tokens":%b,"completion_tokens":1e999}}' % (b"9" * 400), JSON), "as it came", 200,
    ),
    "lone surrogates": (answer(WHOLE.replace(b'"hi"', b'"\\ud800"'), JSON), "as it came", 200),
    "bad UTF-8": (answer(WHOLE.replace(b'"hi"', b'"\xff\xfe"'), JSON), "as it came", 200),
    "a model's name of 100 kB": (answer(WHOLE.replace(b'"m"', b'"%b"' % (b"m" * 100_000)), JSON), "as it came", 200),
    "two answers in one breath": (answer(WHOLE, JSON) + answer(b'{"evil":1}', JSON), "the second is nobody's", 200),
    "interim answers": (b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" * 50 + answer(WHOLE, JSON), "15.2", 200),
    "204 with a length": (raw(b"HTTP/1.1 204 No Content", b"content-length: 9"), "9110, 8.6: none is sent", 204),
    "304 with a length": (raw(b"HTTP/1.1 304 Not Modified", b"content-length: 9"), "of what would have been sent", 304),
    "members of nothing": (
        answer(gzip.compress(b"") * 50_000 + gzip.compress(WHOLE), JSON, "content-encoding: gzip"), "not looked into", 200,
    ),
    "a million objects": (answer(b'{"choices":[' + b"{}," * 1_200_000 + b"{}]}", JSON), "not looked into", 200),
    "an upgrade": (raw(b"HTTP/1.1 101 Switching", b"upgrade: evil", b"connection: upgrade"), "was not offered", 502),
}  # fmt: skip
NEVER_TOLD = (
    b"evil",
    b"set-cookie",
    b"x-accel-redirect",
    b"access-control",
    b"x-secret",
    b"proxy-auth",
    b"key-of-",
    b"link:",
)


@pytest.mark.parametrize("name", ANSWERS)
async def test_a_hostile_answer(three: Three, name: str) -> None:
    said, _, status = ANSWERS[name]
    provider = three.providers["openai"]
    provider.answers, provider.cuts = [said], True
    # A call that may not be run twice, so that the answer is what counts.
    got = await three.say(post(b"/v1/responses", body=b'{"model":"gpt-x","input":"hi","background":true}'))
    line = got.split(b"\r\n", 1)[0]
    assert line.startswith(b"HTTP/1.1 "), got[:200]
    head = got.partition(b"\r\n\r\n")[0].lower()
    assert int(line.split()[1]) in ((status,) if isinstance(status, int) else status), got[:300]
    assert not [word for word in NEVER_TOLD if word in head]
    assert got.count(b"HTTP/1.1 ") == 1
    assert status not in (204, 304) or b"content-length" not in head
    provider.answers, provider.cuts = [answer(WHOLE, JSON)], False
    again = await three.say(post())
    assert again.startswith(b"HTTP/1.1 200 ")
    assert again.endswith(WHOLE)
