"""AnyLoopTransport: hedging for an asynchronous httpx2 client that is used from several event loops, or together with threads.

Its calls run on the portal's loop, as those of synchronous clients do: one hedger, one budget and one pool serve all of them,
and a stream that is dropped is closed although the loop that read it has ended.
"""

import httpx2

from hedgerow.errors import UnsupportedError
from hedgerow.race.portal import portal
from hedgerow.race.stream import Delivery
from hedgerow.sync_hedger import SyncHedger
from hedgerow.transports.httpx2_portal import OnPortal, Wrap, answered, handed_on, next_chunk
from hedgerow.transports.httpx2_transport import ledger_for

__all__ = ["AnyLoopTransport"]


class AnyLoopTransport(OnPortal, httpx2.AsyncBaseTransport):
    """One of several transports of a client under one hedger. Shared by all loops and threads.

    inner: an httpx2.AsyncHTTPTransport, whose settings stay in force. wrap: hedges its twin on the portal's loop. Raises
    UnsupportedError for another kind of transport, and for HTTP/2.
    """

    def __init__(self, inner: httpx2.AsyncBaseTransport, hedger: SyncHedger, wrap: Wrap) -> None:
        if not isinstance(inner, httpx2.AsyncHTTPTransport):
            raise UnsupportedError(
                f"a {type(inner).__module__}.{type(inner).__name__} cannot be hedged here: it belongs to one event loop, and "
                "these calls run on hedgerow's own; wrap it yourself: async_client_args={'transport': "
                "hedgerow.AsyncTransport(yours)}"
            )
        self._set_up(inner, hedger, wrap)
        self._inner = inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        await request.aread()  # a body that a generator makes belongs to the caller's loop
        response, body = await portal().wait(answered(self._hedged(), request, ledger_for(request)))
        return handed_on(self, response, body, _Body)

    async def aclose(self) -> None:
        """Wait for open losers, then close all connections."""
        await portal().wait(self._hedged().aclose())
        await self._inner.aclose()


class _Body(httpx2.AsyncByteStream):
    """A body that is still coming, as another loop reads it. An iterator of its own, not a generator: it is gone as soon as
    nobody holds it, and with it the delivery, which closes what is open."""

    def __init__(self, delivery: Delivery, transport: OnPortal) -> None:
        self._delivery, self._portal, self._transport = delivery, portal(), transport

    def __aiter__(self) -> "_Body":
        return self

    async def __anext__(self) -> bytes:
        chunk = await self._portal.wait(next_chunk(self._delivery))
        if chunk is None:
            raise StopAsyncIteration
        return chunk

    async def aclose(self) -> None:
        await self._portal.wait(self._delivery.aclose())
