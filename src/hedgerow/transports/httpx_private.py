"""The private attributes of classic httpx and httpcore that hedging relies on; tests/sdk/test_httpx_private.py pins them.

httpcore 1.0.9's pool wedges when calls are cancelled (encode/httpcore 1093), which is how every loser ends. So hedged calls
never use it: they go through httpcore2's pool, made with the settings of the classic one.
"""

from inspect import getattr_static
from typing import Any, TypeAlias

import httpcore
import httpcore2
import httpx
import httpx2

from hedgerow.errors import UnsupportedError

__all__ = ["AnyClassicTransport", "async_successor", "classic_transport_for", "successor"]

AnyClassicTransport: TypeAlias = httpx.AsyncBaseTransport | httpx.BaseTransport

# The settings of a pool: an argument of httpcore2's, read from the attribute of the same name with an underscore.
OF_EVERY_POOL = (
    "ssl_context",
    "max_connections",
    "max_keepalive_connections",
    "keepalive_expiry",
    "http1",
    "http2",
    "retries",
)
OF_ITS_SOCKETS = ("local_address", "uds", "socket_options")
SETTINGS = {
    "ConnectionPool": (*OF_EVERY_POOL, *OF_ITS_SOCKETS),
    "HTTPProxy": (*OF_EVERY_POOL, *OF_ITS_SOCKETS, "proxy_ssl_context", "proxy_headers"),
    "SOCKSProxy": (*OF_EVERY_POOL, "proxy_auth"),
}
ITS_OWN_BACKENDS = ("SyncBackend", "AutoBackend")


def successor(transport: httpx.BaseTransport) -> httpx2.HTTPTransport:
    """An httpx2 transport with a pool of its own and the settings of a classic one: proxy, certificates, limits, retries, local
    address, socket and its options. Raises UnsupportedError, with the reason and the fix, for what has no such pool."""
    pool = _pool_of(transport, httpx.HTTPTransport, "handle_request")
    made = httpx2.HTTPTransport.__new__(httpx2.HTTPTransport)
    vars(made)["_pool"] = _new_pool(pool)
    return made


def async_successor(transport: httpx.AsyncBaseTransport) -> httpx2.AsyncHTTPTransport:
    """The same for an asynchronous one."""
    pool = _pool_of(transport, httpx.AsyncHTTPTransport, "handle_async_request")
    made = httpx2.AsyncHTTPTransport.__new__(httpx2.AsyncHTTPTransport)
    vars(made)["_pool"] = _new_pool(pool)
    return made


def classic_transport_for(client: httpx.AsyncClient | httpx.Client, url: httpx2.URL) -> AnyClassicTransport:
    """The transport the client itself would use for a URL."""
    return client._transport_for_url(httpx.URL(str(url)))  # pyright: ignore[reportPrivateUsage]


def _pool_of(transport: object, kind: type[AnyClassicTransport], sends: str) -> Any:
    name = f"{type(transport).__module__.partition('.')[0]}.{type(transport).__name__}"
    if isinstance(transport, httpx2.AsyncBaseTransport | httpx2.BaseTransport):
        raise UnsupportedError(f"a {name} is of httpx2: hedge it with hedgerow.{_ours(kind, of_httpx2=True)}")
    other = httpx.AsyncHTTPTransport if kind is httpx.HTTPTransport else httpx.HTTPTransport
    if isinstance(transport, other):
        raise UnsupportedError(f"a {name} is for the other kind of client: hedge it with hedgerow.{_ours(other)}")
    # A subclass that sends in a way of its own, or an instance that was instrumented, is more than its settings.
    plain = getattr_static(transport, sends, None) is getattr_static(kind, sends)
    pool = getattr(transport, "_pool", None) if plain else None
    if not _is_plain_pool(pool):
        raise UnsupportedError(
            f"a {name} cannot be hedged: hedged calls go through httpcore2's pool, because classic httpcore's wedges when a "
            f"loser is cancelled, and what yours does beyond its settings would be lost; use httpx.{kind.__name__} (its proxy, "
            "verify, cert, limits and retries stay in force; instrument the client after it is hedged)"
        )
    return pool


def _ours(kind: type[AnyClassicTransport], *, of_httpx2: bool = False) -> str:
    asynchronous = "Async" if kind is httpx.AsyncHTTPTransport else ""
    return f"{asynchronous}Transport" if of_httpx2 else f"{asynchronous}HttpxTransport"


def _is_plain_pool(pool: Any) -> bool:
    name = type(pool).__name__.removeprefix("Async")
    return (
        name in SETTINGS
        and type(pool) is getattr(httpcore, type(pool).__name__, None)
        and getattr(pool, "_proxy", None) is None  # httpx has classes of pools for its proxies
        and type(pool._network_backend).__name__ in ITS_OWN_BACKENDS
    )


def _new_pool(pool: Any) -> Any:
    """httpcore2's pool of the same name and settings."""
    kind = type(pool).__name__
    settings = {name: getattr(pool, f"_{name}") for name in SETTINGS[kind.removeprefix("Async")]}
    if hasattr(pool, "_proxy_url"):
        url = pool._proxy_url
        settings["proxy_url"] = httpcore2.URL(scheme=url.scheme, host=url.host, port=url.port, target=url.target)
    return getattr(httpcore2, kind)(**settings)
