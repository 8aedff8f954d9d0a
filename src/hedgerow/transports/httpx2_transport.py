"""AsyncTransport: an httpx2 transport that hedges the calls it knows and passes the others through."""

from collections.abc import AsyncIterator, Callable, Sequence
from os import PathLike
from typing import NoReturn

import httpx2

from hedgerow.clock import Clock
from hedgerow.cost.prices import PriceRule
from hedgerow.dialects.encoding import decodable_accept_encoding
from hedgerow.engine import Hedger
from hedgerow.errors import UnsupportedError
from hedgerow.race.stream import Delivery
from hedgerow.record.recorder import Store
from hedgerow.retry_ledger import Ledger, ledger_of, next_try, tries_before
from hedgerow.settings import Policy, Target
from hedgerow.transports.httpx2_private import refuse_http2, refuse_others
from hedgerow.transports.httpx2_upstream import Httpx2Call, Httpx2Response, Route, TimeOut
from hedgerow.transports.misplaced import refuse_request, wrong_client
from hedgerow.transports.options import Hedging
from hedgerow.transports.sdk_requests import fresh_credentials, retried_above
from hedgerow.transports.targets import request_for
from hedgerow.values.request import StreamedRequest, WireRequest

__all__ = ["AsyncTransport", "DeliveredBody", "ledger_for"]


class AsyncTransport(httpx2.AsyncBaseTransport):
    """Wraps an httpx2 transport so that calls through it are hedged. Any httpx2.AsyncClient can use it:

        httpx2.AsyncClient(transport=hedgerow.AsyncTransport(httpx2.AsyncHTTPTransport()))

    inner: the transport that sends (closed with this one). policy: default Policy(). backup: where backups go, one Target or
    several in order of preference; None = the same place. events: a store or its address, "sqlite:///hedgerow.db" (default:
    in memory). state: a file that keeps what was learnt over restarts. prices: your own, before the public list. clock:
    default real time. Raises UnsupportedError for a transport with HTTP/2 switched on, whose losers could not be stopped.
    Shared by all tasks of one event loop.
    """

    def __init__(
        self,
        inner: httpx2.AsyncBaseTransport,
        *,
        policy: Policy | None = None,
        backup: Target | Sequence[Target] | None = None,
        events: Store | str | None = None,
        state: str | PathLike[str] | None = None,
        prices: Sequence[PriceRule] = (),
        clock: Clock | None = None,
    ) -> None:
        hedging = Hedging(policy=policy, backup=backup, events=events, state=state, prices=prices, clock=clock)
        self._init(inner, hedging.hedger(), hedging.targets, lambda _: inner, None)

    @classmethod
    def around(cls, inner: httpx2.AsyncBaseTransport, hedger: Hedger, targets: Sequence[Target]) -> "AsyncTransport":
        """One under a hedger that is there already; all targets are reached through `inner`."""
        return cls.sharing(inner, hedger, targets, choose=lambda _: inner, deadline=None)

    @classmethod
    def sharing(
        cls,
        inner: httpx2.AsyncBaseTransport,
        hedger: Hedger,
        targets: Sequence[Target],
        *,
        choose: "Choose",
        deadline: TimeOut | None,
    ) -> "AsyncTransport":
        """One of several transports of a client under one hedger. choose: the transport for a backup target's URL;
        deadline: makes the error of a request that ran out of its timeout_s."""
        transport = cls.__new__(cls)
        transport._init(inner, hedger, targets, choose, deadline)
        return transport

    def _init(
        self,
        inner: httpx2.AsyncBaseTransport,
        hedger: Hedger,
        targets: Sequence[Target],
        choose: "Choose",
        deadline: TimeOut | None,
    ) -> None:
        if isinstance(inner, AsyncTransport):
            raise UnsupportedError("this transport is hedged already: hedging it again would multiply the backups")
        refuse_others(inner, asynchronous=True)
        refuse_http2(inner)
        self.hedger = hedger
        self._inner, self._targets, self._choose, self._deadline = inner, tuple(targets), choose, deadline

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        refuse_request(request, "AsyncTransport")
        return await self.send(request, ledger_for(request))

    def __enter__(self) -> NoReturn:
        raise wrong_client("AsyncTransport")

    def handle_request(self, _request: object) -> NoReturn:
        """Refuses the request of a synchronous client."""
        raise wrong_client("AsyncTransport")

    async def send(self, request: httpx2.Request, ledger: Ledger | None) -> httpx2.Response:
        """Sends a request whose ledger the caller has looked up in its own context."""
        body = _body_of(request)
        wire = WireRequest(method=request.method, path=request.url.path, headers=tuple(request.headers.raw), body=body)
        sdk_retry = _sdk_retry(request)
        call = Httpx2Call(request, self._route(request, body), self._deadline, fresh_credentials())
        delivery = await self.hedger.send(
            wire,
            call,
            sdk_retry=sdk_retry,
            retried_above=retried_above(request, sdk_retry),
            ledger=ledger,
            obstacle="body_not_replayable" if body is None else None,
        )
        assert isinstance(delivery.response, Httpx2Response)
        return httpx2.Response(
            delivery.status,
            headers=_headers(delivery, ledger),
            stream=DeliveredBody(delivery),
            extensions=delivery.response.native.extensions,
        )

    async def aclose(self) -> None:
        await self.hedger.aclose()
        await self._inner.aclose()

    def _route(self, request: httpx2.Request, body: bytes | None) -> Route:
        def route(target: int, as_stream: StreamedRequest | None) -> tuple[httpx2.AsyncBaseTransport, httpx2.Request]:
            copy = _copy_of(request, as_stream)
            if target == 0:
                return self._inner, copy
            sent = request_for(self._targets[target - 1], copy, as_stream.body if as_stream else body or b"")
            return self._choose(sent.url), sent

        return route


Choose = Callable[[httpx2.URL], httpx2.AsyncBaseTransport]


class DeliveredBody(httpx2.AsyncByteStream):
    """The delivery as httpx2 reads it."""

    def __init__(self, delivery: Delivery) -> None:
        self.delivery = delivery

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self.delivery

    async def aclose(self) -> None:
        await self.delivery.aclose()


def ledger_for(request: httpx2.Request) -> Ledger | None:
    """The account of this request over the SDK's tries; to be asked in the caller's own task or thread."""
    next_try()
    size = int(request.headers.get("content-length", "0") or 0)
    return ledger_of((request.method, str(request.url), size), _sdk_retry(request))


def _sdk_retry(request: httpx2.Request) -> int:
    retry = request.headers.get("x-stainless-retry-count", "0")
    return max(int(retry) if retry.isdecimal() else 0, tries_before())


def _headers(delivery: Delivery, ledger: Ledger | None) -> list[tuple[bytes, bytes]]:
    """As the provider sent them. An error after several attempts says how many there were, those of the SDK's tries included."""
    headers = list(delivery.headers)
    if delivery.status >= 400 and ledger is not None and ledger.attempts > 1:
        headers.append((b"hedgerow-attempts", str(ledger.attempts).encode()))
    return headers


def _body_of(request: httpx2.Request) -> bytes | None:
    """The body if it can be sent more than once; None for generators and multipart forms, which share one handle."""
    try:
        return request.content
    except httpx2.RequestNotRead:
        return None


def _copy_of(request: httpx2.Request, as_stream: StreamedRequest | None) -> httpx2.Request:
    """The same request, for one attempt: what one attempt's extensions say is not said of another."""
    url, headers, stream = request.url, request.headers, request.stream
    accepted = headers.get("accept-encoding")
    if accepted is not None and (readable := decodable_accept_encoding(accepted)) != accepted:
        headers = headers.copy()
        headers["accept-encoding"] = readable
    if as_stream is not None:
        url, headers, stream = _url_of(url, as_stream), headers.copy(), httpx2.ByteStream(as_stream.body)
        headers["content-length"] = str(len(as_stream.body))
    copied = httpx2.Request(request.method, url, headers=headers, stream=stream, extensions=dict(request.extensions))
    if isinstance(stream, httpx2.ByteStream):
        copied.read()  # as the caller's own is: a transport of aiohttp's sends what is not as a stream, an empty body included
    return copied


def _url_of(url: httpx2.URL, as_stream: StreamedRequest) -> httpx2.URL:
    if as_stream.ending is not None:
        before, after = (ending.encode() for ending in as_stream.ending)
        path, mark, query = url.raw_path.partition(b"?")
        url = url.copy_with(raw_path=path.removesuffix(before) + after + mark + query)
    return url.copy_merge_params(dict(as_stream.query)) if as_stream.query else url
