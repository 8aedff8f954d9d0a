"""What hedging takes over from classic httpx and httpcore, and what it refuses: an upgrade that moves or adds a setting fails
here."""

import os
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import httpcore
import httpx
import httpx2
import pytest
from openai import AsyncOpenAI, OpenAI

import hedgerow
from hedgerow.transports.httpx2_private import pool_of, transports_of
from hedgerow.transports.httpx_exchange import classic_error
from hedgerow.transports.httpx_private import async_successor, successor

STATE = {"_connections", "_requests", "_optional_thread_lock", "_network_backend"}
SETTINGS = {
    "_ssl_context",
    "_max_connections",
    "_max_keepalive_connections",
    "_keepalive_expiry",
    "_http1",
    "_http2",
    "_retries",
    "_local_address",
    "_uds",
    "_socket_options",
}
KINDS = [each for each in vars(httpx2).values() if isinstance(each, type)]
# httpx2 reads server-sent events, and complains of them, after its transports.
ERRORS = [each for each in KINDS if issubclass(each, httpx2.RequestError) and each is not httpx2.SSEError]
NO_DELAY = [(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)]
LIMITS = httpx.Limits(max_connections=7, max_keepalive_connections=3, keepalive_expiry=2.5)

both = pytest.mark.parametrize("kind", [httpx.HTTPTransport, httpx.AsyncHTTPTransport])


def taken_over(transport: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The attributes of a transport's pool, and of the pool that takes its place."""
    follow: Any = async_successor if isinstance(transport, httpx.AsyncHTTPTransport) else successor
    return vars(transport._pool), vars(follow(transport)._pool)


@both
def test_every_setting_of_a_pool_is_taken_over(kind: Any) -> None:
    context = ssl.create_default_context()
    old, new = taken_over(
        kind(verify=context, limits=LIMITS, retries=3, local_address="127.0.0.1", uds="/s", socket_options=NO_DELAY)
    )
    assert set(old) == SETTINGS | STATE | {"_proxy"}
    assert {name: new[name] for name in SETTINGS} == {name: old[name] for name in SETTINGS}
    assert new["_ssl_context"] is context
    assert (new["_max_connections"], new["_max_keepalive_connections"], new["_retries"]) == (7, 3, 3)
    assert new["_proxy"] is old["_proxy"] is None


@both
def test_every_setting_of_a_proxy_is_taken_over(kind: Any) -> None:
    trusted, inside = ssl.create_default_context(), ssl.create_default_context()
    proxy = httpx.Proxy("https://p.example:8443/x", ssl_context=trusted, auth=("u", "p"), headers={"X-For": "proxy"})
    old, new = taken_over(kind(verify=inside, limits=LIMITS, retries=3, proxy=proxy))
    own = {"_proxy_url", "_proxy_ssl_context", "_proxy_headers"}
    assert set(old) == SETTINGS | STATE | own | {"_proxy"}
    same = SETTINGS | {"_proxy_ssl_context", "_proxy_headers"}
    assert {name: new[name] for name in same} == {name: old[name] for name in same}
    assert new["_ssl_context"] is inside
    assert new["_proxy_ssl_context"] is trusted
    assert bytes(new["_proxy_url"]) == bytes(old["_proxy_url"]) == b"https://p.example:8443/x"


@both
def test_every_setting_of_a_socks_proxy_is_taken_over(kind: Any) -> None:
    proxy = httpx.Proxy("socks5://p.example:1080", auth=("u", "p"))
    old, new = taken_over(kind(limits=LIMITS, retries=3, proxy=proxy))
    assert set(old) == SETTINGS | STATE | {"_proxy", "_proxy_url", "_proxy_auth"}
    same = SETTINGS | {"_proxy_auth"}
    assert {name: new[name] for name in same} == {name: old[name] for name in same}
    assert new["_proxy_auth"] == (b"u", b"p")
    assert bytes(new["_proxy_url"]) == bytes(old["_proxy_url"])


@pytest.mark.parametrize("kind", ERRORS)
def test_every_error_of_a_transport_has_its_counterpart(kind: type[httpx2.RequestError]) -> None:
    error = kind("why")
    error.add_note("and what else")
    converted = classic_error(error, httpx.Request("GET", "http://x"))
    assert (type(converted).__name__, type(converted).__module__) == (kind.__name__, "httpx")
    assert (str(converted), converted.__notes__) == ("why", ["and what else"])


def test_an_error_that_httpx_does_not_have_becomes_what_it_is_a_kind_of() -> None:
    class NewTimeout(httpx2.ReadTimeout): ...

    assert type(classic_error(NewTimeout("why"), httpx.Request("GET", "http://x"))) is httpx.ReadTimeout


class Noting(httpx.AsyncHTTPTransport):
    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return await super().handle_async_request(request)


class Renamed(httpx.AsyncHTTPTransport):
    """A subclass that sends as its base does."""


def instrumented() -> httpx.HTTPTransport:
    transport = httpx.HTTPTransport()
    transport.handle_request = transport.handle_request  # type: ignore[method-assign]
    return transport


def with_pool(pool: Any) -> httpx.AsyncHTTPTransport:
    transport = httpx.AsyncHTTPTransport()
    transport._pool = pool
    return transport


class OwnPool(httpcore.AsyncConnectionPool): ...


REFUSED: list[tuple[Callable[[], Any], Callable[[Any], Any], str]] = [
    (
        Noting,
        hedgerow.AsyncHttpxTransport,
        "Noting cannot be hedged.*what yours does beyond its settings would be lost",
    ),
    (instrumented, hedgerow.HttpxTransport, "instrument the client after it is hedged"),
    (
        lambda: httpx.MockTransport(httpx.Response),
        hedgerow.HttpxTransport,
        "MockTransport cannot be .* use httpx.HTTPTr",
    ),
    (lambda: httpx.MockTransport(httpx.Response), hedgerow.AsyncHttpxTransport, "use httpx.AsyncHTTPTransport"),
    (lambda: with_pool(OwnPool()), hedgerow.AsyncHttpxTransport, "cannot be hedged"),
    (
        lambda: with_pool(httpcore.AsyncConnectionPool(network_backend=httpcore.AsyncMockBackend([]))),
        hedgerow.AsyncHttpxTransport,
        "cannot be hedged",
    ),
    (
        lambda: with_pool(httpcore.AsyncConnectionPool(proxy=httpcore.Proxy("http://x"))),
        hedgerow.AsyncHttpxTransport,
        "cannot be hedged",
    ),
    (lambda: httpx.HTTPTransport(http2=True), hedgerow.HttpxTransport, "http2=True"),
    (lambda: httpx.AsyncHTTPTransport(http2=True), hedgerow.AsyncHttpxTransport, "http2=True"),
    (httpx.HTTPTransport, hedgerow.AsyncHttpxTransport, r"hedge it with hedgerow\.HttpxTransport"),
    (httpx.AsyncHTTPTransport, hedgerow.HttpxTransport, r"hedge it with hedgerow\.AsyncHttpxTransport"),
    (httpx2.HTTPTransport, hedgerow.HttpxTransport, r"is of httpx2: hedge it with hedgerow\.Transport"),
    (httpx2.AsyncHTTPTransport, hedgerow.AsyncHttpxTransport, r"is of httpx2: hedge it with hedgerow\.AsyncTransport"),
    (httpx.HTTPTransport, hedgerow.Transport, r"classic httpx: hedge it with hedgerow\.HttpxTransport"),
    (httpx.AsyncHTTPTransport, hedgerow.AsyncTransport, r"classic httpx: hedge it with hedgerow\.AsyncHttpxTransport"),
    (lambda: hedgerow.HttpxTransport(httpx.HTTPTransport()), hedgerow.HttpxTransport, "hedged already"),
    (lambda: hedgerow.AsyncHttpxTransport(httpx.AsyncHTTPTransport()), hedgerow.AsyncHttpxTransport, "hedged already"),
    (lambda: hedgerow.hedged(OpenAI(api_key="k", http_client=httpx.Client())), hedgerow.hedged, "hedged already"),
    (
        lambda: hedgerow.hedged(AsyncOpenAI(api_key="k", http_client=httpx.AsyncClient())),
        hedgerow.hedged,
        "hedged already",
    ),
    (httpx.Client, hedgerow.hedged, "takes one of hedgerow's transports"),
    (httpx.AsyncClient, hedgerow.hedger_of, "is not hedged"),
]


@pytest.mark.parametrize(("make", "use", "reason"), REFUSED)
async def test_what_cannot_be_hedged_is_refused_with_the_reason(make: Any, use: Any, reason: str) -> None:
    with pytest.raises(hedgerow.UnsupportedError, match=reason):
        use(make())


async def test_a_subclass_that_sends_as_its_base_does_is_taken() -> None:
    async with hedgerow.AsyncHttpxTransport(Renamed(limits=LIMITS)) as transport:
        assert pool_of(transport._sends._inner) == (0, 7)


async def test_mounts_keep_their_routes_and_their_settings() -> None:
    mounts = {"all://a.example": httpx.AsyncHTTPTransport(limits=LIMITS), "all://b.example": None}
    inside = httpx.AsyncClient(mounts=mounts)
    async with hedgerow.hedged(AsyncOpenAI(api_key="k", http_client=inside)) as client:
        hedged: Any = client._client
        assert [pool_of(each._sends._inner) for each in transports_of(hedged)] == [(0, 100), (0, 7)]
        default, mounted = transports_of(hedged)
        assert hedged._transport_for_url(httpx.URL("https://a.example")) is mounted
        assert hedged._transport_for_url(httpx.URL("https://b.example")) is default
        assert mounted._sends._choose(httpx2.URL("https://c.example")) is default._sends._inner
        assert default._sends._choose(httpx2.URL("https://a.example/v1")) is mounted._sends._inner
        assert default.hedger is mounted.hedger is hedgerow.hedger_of(client)


def test_without_the_extra_the_transports_say_what_to_install() -> None:
    code = (
        "import sys; sys.modules['httpx'] = None; import hedgerow\n"
        "hedgerow.hedged, hedgerow.Transport\n"
        "try: hedgerow.HttpxTransport\n"
        "except ModuleNotFoundError as error: print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=dict(os.environ)
    )
    assert "pip install 'hedgerow[httpx]'" in done.stdout, done.stderr
