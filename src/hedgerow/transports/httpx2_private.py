"""The one place that touches private attributes of httpx2, httpcore2 and the SDKs; tests/sdk/test_private.py pins them.

Wrapping an existing client needs them: there is no public way to ask a client for its transport, its mounts or its pool.
"""

import copy
import sys
from collections.abc import Callable
from inspect import getattr_static
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard, TypeVar

import httpx2

from hedgerow.errors import UnsupportedError

if TYPE_CHECKING:
    import httpx

__all__ = [
    "AnyHttpClient",
    "AnyTransport",
    "ClassicClient",
    "HttpClient",
    "async_twin",
    "classic_httpx",
    "clone_client",
    "http_client_of",
    "is_classic",
    "is_http_client",
    "is_plain",
    "pool_of",
    "refuse_http2",
    "refuse_others",
    "transport_for",
    "transports_of",
]

AnyTransport: TypeAlias = httpx2.AsyncBaseTransport | httpx2.BaseTransport
HttpClient: TypeAlias = httpx2.AsyncClient | httpx2.Client
# Classic httpx has the same private attributes under the same names.
ClassicClient: TypeAlias = "httpx.AsyncClient | httpx.Client"
AnyHttpClient: TypeAlias = "HttpClient | ClassicClient"
Client = TypeVar("Client", httpx2.AsyncClient, httpx2.Client, "httpx.AsyncClient", "httpx.Client")
Wrap: TypeAlias = Callable[[Any], Any]

# What httpcore2 generates the synchronous pools from: the same fields under the same names.
ASYNC_POOLS = {"ConnectionPool": "AsyncConnectionPool", "HTTPProxy": "AsyncHTTPProxy", "SOCKSProxy": "AsyncSOCKSProxy"}
ITS_OWN_BACKENDS = ("SyncBackend", "AutoBackend")
ITS_OWN = ("_network_backend", "_connections", "_requests", "_optional_thread_lock")


def transports_of(client: AnyHttpClient) -> list[Any]:
    """The client's transports, the default one first, then those of its mounts and proxies."""
    mounts = client._mounts.values()  # pyright: ignore[reportPrivateUsage]
    return [client._transport, *(mount for mount in mounts if mount is not None)]  # pyright: ignore[reportPrivateUsage]


def transport_for(client: HttpClient, url: httpx2.URL) -> AnyTransport:
    """The transport the client itself would use for a URL."""
    return client._transport_for_url(url)  # pyright: ignore[reportPrivateUsage]


def clone_client(client: Client, wrap: Wrap) -> Client:
    """A copy that shares every setting with `client`, each transport wrapped by `wrap`.

    It keeps `client` alive and has no `__del__` of its own: openai's HTTP client closes its pool when it is collected, and
    the pool is shared until both are gone.
    """
    clone: Any = copy.copy(client)
    clone.__class__ = type(type(client).__name__, (type(client),), {"__del__": _nothing})
    clone._hedgerow_original = client
    clone._transport = wrap(client._transport)  # pyright: ignore[reportPrivateUsage]
    clone._mounts = {
        pattern: None if mount is None else wrap(mount)
        for pattern, mount in client._mounts.items()  # pyright: ignore[reportPrivateUsage]
    }
    return clone


def _nothing(_: object) -> None:
    """In place of a `__del__` that would close a shared pool."""


def async_twin(transport: AnyTransport) -> httpx2.AsyncHTTPTransport:
    """An asynchronous transport with the settings of another, and a pool of its own, for another loop. Raises UnsupportedError
    for transports other than httpx2's own: nobody else's could be interrupted in the middle of a read."""
    import httpcore2

    pool = getattr(transport, "_pool", None) if is_plain(transport) and not _sends_its_own_way(transport) else None
    kind = type(pool).__name__
    name = ASYNC_POOLS.get(kind) or (kind if kind in ASYNC_POOLS.values() else None)
    backend = getattr(pool, "_network_backend", None)
    if pool is None or name is None or type(backend).__name__ not in ITS_OWN_BACKENDS:
        raise UnsupportedError(
            f"a {type(transport).__module__}.{type(transport).__name__} cannot be hedged: a loser in it could not be closed "
            "while it waits; use httpx2.HTTPTransport (its proxy, verify, cert, limits and retries stay in force), or the SDK's "
            "async client with an AsyncTransport of your own"
        )
    twin_pool: Any = object.__new__(getattr(httpcore2, name))
    blank = vars(httpcore2.AsyncConnectionPool())
    twin_pool.__dict__ = {**vars(pool), **{each: blank[each] for each in ITS_OWN}}
    twin = httpx2.AsyncHTTPTransport.__new__(httpx2.AsyncHTTPTransport)
    vars(twin)["_pool"] = twin_pool
    return twin


def _sends_its_own_way(transport: AnyTransport) -> bool:
    """Does a subclass, or an instance that was instrumented, do more than its settings say? A twin would not do it."""
    kind, sends = httpx2.HTTPTransport, "handle_request"
    if isinstance(transport, httpx2.AsyncHTTPTransport):
        kind, sends = httpx2.AsyncHTTPTransport, "handle_async_request"
    return getattr_static(transport, sends) is not getattr_static(kind, sends)


def is_plain(transport: AnyTransport) -> bool:
    """Is it httpx2's own transport, which reports its connections through the trace extension?"""
    return isinstance(transport, httpx2.AsyncHTTPTransport | httpx2.HTTPTransport)


def pool_of(transport: AnyTransport) -> tuple[int, int] | None:
    """(connections busy, connections at most) of httpx2's own transport; None for others."""
    pool = getattr(transport, "_pool", None) if is_plain(transport) else None
    if pool is None:
        return None
    busy = sum(not connection.is_idle() for connection in pool.connections)
    return busy, pool._max_connections


def refuse_http2(transport: AnyTransport) -> None:
    """Raise UnsupportedError for a transport with HTTP/2 switched on."""
    pool = getattr(transport, "_pool", None) if is_plain(transport) else None
    if pool is not None and pool._http2:
        raise UnsupportedError(
            "a client with http2=True cannot be hedged: httpcore2 does not reset a cancelled HTTP/2 stream, so the loser "
            "would run on and be billed; use http2=False (HTTP/1.1 ends a call by closing its connection)"
        )


def is_classic(client: object) -> TypeGuard[ClassicClient]:
    """Is it a client of classic httpx?"""
    httpx = classic_httpx()
    return httpx is not None and isinstance(client, httpx.AsyncClient | httpx.Client)


def classic_httpx() -> Any:
    """The module, if somebody has imported it: whoever has such a client has. Not httpx2 under its name, as test suites put it
    there."""
    httpx: Any = sys.modules.get("httpx")
    return None if httpx is None or getattr(httpx, "Client", None) in (None, httpx2.Client) else httpx


def is_http_client(client: object) -> TypeGuard[AnyHttpClient]:
    """Is it a client of httpx2 or of classic httpx?"""
    return isinstance(client, httpx2.AsyncClient | httpx2.Client) or is_classic(client)


def refuse_others(transport: object, *, asynchronous: bool) -> None:
    """Raise UnsupportedError for what is no transport of httpx2's, or one for the other kind of client."""
    prefix, right, wrong = ("Async" if asynchronous else ""), httpx2.BaseTransport, httpx2.AsyncBaseTransport
    if asynchronous:
        right, wrong = wrong, right
    sends = "handle_async_request" if asynchronous else "handle_request"
    ours, other, example = (
        f"{prefix}Transport",
        "Transport" if asynchronous else "AsyncTransport",
        f"{prefix}HTTPTransport",
    )
    _refuse_classic(transport)
    if isinstance(transport, right) or (not isinstance(transport, type) and hasattr(transport, sends)):
        return
    name = transport.__name__ if isinstance(transport, type) else type(transport).__name__
    what = f"a {name} is no transport"
    if isinstance(transport, wrong):
        kind = "synchronous" if asynchronous else "asynchronous"
        what = f"a {name} is for {kind} clients: hedge it with hedgerow.{other}"
    elif isinstance(transport, type):
        what = f"{name} is a class: make a transport of it"
    elif is_http_client(transport):
        what = f"a {name} is a client, which takes the transport: httpx2.{name}(transport=hedgerow.{ours}(…))"
    raise UnsupportedError(f"{what}; hedgerow.{ours} takes an httpx2.{example}(…) or another of its kind")


def _refuse_classic(transport: object) -> None:
    """Classic httpx hands on requests and answers of other classes."""
    httpx = classic_httpx()
    if httpx is not None and isinstance(transport, httpx.AsyncBaseTransport | httpx.BaseTransport):
        ours = "AsyncHttpxTransport" if isinstance(transport, httpx.AsyncBaseTransport) else "HttpxTransport"
        raise UnsupportedError(
            f"a {type(transport).__module__.partition('.')[0]}.{type(transport).__name__} is of classic httpx: hedge it with "
            f"hedgerow.{ours} (pip install 'hedgerow[httpx]')"
        )


def http_client_of(client: object) -> object:
    """The HTTP client inside an SDK client, or the object itself if it is one. A genai.Client has two under one hedger; this
    is the one for threads."""
    inside = getattr(getattr(client, "_api_client", None), "_httpx_client", None)
    return inside if inside is not None else getattr(client, "_client", client)
