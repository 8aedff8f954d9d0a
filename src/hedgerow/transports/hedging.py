"""hedged(client): the one line. A copy of an SDK client whose calls are hedged; the original stays as it was."""

from collections.abc import Sequence
from functools import partial
from os import PathLike
from typing import TypeVar, cast

import httpx2

from hedgerow.clock import Clock
from hedgerow.cost.prices import PriceRule
from hedgerow.engine import Hedger
from hedgerow.errors import UnsupportedError
from hedgerow.record.recorder import Store
from hedgerow.settings import Policy, Target
from hedgerow.sync_hedger import SyncHedger
from hedgerow.transports.genai_client import hedged_genai, is_genai
from hedgerow.transports.httpx2_portal import wrapping
from hedgerow.transports.httpx2_private import (
    clone_client,
    http_client_of,
    is_http_client,
    transport_for,
    transports_of,
)
from hedgerow.transports.httpx2_sync import Transport
from hedgerow.transports.httpx2_transport import AsyncTransport
from hedgerow.transports.options import Hedging
from hedgerow.transports.sdk_clients import SdkClient, described, name_of

__all__ = ["hedged", "hedger_of"]

Client = TypeVar("Client")


def hedged(
    client: Client,
    *,
    policy: Policy | None = None,
    backup: Target | Sequence[Target] | None = None,
    events: Store | str | None = None,
    state: str | PathLike[str] | None = None,
    prices: Sequence[PriceRule] = (),
    clock: Clock | None = None,
) -> Client:
    """A copy of an SDK client whose slow calls are rescued by a backup.

    client: an OpenAI, AsyncOpenAI, Anthropic, AsyncAnthropic or genai.Client; its proxies, mounts, limits, redirects, hooks,
    auth, time-outs and retries stay in force. policy: default Policy(), which spends at most 5 % on losing backups. backup: where
    backups go, one Target or several in order of preference (None: the same endpoint). events: a store for events or its
    address, "sqlite:///hedgerow.db" (default: the last 10,000 in memory). state: a file that keeps what was learnt, budget
    included, over restarts (one per process). prices: your own PriceRules, which count before the public list. clock:
    default real time.

    An asynchronous copy shares the original's connection pool; closing either closes the connections of both. Over classic httpx
    it has a pool of its own, with the same settings. A synchronous one has such a pool too, on a loop in a thread of hedgerow's
    own, and so have both halves of a genai.Client, which share one hedger; closing either half ends the hedging of both. Raises
    UnsupportedError for a client that cannot be hedged, with the reason.
    """
    hedging = Hedging(policy=policy, backup=backup, events=events, state=state, prices=prices, clock=clock)
    if is_genai(client):
        return hedged_genai(client, hedging)
    sdk = described(client)
    if any(isinstance(transport, AsyncTransport | Transport) for transport in transports_of(sdk.http_client)):
        raise UnsupportedError("this client is hedged already: hedging it again would multiply the backups")
    if isinstance(sdk.http_client, httpx2.AsyncClient):
        return sdk.rebuilt(_hedged_async(sdk, sdk.http_client, hedging))
    if isinstance(sdk.http_client, httpx2.Client):
        return sdk.rebuilt(_hedged_sync(sdk, sdk.http_client, hedging))
    from hedgerow.transports.httpx_client import hedged_classic

    return sdk.rebuilt(hedged_classic(sdk, sdk.http_client, hedging))


def hedger_of(client: object) -> Hedger | SyncHedger:
    """The Hedger behind a hedged client, or the SyncHedger of a synchronous one: `.stats()`, `.subscribe(hook)`, `.events`,
    `.close()`.

    Takes what hedged() returned, a transport of ours, an httpx2 or httpx client that uses one, or a function decorated with
    @hedge; UnsupportedError otherwise.
    """
    inside = http_client_of(client)
    for each in (client, *(transports_of(inside) if is_http_client(inside) else ())):
        hedger = getattr(each, "hedger", None)
        if isinstance(hedger, Hedger | SyncHedger):
            return hedger
    raise UnsupportedError(f"{name_of(client)} is not hedged: pass what hedgerow.hedged() returned")


def _hedged_async(sdk: SdkClient, client: httpx2.AsyncClient, hedging: Hedging) -> httpx2.AsyncClient:
    hedger = hedging.hedger(name=sdk.host, home=sdk.home)

    def choose(url: httpx2.URL) -> httpx2.AsyncBaseTransport:
        return cast(httpx2.AsyncBaseTransport, transport_for(client, url))

    def wrap(inner: httpx2.AsyncBaseTransport) -> AsyncTransport:
        return AsyncTransport.sharing(inner, hedger, hedging.targets, choose=choose, deadline=sdk.deadline)

    return clone_client(client, wrap)


def _hedged_sync(sdk: SdkClient, client: httpx2.Client, hedging: Hedging) -> httpx2.Client:
    hedger = SyncHedger(lambda: hedging.hedger(name=sdk.host, home=sdk.home))
    choose = partial(transport_for, client)
    return clone_client(client, wrapping(Transport.sharing, hedger, hedging.targets, choose, sdk.deadline))
