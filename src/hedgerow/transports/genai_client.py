"""hedged(genai.Client()): Google's client has a half for threads and one for event loops; both are hedged under one hedger.

The one place that touches private attributes of google-genai; tests/sdk/test_genai_private.py pins them. There is no public
way to ask a client for its settings, and making a new one from its arguments would read the environment again.
"""

import copy
import inspect
import os
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeVar, cast

import httpx2

from hedgerow.clock import Clock
from hedgerow.cost.prices import PriceRule
from hedgerow.errors import UnsupportedError
from hedgerow.record.recorder import Store
from hedgerow.retry_ledger import counted_tries
from hedgerow.settings import Policy, Target
from hedgerow.sync_hedger import SyncHedger
from hedgerow.transports.httpx2_any_loop import AnyLoopTransport
from hedgerow.transports.httpx2_portal import wrapping
from hedgerow.transports.httpx2_private import clone_client, transport_for, transports_of
from hedgerow.transports.httpx2_sync import Transport
from hedgerow.transports.options import Hedging
from hedgerow.transports.targets import Home
from hedgerow.values.failure import Repeats

if TYPE_CHECKING:
    from google.genai.types import HttpOptions

__all__ = ["gemini_http_options", "hedged_genai", "is_genai"]

Client = TypeVar("Client")
BACKEND = "GOOGLE_GENAI_HTTP_CLIENT"
HEDGE_IT = "hedgerow.hedged(client)"
PUBLIC_URL = "https://generativelanguage.googleapis.com/"
DEFAULT_TRIES = 5  # of the SDK, where retries are on and nothing else is said
DEFAULT_STATUSES = frozenset({408, 429, 500, 502, 503, 504})
# Of httpx2's errors. A disconnect is not among them: the SDK repeats that over aiohttp only, which it takes where it can.
REPEATED_ERRORS = frozenset({"ConnectError", "ConnectTimeout", "PoolTimeout", "ReadTimeout", "WriteTimeout"})
ITS_CLIENTS = ("httpx_client", "httpx_async_client", "aiohttp_client")
# What httpx2's transports take of the arguments of a client.
TRANSPORT_ARGUMENTS = frozenset({"verify", "cert", "trust_env", "http1", "http2", "limits", "proxy"})


def is_genai(client: object) -> bool:
    """Is it a google.genai.Client?"""
    genai = sys.modules.get("google.genai")  # whoever has such a client has imported it
    return genai is not None and isinstance(client, genai.Client)


def hedged_genai(client: Client, hedging: Hedging) -> Client:
    """A copy of a genai.Client, both halves of which are hedged; see hedgerow.hedged."""
    _refuse_classic_httpx()
    api: Any = cast(Any, client)._api_client
    inside, inside_async = _http_clients(api)
    if any(isinstance(each, Transport) for each in transports_of(inside)):
        raise UnsupportedError("this client is hedged already: hedging it again would multiply the backups")
    hedger, targets = _hedger(hedging, str(api._http_options.base_url or PUBLIC_URL), api.api_key), hedging.targets
    wrap = wrapping(Transport.sharing, hedger, targets, lambda url: transport_for(inside, url))
    wrap_async = wrapping(AnyLoopTransport, hedger, targets, lambda url: transport_for(inside_async, url))
    hedged, hedged_async = clone_client(inside, wrap), clone_client(inside_async, wrap_async)
    vars(hedged_async).update(_per_loop=False, _loop_clients={})  # only the portal's loop has connections
    return _copied(client, _api_copy(client, hedged, hedged_async))


def gemini_http_options(
    options: "HttpOptions | None" = None,
    *,
    policy: Policy | None = None,
    backup: Target | Sequence[Target] | None = None,
    events: Store | str | None = None,
    state: str | PathLike[str] | None = None,
    prices: Sequence[PriceRule] = (),
    clock: Clock | None = None,
) -> "HttpOptions":
    """Options for those who make the client themselves: `genai.Client(http_options=hedgerow.gemini_http_options())`.

    options: your own HttpOptions, to which transports are added (None: the SDK's defaults); verify, cert, limits, proxy and
    trust_env in its client_args and async_client_args stay in force. The others: as hedgerow.hedged. One hedger serves all
    clients made with the result. Proxies named by the environment are not used: httpx2 reads it only for its own transports.
    Raises UnsupportedError for options that carry a client, mounts or a transport of their own: hedged() takes those.
    """
    from google.genai.types import HttpOptions

    _refuse_classic_httpx()
    given = options or HttpOptions()
    if any(getattr(given, name, None) is not None for name in ITS_CLIENTS):
        raise UnsupportedError(
            f"these options carry an HTTP client of their own: make the genai.Client and hedge it: {HEDGE_IT}"
        )
    hedging = Hedging(policy=policy, backup=backup, events=events, state=state, prices=prices, clock=clock)
    hedger, targets = _hedger(hedging, given.base_url or PUBLIC_URL, None), hedging.targets
    arguments, async_arguments = given.client_args or {}, given.async_client_args or {}
    inner = httpx2.HTTPTransport(**_of_transport(arguments))
    inner_async = httpx2.AsyncHTTPTransport(**_of_transport(async_arguments))
    transport = wrapping(Transport.sharing, hedger, targets, lambda _: inner)(inner)
    transport_async = wrapping(AnyLoopTransport, hedger, targets, lambda _: inner_async)(inner_async)
    return given.model_copy(
        update={
            "client_args": {**arguments, "transport": transport},
            "async_client_args": {**async_arguments, "transport": transport_async},
        }
    )


def _hedger(hedging: Hedging, base_url: str, api_key: str | None) -> SyncHedger:
    host = httpx2.URL(base_url).host
    return SyncHedger(lambda: hedging.hedger(name=host, home=Home(base_url, api_key)))


def _http_clients(api: Any) -> tuple[httpx2.Client, httpx2.AsyncClient]:
    """The client's two HTTP clients. Raises UnsupportedError, with the fix, for what has none of httpx2's."""
    options = api._http_options
    if api._use_google_auth_sync() or api._use_google_auth_async():
        raise UnsupportedError(
            "a client that shows Vertex a client certificate sends through google-auth's own sessions, which cannot be hedged: "
            "give it http_options with httpx_client=httpx2.Client(cert=…) and httpx_async_client=httpx2.AsyncClient(cert=…)"
        )
    if getattr(options, "aiohttp_client", None) is not None:
        raise UnsupportedError(
            "a client with an aiohttp_client cannot be hedged: give it httpx_async_client=httpx2.AsyncClient(…) instead"
        )
    foreign = set(options.async_client_args or {}) - set(inspect.signature(httpx2.AsyncClient).parameters)
    if foreign:
        raise UnsupportedError(
            f"async_client_args has {', '.join(sorted(foreign))}, which only aiohttp knows; hedged calls go through httpx2: "
            "say it as httpx2.AsyncClient takes it (ssl= is verify=)"
        )
    inside, inside_async = api._httpx_client, api._async_httpx_client
    if not isinstance(inside, httpx2.Client) or not isinstance(inside_async, httpx2.AsyncClient):
        raise UnsupportedError(f"its HTTP clients are not httpx2's: {CLASSIC}")
    return inside, inside_async


CLASSIC = f"unset {BACKEND} and give it httpx2 clients or none, since hedged calls go through httpx2"


def _refuse_classic_httpx() -> None:
    if os.environ.get(BACKEND, "").strip().lower() == "httpx":
        raise UnsupportedError(f"{BACKEND}=httpx makes genai clients of classic httpx: {CLASSIC}")


def _of_transport(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that a transport takes. Raises UnsupportedError for one that would be lost."""
    for name in ("transport", "mounts"):
        if arguments.get(name) is not None:
            raise UnsupportedError(
                f"these options have {name} of their own: make the genai.Client and hedge it: {HEDGE_IT}"
            )
    return {name: value for name, value in arguments.items() if name in TRANSPORT_ARGUMENTS}


def _api_copy(client: object, hedged: httpx2.Client, hedged_async: httpx2.AsyncClient) -> Any:
    """The client's inner half with other HTTP clients. It keeps `client` alive, whose end would close what they share, and
    closes nothing when it is collected itself."""
    original: Any = cast(Any, client)._api_client
    api: Any = copy.copy(original)
    kind = _class_of(original)
    members = {
        "__del__": _nothing,
        "_request": _counting(kind._request),
        "_async_request": _with_loose_streams(kind._async_request),
    }
    api.__class__ = _subclass(original, members)
    given: Mapping[str, Any] = original._http_options.async_client_args or {}
    # A transport of its own is what keeps the SDK from aiohttp, which it prefers as soon as it is installed.
    arguments = {**given, "transport": transports_of(hedged_async)[0]}
    api._http_options = original._http_options.model_copy(
        update={"async_client_args": arguments, "httpx_client": None, "httpx_async_client": None}
    )
    api._httpx_client, api._async_httpx_client, api._aiohttp_sessions = hedged, hedged_async, {}
    api._hedgerow_original = client
    return api


def _counting(its_own: Callable[..., Any]) -> Callable[..., Any]:
    """The SDK's `_request`, under which its own retries are made: they are tries of one request."""

    def request(self: Any, *args: Any, **options: Any) -> Any:
        with counted_tries(*_tries(self, *args[1:], **options)):
            return its_own(self, *args, **options)

    return request


def _tries(api: Any, http_options: Any = None, *_: object, **__: object) -> tuple[int, Repeats]:
    """How often the SDK will send a request, and after which failures: once, unless the client's or the request's own options
    say otherwise."""
    given = _field(http_options, "retry_options") or api._http_options.retry_options
    attempts = _field(given, "attempts") if given else 1
    statuses = frozenset(_field(given, "http_status_codes") or DEFAULT_STATUSES)
    most = DEFAULT_TRIES if attempts is None else max(1, attempts)
    return most, Repeats(statuses=statuses, errors=REPEATED_ERRORS)


def _field(options: Any, name: str) -> Any:
    """Of the SDK's options, which may be a model of its or a dict."""
    return cast("dict[str, Any]", options).get(name) if isinstance(options, dict) else getattr(options, name, None)


def _with_loose_streams(its_own: Callable[..., Coroutine[Any, Any, Any]]) -> Callable[..., Coroutine[Any, Any, Any]]:
    """The SDK's `_async_request`, likewise, with responses that do not refer to their own iterators. In the SDK they do, so
    that a stream that is left early stays open until the garbage collector finds the cycle; without it, whoever drops the
    stream closes it."""

    async def request(self: Any, *args: Any, **options: Any) -> Any:
        with counted_tries(*_tries(self, *args[1:], **options)):
            response: Any = await its_own(self, *args, **options)
        if isinstance(response.response_stream, httpx2.Response):
            response.__class__ = _subclass(response, {"__aiter__": _class_of(response).async_segments})
        return response

    return request


def _copied(client: Client, api: Any) -> Client:
    """A client of the same class over another inner half; what a subclass has added is kept."""
    original, genai = cast(Any, client), cast(Any, sys.modules["google.genai"])

    def its_api(**_: object) -> Any:
        return api

    kind = _subclass(original, {"_get_api_client": staticmethod(its_api), "__del__": _nothing})
    copied = kind.__new__(kind)
    genai.Client.__init__(copied, debug_config=original._debug_config)
    for name, value in cast("dict[str, object]", vars(original)).items():
        cast("dict[str, object]", vars(copied)).setdefault(name, value)
    return copied


def _subclass(value: object, members: Mapping[str, object]) -> Any:
    """Of its class, under the same name."""
    return type(type(value).__name__, (type(value),), dict(members))


def _class_of(value: object) -> Any:
    return type(value)


def _nothing(_: object) -> None:
    """In place of a `__del__` that would close a shared pool."""
