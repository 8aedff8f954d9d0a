"""Transport: hedging for synchronous httpx2 clients. The calls run on the portal's loop, over an asynchronous twin of the
client's transport with the same settings."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from os import PathLike
from typing import NoReturn

import httpx2

from hedgerow.clock import Clock
from hedgerow.cost.prices import PriceRule
from hedgerow.errors import UnsupportedError
from hedgerow.race.portal import portal
from hedgerow.race.stream import Delivery
from hedgerow.record.recorder import Store
from hedgerow.settings import Policy, Target
from hedgerow.sync_hedger import SyncHedger
from hedgerow.transports.httpx2_portal import OnPortal, Wrap, answered, handed_on, next_chunk
from hedgerow.transports.httpx2_private import refuse_others
from hedgerow.transports.httpx2_transport import AsyncTransport, ledger_for
from hedgerow.transports.misplaced import refuse_request, wrong_client
from hedgerow.transports.options import Hedging

__all__ = ["Transport"]


class Transport(OnPortal, httpx2.BaseTransport):
    """Wraps an httpx2 transport so that calls through it are hedged. Any httpx2.Client can use it:

        httpx2.Client(transport=hedgerow.Transport(httpx2.HTTPTransport()))

    inner: an httpx2.HTTPTransport; its proxy, certificates, limits, retries and socket options stay in force (closed with
    this one). policy, backup, events, state, prices, clock: as AsyncTransport. Raises UnsupportedError for another kind of
    transport, which could not be interrupted, and for HTTP/2. Shared by all threads; a forked child has connections and
    statistics of its own.
    """

    def __init__(
        self,
        inner: httpx2.BaseTransport,
        *,
        policy: Policy | None = None,
        backup: Target | Sequence[Target] | None = None,
        events: Store | str | None = None,
        state: str | PathLike[str] | None = None,
        prices: Sequence[PriceRule] = (),
        clock: Clock | None = None,
    ) -> None:
        hedging = Hedging(policy=policy, backup=backup, events=events, state=state, prices=prices, clock=clock)
        hedger = SyncHedger(hedging.hedger)
        self._init(inner, hedger, lambda twin: AsyncTransport.around(twin, hedger.inner(), hedging.targets))

    @classmethod
    def sharing(cls, inner: httpx2.BaseTransport, hedger: SyncHedger, wrap: Wrap) -> "Transport":
        """One of several transports of a client under one hedger. wrap: hedges the asynchronous twin of `inner`."""
        transport = cls.__new__(cls)
        transport._init(inner, hedger, wrap)
        return transport

    def _init(self, inner: httpx2.BaseTransport, hedger: SyncHedger, wrap: Wrap) -> None:
        if isinstance(inner, Transport):
            raise UnsupportedError("this transport is hedged already: hedging it again would multiply the backups")
        refuse_others(inner, asynchronous=False)
        self._set_up(inner, hedger, wrap)
        self._inner = inner

    async def __aenter__(self) -> NoReturn:
        raise wrong_client("Transport")

    async def handle_async_request(self, _request: object) -> NoReturn:
        """Refuses the request of an asynchronous client."""
        raise wrong_client("Transport")

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        refuse_request(request, "Transport")
        response, body = portal().run(answered(self._hedged(), _readable(request), ledger_for(request)))
        return handed_on(self, response, body, _Body)

    def close(self) -> None:
        """Wait for open losers, then close all connections."""
        portal().run(self._hedged().aclose())
        self._inner.close()


class _Body(httpx2.SyncByteStream):
    """A body that is still coming, as a thread reads it."""

    def __init__(self, delivery: Delivery, transport: OnPortal) -> None:
        self._delivery, self._portal, self._transport = delivery, portal(), transport

    def __iter__(self) -> Iterator[bytes]:
        try:
            while (chunk := self._portal.run(next_chunk(self._delivery))) is not None:
                yield chunk
        except GeneratorExit:
            # Whoever leaves its loop early need not close anything: the SDKs' generators fall, and this one with them.
            self._portal.soon(self._delivery.aclose)
            raise

    def close(self) -> None:
        self._portal.conclude(self._delivery.aclose)


def _readable(request: httpx2.Request) -> httpx2.Request:
    """The request with a body that an asynchronous transport can read."""
    if isinstance(request.stream, httpx2.AsyncByteStream):
        return request
    return httpx2.Request(
        request.method,
        request.url,
        headers=request.headers,
        stream=_Generated(request.stream),
        extensions=request.extensions,
    )


class _Generated(httpx2.AsyncByteStream):
    """The body of a generator, which may block: read in a thread."""

    def __init__(self, stream: httpx2.SyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        chunks = iter(self._stream)
        while (chunk := await asyncio.to_thread(next, chunks, None)) is not None:
            yield chunk

    async def aclose(self) -> None:
        await asyncio.to_thread(self._stream.close)
