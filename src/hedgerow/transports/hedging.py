"""hedged(client): the one line. A copy of an SDK client whose calls are hedged; the original stays as it was."""

import sys
from collections.abc import Sequence
from os import PathLike
from typing import Any, TypeVar

import httpx2

from hedgerow.clock import Clock
from hedgerow.cost.prices import PriceRule
from hedgerow.engine import Hedger
from hedgerow.errors import UnsupportedError
from hedgerow.record.recorder import Store
from hedgerow.settings import Policy, Target
from hedgerow.transports.httpx2_private import clone_client, http_client_of, transport_for, transports_of
from hedgerow.transports.httpx2_transport import AsyncTransport
from hedgerow.transports.options import Hedging
from hedgerow.transports.targets import Home

__all__ = ["hedged", "hedger_of"]

Client = TypeVar("Client")

SUPPORTED = "openai.AsyncOpenAI (and its subclasses, such as AsyncAzureOpenAI)"


def hedged(
    client: Client,
    *,
    policy: Policy | None = None,
    backup: Target | Sequence[Target] | None = None,
    events: Store | None = None,
    state: str | PathLike[str] | None = None,
    prices: Sequence[PriceRule] = (),
    clock: Clock | None = None,
) -> Client:
    """A copy of an SDK client whose slow calls are rescued by a backup.

    client: an openai.AsyncOpenAI; its proxies, mounts, limits, redirects, hooks, auth, time-outs and retries stay in force.
    policy: default Policy(), which spends at most 5 % on losing backups. backup: where backups go, one Target or several in
    order of preference (None: the same endpoint). events: a store for events (default: the last 10,000 in memory). state:
    a file that keeps what was learnt, budget included, over restarts (one per process). prices: your own PriceRules,
    which count before the public list. clock: default real time.

    The copy shares the original's connection pool; closing either closes the connections of both. Raises UnsupportedError
    for a client that cannot be hedged, with the reason.
    """
    http_client = http_client_of(client)
    if not _is_async_openai(client):
        raise UnsupportedError(f"{_name(client)} cannot be hedged by this version: supported is {SUPPORTED}")
    if not isinstance(http_client, httpx2.AsyncClient):
        raise UnsupportedError(
            f"its http_client is a {_name(http_client)}: give the SDK an httpx2.AsyncClient (openai.DefaultAsyncHttpxClient)"
        )
    if any(isinstance(transport, AsyncTransport) for transport in transports_of(http_client)):
        raise UnsupportedError("this client is hedged already: hedging it again would multiply the backups")
    sdk: Any = client
    home = Home(str(sdk.base_url), sdk.api_key)
    hedging = Hedging(policy=policy, backup=backup, events=events, state=state, prices=prices, clock=clock)
    hedger, targets = hedging.hedger(name=sdk.base_url.host, home=home), hedging.targets

    def wrap(inner: httpx2.AsyncBaseTransport) -> AsyncTransport:
        def choose(url: httpx2.URL) -> httpx2.AsyncBaseTransport:
            return transport_for(http_client, url)

        return AsyncTransport.sharing(inner, hedger, targets, choose=choose, deadline=_openai_deadline)

    return sdk.copy(http_client=clone_client(http_client, wrap))


def hedger_of(client: object) -> Hedger:
    """The Hedger behind a hedged client: `.stats()`, `.subscribe(hook)`, `.events`, `.close()`.

    Takes what hedged() returned, an AsyncTransport, or an httpx2.AsyncClient that uses one; UnsupportedError otherwise.
    """
    inside = http_client_of(client)
    candidates = transports_of(inside) if isinstance(inside, httpx2.AsyncClient) else [client]
    for transport in candidates:
        if isinstance(transport, AsyncTransport):
            return transport.hedger
    raise UnsupportedError(f"{_name(client)} is not hedged: pass what hedgerow.hedged() returned")


def _is_async_openai(client: object) -> bool:
    openai = sys.modules.get("openai")  # whoever has such a client has imported it
    return openai is not None and isinstance(client, openai.AsyncOpenAI)


def _openai_deadline(message: str, request: httpx2.Request) -> Exception:
    """openai raises its own errors without retrying them: no further try reaches the provider after our deadline."""
    error = sys.modules["openai"].APITimeoutError(request=request)
    error.add_note(f"hedgerow: {message}")
    return error


def _name(value: object) -> str:
    return f"{type(value).__module__.partition('.')[0]}.{type(value).__name__}"
