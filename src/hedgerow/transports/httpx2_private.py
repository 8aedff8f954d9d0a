"""The one place that touches private attributes of httpx2, httpcore2 and the SDKs; tests/sdk/test_private.py pins them.

Wrapping an existing client needs them: there is no public way to ask a client for its transport, its mounts or its pool.
"""

import copy
from collections.abc import Callable

import httpx2

from hedgerow.errors import UnsupportedError

__all__ = ["clone_client", "http_client_of", "is_plain", "pool_of", "refuse_http2", "transport_for", "transports_of"]

Wrap = Callable[[httpx2.AsyncBaseTransport], httpx2.AsyncBaseTransport]


def transports_of(client: httpx2.AsyncClient) -> list[httpx2.AsyncBaseTransport]:
    """The client's transports, the default one first, then those of its mounts and proxies."""
    mounts = client._mounts.values()  # pyright: ignore[reportPrivateUsage]
    return [client._transport, *(mount for mount in mounts if mount is not None)]  # pyright: ignore[reportPrivateUsage]


def transport_for(client: httpx2.AsyncClient, url: httpx2.URL) -> httpx2.AsyncBaseTransport:
    """The transport the client itself would use for a URL."""
    return client._transport_for_url(url)  # pyright: ignore[reportPrivateUsage]


def clone_client(client: httpx2.AsyncClient, wrap: Wrap) -> httpx2.AsyncClient:
    """A copy that shares every setting and connection pool with `client`, each transport wrapped by `wrap`.

    It keeps `client` alive and has no `__del__` of its own: openai's HTTP client closes its pool when it is collected, and
    the pool is shared until both are gone.
    """
    clone = copy.copy(client)
    clone.__class__ = type(type(client).__name__, (type(client),), {"__del__": _nothing})
    clone._hedgerow_original = client  # pyright: ignore[reportAttributeAccessIssue]
    clone._transport = wrap(client._transport)  # pyright: ignore[reportPrivateUsage]
    clone._mounts = {  # pyright: ignore[reportPrivateUsage]
        pattern: None if mount is None else wrap(mount)
        for pattern, mount in client._mounts.items()  # pyright: ignore[reportPrivateUsage]
    }
    return clone


def _nothing(_: object) -> None:
    """In place of a `__del__` that would close a shared pool."""


def is_plain(transport: httpx2.AsyncBaseTransport) -> bool:
    """Is it httpx2's own transport, which reports its connections through the trace extension?"""
    return isinstance(transport, httpx2.AsyncHTTPTransport)


def pool_of(transport: httpx2.AsyncBaseTransport) -> tuple[int, int] | None:
    """(connections busy, connections at most) of httpx2's own transport; None for others."""
    pool = getattr(transport, "_pool", None) if is_plain(transport) else None
    if pool is None:
        return None
    busy = sum(not connection.is_idle() for connection in pool.connections)
    return busy, pool._max_connections


def refuse_http2(transport: httpx2.AsyncBaseTransport) -> None:
    """Raise UnsupportedError for a transport with HTTP/2 switched on."""
    pool = getattr(transport, "_pool", None) if is_plain(transport) else None
    if pool is not None and pool._http2:
        raise UnsupportedError(
            "a client with http2=True cannot be hedged: httpcore2 does not reset a cancelled HTTP/2 stream, so the loser "
            "would run on and be billed; use http2=False (HTTP/1.1 ends a call by closing its connection)"
        )


def http_client_of(client: object) -> object:
    """The HTTP client inside an SDK client, or the object itself if it is one."""
    return getattr(client, "_client", client)
