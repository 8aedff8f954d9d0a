"""aiohttp behind the upstream interface: one session, one request, how each target of its route is asked.

aiohttp adds nothing of its own to a call: no headers, no cookies, no decoding, no redirects, no limit on connections.
"""

import asyncio
from collections.abc import Sequence
from io import BytesIO

import aiohttp
import orjson

from hedgerow.clock import Clock
from hedgerow.dialects.request_body import laid_over
from hedgerow.errors import HedgerowError
from hedgerow.gateway.addresses import Address
from hedgerow.gateway.apis import APIS
from hedgerow.gateway.config import TargetConfig
from hedgerow.gateway.connections import CONNECT_S, NOTES, Connections
from hedgerow.gateway.headers import upstream_headers
from hedgerow.gateway.tracing import TraceParent
from hedgerow.race.upstream import ConnectionNotes
from hedgerow.values.failure import Failure, FailureKind
from hedgerow.values.request import StreamedRequest, WireRequest

__all__ = ["DeadlineOver", "GatewayCall", "TimedOut", "Upstreams"]

READ_BYTES = 65_536
IN_PIECES_BYTES = 1_000_000  # above which aiohttp warns that writing it at once holds others up
AUTOMATIC = frozenset({"User-Agent", "Accept", "Accept-Encoding", "Content-Type"})
TRANSIENT = (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError, aiohttp.ClientResponseError, OSError)


class TimedOut(HedgerowError, TimeoutError):
    """An attempt that ran out of one of its policy's time-outs."""


class DeadlineOver(TimedOut):
    """A request that ran out of its policy's `timeout_s`: trying again would come too late."""


class Upstreams:
    """One worker's connections to all targets. Belongs to one event loop."""

    def __init__(self, clock: Clock) -> None:
        self.connections = Connections(clock)
        self.session = aiohttp.ClientSession(
            connector=self.connections,
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=AUTOMATIC,
            auto_decompress=False,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S),
            read_bufsize=READ_BYTES,
        )

    async def close(self) -> None:
        """Ends all connections."""
        await self.connections.stop_replacing()
        await self.session.close()


class GatewayCall:
    """One client's request, and how to send it to each target of its route."""

    def __init__(
        self,
        upstreams: Upstreams,
        targets: Sequence[TargetConfig],
        address: Address,
        wire: WireRequest,
        *,
        trace: TraceParent | None,
        decodable: bool,
    ) -> None:
        self._upstreams, self._targets, self._address, self._wire = upstreams, targets, address, wire
        self._trace, self._decodable = trace, decodable

    async def open(self, target: int, notes: ConnectionNotes, as_stream: StreamedRequest | None) -> "AiohttpResponse":
        config = self._targets[target]
        api = APIS[config.dialect]
        through = config.passes_keys_through
        address = self._address.with_key if through else self._address
        url = address.at(config.base_url, api, model=config.set.get("model"), as_stream=as_stream)
        headers = upstream_headers(self._wire.headers, keep_keys=through, decodable=self._decodable)
        if config.api_key is not None and not through:
            headers.append(self._key(config))
        if self._trace is not None:
            headers = [pair for pair in headers if pair[0] != "traceparent"]
            headers.append(("traceparent", self._trace.span()))
        body = self._wire.body if as_stream is None else as_stream.body
        if config.set and body:
            body = _laid_over(body, config, model_in_path=api.name == "gemini")
        upstreams, token = self._upstreams, NOTES.set(notes)
        try:
            response = await upstreams.session.request(
                self._wire.method, url, data=_sent(body), headers=headers, allow_redirects=False
            )
        except asyncio.CancelledError:  # a loser
            upstreams.connections.replace(url)
            raise
        finally:
            NOTES.reset(token)
        return AiohttpResponse(response, upstreams.connections)

    def failure_of(self, error: Exception) -> Failure:
        kind = FailureKind.LOCAL
        if isinstance(error, TimeoutError):
            kind = FailureKind.TIMEOUT
        elif isinstance(error, TRANSIENT):
            kind = FailureKind.TRANSIENT
        return Failure(kind=kind, error=type(error).__name__)

    def attempt_time_out(self, message: str) -> Exception:
        return TimedOut(message)

    def deadline_error(self, message: str) -> Exception:
        return DeadlineOver(message)

    def _key(self, config: TargetConfig) -> tuple[str, str]:
        """A target's key, where its API wants it; Azure's resources want it where Azure's clients put it."""
        assert config.api_key is not None
        if config.dialect == "openai" and any(name == b"api-key" for name, _ in self._wire.headers):
            return "api-key", config.api_key
        api = APIS[config.dialect]
        return api.key_header, api.key_value(config.api_key)


class AiohttpResponse:
    """UpstreamResponse over aiohttp's."""

    __slots__ = ("_connections", "_content", "_response", "headers", "status")

    def __init__(self, response: aiohttp.ClientResponse, connections: Connections) -> None:
        self._response, self._content, self._connections = response, response.content, connections
        self.status, self.headers = response.status, response.raw_headers

    async def read(self) -> bytes:
        return await self._content.readany()

    async def close(self) -> None:
        if not self._response.closed:  # which it is, and its connection kept, once the body has come to its end
            self._response.close()
            self._connections.replace(self._response.url)


def _sent(body: bytes | None) -> bytes | BytesIO | None:
    """A large body goes in pieces, so that others have their turn between them."""
    return BytesIO(body) if body and len(body) > IN_PIECES_BYTES else body or None


def _laid_over(body: bytes, config: TargetConfig, *, model_in_path: bool) -> bytes:
    over = {name: value for name, value in config.set.items() if not (model_in_path and name == "model")}
    try:
        return orjson.dumps(laid_over(orjson.loads(body), over)) if over else body
    except orjson.JSONDecodeError:
        return body  # an upload: there is nothing to lay over
