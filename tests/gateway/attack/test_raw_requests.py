"""Raw requests: input · rule · outcome, and what the provider saw. A request that gets through must be judged as it is sent."""

import gzip
import json
import zlib

import pytest
from tests.gateway.attack.conftest import Three

CHAT = b'{"model":"gpt-x","messages":[{"role":"user","content":"hi"}]}'
HOST = b"host: 127.0.0.1\r\n"
JSON = b"content-type: application/json\r\n"
CLOSE = b"connection: close\r\n"
PATH = b"/v1/chat/completions"


def post(path: bytes = PATH, *lines: bytes, body: bytes = CHAT, method: bytes = b"POST", host: bytes = HOST) -> bytes:
    """A request of told length; each of the lines ends itself."""
    head = b"%b %b HTTP/1.1\r\n%b%b%bcontent-length: %d\r\n" % (method, path, host, JSON, CLOSE, len(body))
    return head + b"".join(lines) + b"\r\n" + body


def bare(*lines: bytes, path: bytes = PATH, method: bytes = b"POST", body: bytes = b"") -> bytes:
    """A request with just these lines."""
    return b"%b %b HTTP/1.1\r\n" % (method, path) + b"".join(lines) + b"\r\n" + body


def get(path: bytes, *lines: bytes) -> bytes:
    return bare(HOST, CLOSE, *lines, path=path, method=b"GET")


CHUNKED = b"transfer-encoding: chunked\r\n"
CHUNKS = b"%x\r\n%b\r\n0\r\n" % (len(CHAT), CHAT)
LENGTH = b"content-length: %d\r\n" % len(CHAT)
OFFER = b"connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAAQ\r\n"
DIFFICULT = zlib.compress(CHAT)

# name: bytes, rule, status (0: the connection ends without a word), does it go on?
REQUESTS: dict[str, tuple[bytes, str, int | tuple[int, ...], bool]] = {
    "plain": (post(), "the control", 200, True),
    # methods (RFC 9110, 9)
    "trace": (post(method=b"TRACE", body=b""), "9.3.8: no credentials in TRACE", 405, False),
    "connect": (bare(HOST, method=b"CONNECT", path=b"a.example:443"), "9.3.6: for proxies", (400, 405), False),
    "options": (bare(HOST, CLOSE, method=b"OPTIONS"), "9.3.7: no preflight, nothing to say", 405, False),
    "propfind": (post(method=b"PROPFIND"), "9.1: an unknown method is refused", 405, False),
    "lower case": (post(method=b"post"), "9.1: methods are case-sensitive", (400, 405), False),
    "override": (post(PATH, b"x-http-method-override: DELETE\r\n"), "what is judged is sent", 200, True),
    # addresses (RFC 3986, RFC 9112, 3.2)
    "escaped letter": (post(b"/v1/chat/%63ompletions"), "6.2.2.2: the same path", 200, True),
    "escaped slash": (post(b"/v1/chat%2fcompletions"), "2.2: another path to some", 400, False),
    "escaped colon": (post(b"/v1beta/models/g%3AgenerateContent"), "the same to Google", 200, True),
    "escaped percent": (post(b"/v1/chat/%2563ompletions"), "decoded twice by some", 400, False),
    "escaped NUL": (post(b"/v1/chat/completions%00"), "cut there by some", 400, False),
    "half an escape": (post(b"/v1/chat/completions%4"), "2.1", 400, False),
    "parameter": (post(b"/v1/chat/completions;x=1"), "3.3: cut off by some", 400, False),
    "dots": (post(b"/v1/files/../chat/completions"), "5.2.4", 400, False),
    "escaped dots": (post(b"/v1/files/%2e%2e/chat/completions"), "5.2.4", 400, False),
    "dots behind an escaped slash": (post(b"/v1/models/..%2f..%2fx"), "5.2.4", 400, False),
    "two slashes": (post(b"//v1/chat/completions"), "an authority to some", 400, False),
    "slashes inside": (post(b"/v1//chat/completions"), "merged by some", 400, False),
    "a slash behind": (post(b"/v1/chat/completions/"), "the same to many", 200, True),
    "backslash": (post(b"/v1\\chat\\completions"), "a slash to some", 400, False),
    "capitals": (post(b"/V1/Chat/Completions"), "6.2.2.1: paths are case-sensitive", 404, False),
    "absolute": (post(b"http://127.0.0.1/v1/chat/completions"), "9112, 3.2.2: must be taken", 200, True),
    "absolute, elsewhere": (post(b"http://api.example/v1/chat/completions"), "3.2.2: not as Host says", 400, False),
    "absolute, IPv6": (post(b"http://[::1]:80" + PATH, host=b"host: [::1]:80\r\n"), "3.2.2: must be taken", 200, True),
    "absolute, with a user": (post(b"http://u:p@127.0.0.1" + PATH), "9110, 4.2.4", 400, False),
    "absolute, FTP": (post(b"ftp://127.0.0.1" + PATH), "4.3.1", 400, False),
    "asterisk": (bare(HOST, CLOSE, path=b"*", method=b"OPTIONS"), "3.2.4", (400, 405), False),
    "own address, escaped": (get(b"/%61dmin/secrets"), "not sent on", 404, False),
    "unknown": (get(b"/metrics"), "no route names it", 404, False),
    # Host (RFC 9112, 3.2)
    "no host": (bare(CLOSE, JSON, LENGTH, body=CHAT), "3.2", 400, False),
    "two hosts": (post(PATH, b"host: localhost\r\n"), "3.2", 400, False),
    "foreign host": (post(host=b"host: evil.example\r\n"), "a rebound name", 421, False),
    "host like one of ours": (post(host=b"host: 127.0.0.1.evil.example\r\n"), "a rebound name", 421, False),
    "host with port": (post(host=b"host: localhost:9\r\n"), "any port", 200, True),
    # framing (RFC 9112, 6)
    "chunked": (bare(HOST, CLOSE, JSON, CHUNKED, body=CHUNKS + b"\r\n"), "the control", 200, True),
    "chunked and a length": (bare(HOST, CLOSE, CHUNKED, LENGTH, body=CHUNKS + b"\r\n"), "6.1: an attack", 400, False),
    "a length and chunked": (bare(HOST, CLOSE, LENGTH, CHUNKED, body=CHUNKS + b"\r\n"), "6.1: an attack", 400, False),
    "two lengths": (bare(HOST, LENGTH, b"content-length: 3\r\n", body=CHAT), "6.3", 400, False),
    "the same length twice": (bare(HOST, LENGTH, LENGTH, body=CHAT), "6.3: may be refused", 400, False),
    "a length of +61": (bare(HOST, b"content-length: +%d\r\n" % len(CHAT), body=CHAT), "8.6: digits only", 400, False),
    "a length below 0": (bare(HOST, b"content-length: -1\r\n", body=CHAT), "8.6", 400, False),
    "a huge length": (bare(HOST, CLOSE, b"content-length: 99999999999\r\n"), "max_body", 413, False),
    "gzip, chunked": (bare(HOST, CLOSE, b"transfer-encoding: gzip, chunked\r\n", body=CHUNKS + b"\r\n"), "6.1", 400, False),
    "chunked, HTTP/1.0": (bare(HOST, CHUNKED, body=CHUNKS + b"\r\n").replace(b"HTTP/1.1", b"HTTP/1.0"), "6.1", 400, False),
    "xchunked": (bare(HOST, b"transfer-encoding: xchunked\r\n", body=CHUNKS + b"\r\n"), "6.1", (400, 501), False),
    "chunked, identity": (bare(HOST, b"transfer-encoding: chunked, identity\r\n", body=CHUNKS), "6.1", 400, False),
    "a space before the colon": (post(PATH, b"content-type : x\r\n"), "5.1", 400, False),
    "a folded line": (post(PATH, b"x-one: a\r\n b\r\n"), "5.2", 400, False),
    "a bare CR": (post(PATH, b"x-one: a\rb: c\r\n"), "2.2", 400, False),
    "a NUL in a value": (post(PATH, b"x-one: a\0b\r\n"), "9110, 5.5", 400, False),
    "a chunk size of 0x2": (bare(HOST, CHUNKED, body=b"0x2\r\n{}\r\n0\r\n\r\n"), "7.1", 400, False),
    # fields that come once (RFC 9110, 5.3)
    "two keys": (post(PATH, b"x-api-key: a\r\nx-api-key: b\r\n"), "first or last?", 400, False),
    "two content types": (post(PATH, JSON), "first or last?", 400, False),
    "two versions": (
        post(b"/v1/messages", b"anthropic-version: 1\r\nanthropic-version: 2\r\n"), "first or last?", 400, False,
    ),
    "a key in a trailer": (
        bare(HOST, CLOSE, JSON, CHUNKED, body=CHUNKS + b"x-goog-api-client: g\r\n\r\n"), "6.5.1: no header", 200, True,
    ),
    # other protocols (RFC 9110, 7.8)
    "h2c": (bare(HOST, OFFER, JSON, LENGTH, CLOSE, body=CHAT), "may be ignored, with its body", 200, True),
    "h2c, chunked": (bare(HOST, OFFER, JSON, CHUNKED, CLOSE, body=CHUNKS + b"\r\n"), "likewise", 200, True),
    "websocket": (get(b"/v1/models", b"connection: upgrade\r\nupgrade: websocket\r\n"), "not carried", 400, False),
    "http/2 preface": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "9113, 3.4", 400, False),
    "http/2 by name": (post().replace(b"HTTP/1.1", b"HTTP/2.0"), "9112, 2.5", 400, False),
    "a length that waits": (bare(HOST, LENGTH, b"expect: 100-continue\r\n", path=b"/nope"), "10.1.1: not asked for", 404, False),
    "a bomb that waits": (
        bare(HOST, b"content-length: 99999999\r\nexpect: 100-continue\r\n"), "10.1.1: not asked for", 413, False,
    ),
    # what browsers say, as the Fetch standard has it
    "foreign page": (post(PATH, b"origin: https://page.example\r\n"), "would spend the key", 403, False),
    "page without origin": (get(b"/v1/models", b"sec-fetch-site: cross-site\r\n"), "an image, say", 403, False),
    "null origin": (post(PATH, b"origin: null\r\n"), "a sandboxed frame", 403, False),
    "own page": (post(PATH, b"origin: http://127.0.0.1\r\n"), "the same origin", 200, True),
    "preflight": (
        bare(HOST, CLOSE, b"origin: https://p.example\r\naccess-control-request-method: POST\r\n", method=b"OPTIONS"),
        "no origin may", 403, False,
    ),
    # bodies
    "gzip": (post(PATH, b"content-encoding: gzip\r\n", body=gzip.compress(CHAT)), "judged and sent plain", 200, True),
    "deflate": (post(PATH, b"content-encoding: deflate\r\n", body=DIFFICULT), "judged and sent plain", 200, True),
    "br": (post(PATH, b"content-encoding: br\r\n"), "15.5.16", 415, False),
    "gzip twice": (post(PATH, b"content-encoding: gzip, gzip\r\n", body=gzip.compress(CHAT)), "15.5.16", 415, False),
    "no gzip": (post(PATH, b"content-encoding: gzip\r\n"), "damaged", 400, False),
    "half a gzip": (post(PATH, b"content-encoding: gzip\r\n", body=gzip.compress(CHAT)[:-9]), "cut", 400, False),
    # what is said to the gateway
    "a deadline of nan": (post(PATH, b"hedgerow-deadline-ms: nan\r\n"), "milliseconds > 0", 400, False),
    "a retry count of 5000 digits": (post(PATH, b"x-stainless-retry-count: %b\r\n" % (b"9" * 5000)), "0", 200, True),
}  # fmt: skip


@pytest.mark.parametrize("name", REQUESTS)
async def test_a_raw_request(three: Three, name: str) -> None:
    sent, _, status, goes_on = REQUESTS[name]
    got = await three.say(sent)
    line = got.split(b"\r\n", 1)[0]
    assert line.startswith(b"HTTP/1.1 "), got
    assert int(line.split()[1]) in ((status,) if isinstance(status, int) else status), got
    assert len(three.reached) == goes_on
    assert got.count(b"HTTP/1.1 ") == 1, "one request, one answer"
    if goes_on:
        assert "key-of-" in three.last_head
        asked = three.last_head.split("\r\n")[0]
        assert asked in ("POST /v1/chat/completions HTTP/1.1", "POST /v1beta/models/g:generateContent HTTP/1.1")
        for hidden in ("x-http-method", "upgrade", "http2-settings", "x-goog-api-client", "content-encoding", "origin"):
            assert f"\r\n{hidden}" not in three.last_head.lower()
        provider = next(each for each in three.providers.values() if each.asked)
        assert json.loads(provider.last_body) == json.loads(CHAT)


@pytest.mark.parametrize("name", [name for name in REQUESTS if REQUESTS[name][3]])
async def test_a_raw_request_in_single_bytes(three: Three, name: str) -> None:
    """However it is cut into packets."""
    sent = REQUESTS[name][0]
    got = await three.say(*(sent[at : at + 7] for at in range(0, len(sent), 7)))
    assert got.startswith(b"HTTP/1.1 200 ")
    assert len(three.reached) == 1


async def test_requests_in_one_breath_are_answered_one_by_one(three: Three) -> None:
    keep = bare(HOST, JSON, LENGTH, body=CHAT)
    offer = bare(HOST, OFFER, JSON, LENGTH, body=CHAT)
    got = await three.say(keep + offer + keep + post())
    assert got.count(b"HTTP/1.1 200 ") == 4
    assert three.reached == ["openai"] * 4


async def test_a_client_that_waits_is_told_to_send_once_it_may(three: Three) -> None:
    got = await three.say(post(PATH, b"expect: 100-continue\r\n"))
    assert got.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 ")


@pytest.mark.parametrize("line", [b"", b"expect: 100-continue\r\n", b"connection: keep-alive\r\n"])
@pytest.mark.parametrize(("told", "body"), [(True, b"hi"), (False, b"hi"), (False, b"")])
async def test_http_1_0_gets_no_chunks_and_no_interim_answers(
    three: Three, line: bytes, told: bool, body: bytes
) -> None:
    length = b"content-length: %d" % len(body)
    chunks = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
    three.providers["openai"].answers = [
        b"HTTP/1.1 200 OK\r\n" + (length + b"\r\n\r\n" + body if told else CHUNKED + b"\r\n" + chunks + b"0\r\n\r\n")
    ]
    asked = bare(HOST, line, b"openai-version: 1\r\n", path=b"/v1/files/f/content", method=b"GET")
    got = await three.say(asked.replace(b"HTTP/1.1", b"HTTP/1.0"))
    head, _, rest = got.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 ")
    assert rest == body
    assert b"transfer-encoding" not in head
    assert (length in head) == told
    assert b"connection: close" in head
