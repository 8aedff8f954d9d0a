"""Hedges the HTTP client of an SDK that uses classic httpx."""

import httpx
import httpx2

from hedgerow.sync_hedger import SyncHedger
from hedgerow.transports.httpx2_portal import wrapping
from hedgerow.transports.httpx2_private import clone_client, transports_of
from hedgerow.transports.httpx2_sync import Transport
from hedgerow.transports.httpx2_transport import AsyncTransport
from hedgerow.transports.httpx2_upstream import TimeOut
from hedgerow.transports.httpx_exchange import classic_request
from hedgerow.transports.httpx_private import async_successor, classic_transport_for, successor
from hedgerow.transports.httpx_transport import AsyncHttpxTransport, HttpxTransport, refuse_hedged
from hedgerow.transports.options import Hedging
from hedgerow.transports.sdk_clients import SdkClient

__all__ = ["hedged_classic"]


def hedged_classic(sdk: SdkClient, client: httpx.AsyncClient | httpx.Client, hedging: Hedging) -> object:
    """A copy of an SDK's HTTP client whose calls are hedged; see hedgerow.hedged."""
    for transport in transports_of(client):
        refuse_hedged(transport)
    if isinstance(client, httpx.AsyncClient):
        return _hedged_async(sdk, client, hedging)
    return _hedged_sync(sdk, client, hedging)


def _hedged_async(sdk: SdkClient, client: httpx.AsyncClient, hedging: Hedging) -> httpx.AsyncClient:
    hedger, targets = hedging.hedger(name=sdk.host, home=sdk.home), hedging.targets
    successors = {id(transport): async_successor(transport) for transport in transports_of(client)}

    def choose(url: httpx2.URL) -> httpx2.AsyncBaseTransport:
        return successors[id(classic_transport_for(client, url))]

    def wrap(inner: httpx.AsyncBaseTransport) -> AsyncHttpxTransport:
        sends = AsyncTransport.sharing(
            successors[id(inner)], hedger, targets, choose=choose, deadline=_deadline_of(sdk)
        )
        return AsyncHttpxTransport.over(inner, sends)

    return clone_client(client, wrap)


def _hedged_sync(sdk: SdkClient, client: httpx.Client, hedging: Hedging) -> httpx.Client:
    hedger = SyncHedger(lambda: hedging.hedger(name=sdk.host, home=sdk.home))
    successors = {id(transport): successor(transport) for transport in transports_of(client)}

    def choose(url: httpx2.URL) -> httpx2.BaseTransport:
        return successors[id(classic_transport_for(client, url))]

    hedge = wrapping(Transport.sharing, hedger, hedging.targets, choose, _deadline_of(sdk))

    def wrap(inner: httpx.BaseTransport) -> HttpxTransport:
        return HttpxTransport.over(inner, hedge(successors[id(inner)]))

    return clone_client(client, wrap)


def _deadline_of(sdk: SdkClient) -> TimeOut | None:
    """The SDK's own time-out error, about a request as the SDK made it. None where the SDK would take it for a broken connection
    and try again: it then makes the error itself, of ours."""
    deadline = sdk.deadline
    return None if deadline is None else lambda message, request: deadline(message, classic_request(request))
