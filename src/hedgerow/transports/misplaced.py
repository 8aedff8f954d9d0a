"""What a transport says that was given to a client of the wrong kind: which class belongs there."""

from types import MappingProxyType

import httpx2

from hedgerow.errors import UnsupportedError

__all__ = ["refuse_request", "wrong_client"]

CLIENTS = MappingProxyType(
    {
        "AsyncHttpxTransport": "httpx.AsyncClient",
        "AsyncTransport": "httpx2.AsyncClient",
        "HttpxTransport": "httpx.Client",
        "Transport": "httpx2.Client",
    }
)


def wrong_client(ours: str) -> UnsupportedError:
    """The error for a call from a client of the other colour, asynchronous or not."""
    other = ours.removeprefix("Async") if ours.startswith("Async") else f"Async{ours}"
    return UnsupportedError(
        f"hedgerow.{ours} serves an {CLIENTS[ours]}; this client is of the other kind and takes hedgerow.{other} "
        f"(that of an {CLIENTS[other]})"
    )


def refuse_request(request: object, ours: str) -> None:
    """Raise UnsupportedError for a request of the other library: classic httpx and httpx2 have classes of their own."""
    of_httpx2 = isinstance(request, httpx2.Request)
    if of_httpx2 is ("Httpx" not in ours):
        return
    other = ours.replace("HttpxTransport", "Transport") if of_httpx2 else ours.replace("Transport", "HttpxTransport")
    raise UnsupportedError(
        f"hedgerow.{ours} serves an {CLIENTS[ours]}; this client is an {CLIENTS[other]} and takes hedgerow.{other}"
    )
