"""HttpxTransport and AsyncHttpxTransport: hedging for clients of classic httpx. The calls are sent by httpx2, through a pool with
the settings of the classic one."""

from collections.abc import Sequence
from os import PathLike
from typing import NoReturn

try:
    import httpx
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "hedging a client of classic httpx needs an extra: pip install 'hedgerow[httpx]'", name=error.name
    ) from error
import httpx2

from hedgerow.clock import Clock
from hedgerow.cost.prices import PriceRule
from hedgerow.engine import Hedger
from hedgerow.errors import UnsupportedError
from hedgerow.record.recorder import Store
from hedgerow.settings import Policy, Target
from hedgerow.sync_hedger import SyncHedger
from hedgerow.transports.httpx2_sync import Transport
from hedgerow.transports.httpx2_transport import AsyncTransport
from hedgerow.transports.httpx_exchange import answer_for, async_answer_for, classic_error, modern_request
from hedgerow.transports.httpx_private import AnyClassicTransport, async_successor, successor
from hedgerow.transports.misplaced import refuse_request, wrong_client

__all__ = ["AsyncHttpxTransport", "HttpxTransport"]


class AsyncHttpxTransport(httpx.AsyncBaseTransport):
    """Wraps a transport of classic httpx so that calls through it are hedged. Any httpx.AsyncClient can use it:

        httpx.AsyncClient(transport=hedgerow.AsyncHttpxTransport(httpx.AsyncHTTPTransport()))

    inner: an httpx.AsyncHTTPTransport, whose proxy, certificates, limits, retries and socket options stay in force (closed with
    this one). Its pool is not used: httpcore 1.0.9's wedges when losers are cancelled, so calls go through one of httpcore2's.
    policy, backup, events, state, prices, clock: as AsyncTransport. Answers and errors are httpx's. What instruments the class
    httpx.AsyncHTTPTransport does not see these calls: instrument the client. Needs the extra `httpx`. Raises UnsupportedError
    for a transport of another class, and for HTTP/2. Shared by all tasks of one event loop.
    """

    def __init__(
        self,
        inner: httpx.AsyncBaseTransport,
        *,
        policy: Policy | None = None,
        backup: Target | Sequence[Target] | None = None,
        events: Store | str | None = None,
        state: str | PathLike[str] | None = None,
        prices: Sequence[PriceRule] = (),
        clock: Clock | None = None,
    ) -> None:
        refuse_hedged(inner)
        self._inner = inner
        self._sends = AsyncTransport(
            async_successor(inner),
            policy=policy,
            backup=backup,
            events=events,
            state=state,
            prices=prices,
            clock=clock,
        )

    @classmethod
    def over(cls, inner: httpx.AsyncBaseTransport, sends: AsyncTransport) -> "AsyncHttpxTransport":
        """One in place of `inner`, whose calls `sends` hedges."""
        transport = cls.__new__(cls)
        transport._inner, transport._sends = inner, sends
        return transport

    @property
    def hedger(self) -> Hedger:
        """What hedger_of() finds."""
        return self._sends.hedger

    def __enter__(self) -> NoReturn:
        raise wrong_client("AsyncHttpxTransport")

    def handle_request(self, _request: object) -> NoReturn:
        """Refuses the request of a synchronous client."""
        raise wrong_client("AsyncHttpxTransport")

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request, hedged if it may be."""
        refuse_request(request, "AsyncHttpxTransport")
        try:
            response = await self._sends.handle_async_request(modern_request(request, in_task=True))
        except httpx2.RequestError as error:
            raise classic_error(error, request) from error
        return async_answer_for(request, response)

    async def aclose(self) -> None:
        """Wait for open losers, then close all connections."""
        await self._sends.aclose()
        await self._inner.aclose()


class HttpxTransport(httpx.BaseTransport):
    """Wraps a transport of classic httpx so that calls through it are hedged. Any httpx.Client can use it:

        httpx.Client(transport=hedgerow.HttpxTransport(httpx.HTTPTransport()))

    inner: an httpx.HTTPTransport, whose settings stay in force; the rest as AsyncHttpxTransport. Shared by all threads; a
    forked child has connections and statistics of its own.
    """

    def __init__(
        self,
        inner: httpx.BaseTransport,
        *,
        policy: Policy | None = None,
        backup: Target | Sequence[Target] | None = None,
        events: Store | str | None = None,
        state: str | PathLike[str] | None = None,
        prices: Sequence[PriceRule] = (),
        clock: Clock | None = None,
    ) -> None:
        refuse_hedged(inner)
        self._inner = inner
        self._sends = Transport(
            successor(inner), policy=policy, backup=backup, events=events, state=state, prices=prices, clock=clock
        )

    @classmethod
    def over(cls, inner: httpx.BaseTransport, sends: Transport) -> "HttpxTransport":
        """One in place of `inner`, whose calls `sends` hedges."""
        transport = cls.__new__(cls)
        transport._inner, transport._sends = inner, sends
        return transport

    @property
    def hedger(self) -> SyncHedger:
        """What hedger_of() finds."""
        return self._sends.hedger

    async def __aenter__(self) -> NoReturn:
        raise wrong_client("HttpxTransport")

    async def handle_async_request(self, _request: object) -> NoReturn:
        """Refuses the request of an asynchronous client."""
        raise wrong_client("HttpxTransport")

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request, hedged if it may be."""
        refuse_request(request, "HttpxTransport")
        try:
            response = self._sends.handle_request(modern_request(request, in_task=False))
        except httpx2.RequestError as error:
            raise classic_error(error, request) from error
        return answer_for(request, response)

    def close(self) -> None:
        """Wait for open losers, then close all connections."""
        self._sends.close()
        self._inner.close()


def refuse_hedged(transport: AnyClassicTransport) -> None:
    """Raise UnsupportedError for one of ours."""
    if isinstance(transport, AsyncHttpxTransport | HttpxTransport):
        raise UnsupportedError("this transport is hedged already: hedging it again would multiply the backups")
