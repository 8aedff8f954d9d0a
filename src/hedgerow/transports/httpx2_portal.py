"""What the transports share whose calls run on the portal's loop: an asynchronous twin there, and the way of an answer back."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from weakref import finalize

import httpx2

from hedgerow.race.portal import portal
from hedgerow.race.stream import Delivery
from hedgerow.retry_ledger import Ledger
from hedgerow.settings import Target
from hedgerow.sync_hedger import PerProcess, SyncHedger
from hedgerow.transports.httpx2_private import AnyTransport, async_twin, refuse_http2
from hedgerow.transports.httpx2_transport import AsyncTransport, DeliveredBody
from hedgerow.transports.httpx2_upstream import TimeOut

__all__ = ["OnPortal", "Wrap", "answered", "handed_on", "next_chunk", "wrapping"]

Wrap = Callable[[httpx2.AsyncBaseTransport], AsyncTransport]
Stream = httpx2.SyncByteStream | httpx2.AsyncByteStream


class OnPortal:
    """One of several transports under one hedger, with a twin on the portal's loop; a forked child has a twin of its own."""

    def _set_up(self, inner: AnyTransport, hedger: SyncHedger, wrap: Wrap) -> None:
        """wrap: hedges the twin of `inner`. Raises UnsupportedError for HTTP/2 and for transports that have no twin."""
        refuse_http2(inner)
        async_twin(inner)  # to refuse what has none at once, not at the first call
        self.hedger = hedger
        twin = self.twin = PerProcess(lambda: async_twin(inner))
        self._hedged = PerProcess(lambda: wrap(twin()))
        finalize(self, _close, twin)


Made = TypeVar("Made", bound=OnPortal)


def wrapping(
    make: Callable[[Any, SyncHedger, Wrap], Made],
    hedger: SyncHedger,
    targets: Sequence[Target],
    choose: Callable[[httpx2.URL], AnyTransport],
    deadline: TimeOut | None = None,
) -> Callable[[AnyTransport], Made]:
    """What hedges each transport of one client, to whose mounts and proxies backups are kept as well.

    choose: the client's own transport for a URL; deadline: see AsyncTransport.sharing.
    """
    made = dict[int, Made]()

    def twin_for(url: httpx2.URL) -> httpx2.AsyncBaseTransport:
        return made[id(choose(url))].twin()

    def wrap_twin(twin: httpx2.AsyncBaseTransport) -> AsyncTransport:
        return AsyncTransport.sharing(twin, hedger.inner(), targets, choose=twin_for, deadline=deadline)

    def wrap(inner: AnyTransport) -> Made:
        if id(inner) not in made:
            made[id(inner)] = make(inner, hedger, wrap_twin)
        return made[id(inner)]

    return wrap


async def answered(
    transport: AsyncTransport, request: httpx2.Request, ledger: Ledger | None
) -> tuple[httpx2.Response, bytes | None]:
    """The response, and its body if that is all here: each visit to the portal costs some 50 µs."""
    response = await transport.send(request, ledger)
    delivery = _delivery_of(response)
    return response, b"".join([chunk async for chunk in delivery]) if delivery.whole else None


def handed_on(
    transport: OnPortal, response: httpx2.Response, body: bytes | None, coming: Callable[[Delivery, OnPortal], Stream]
) -> httpx2.Response:
    """The response as it leaves the portal. coming: reads a body that is not all here, and holds the transport meanwhile, whose
    end would close the connection: a caller may drop its client and read on."""
    # The connection belongs to the portal's loop.
    extensions = {name: value for name, value in response.extensions.items() if name != "network_stream"}
    return httpx2.Response(
        response.status_code,
        headers=response.headers,
        stream=coming(_delivery_of(response), transport) if body is None else httpx2.ByteStream(body),
        extensions=extensions,
    )


async def next_chunk(delivery: Delivery) -> bytes | None:
    """None at the end: StopAsyncIteration does not travel through a future."""
    return await anext(delivery, None)


def _delivery_of(response: httpx2.Response) -> Delivery:
    assert isinstance(response.stream, DeliveredBody)
    return response.stream.delivery


def _close(twin: PerProcess[httpx2.AsyncHTTPTransport]) -> None:
    """A client that is dropped leaves no connections."""
    made = twin.here
    if made is not None:
        portal().soon(made.aclose)
