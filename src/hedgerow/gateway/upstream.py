"""aiohttp behind the upstream interface: one session, one request, how each target of its route is asked.

aiohttp adds nothing of its own to a call: no headers, no cookies, no decoding, no redirects, no limit on connections.
"""

from collections.abc import Sequence
from io import BytesIO
from types import SimpleNamespace
from typing import TYPE_CHECKING

import aiohttp
import orjson

from hedgerow.dialects.request_body import laid_over
from hedgerow.errors import HedgerowError
from hedgerow.gateway.addresses import Address
from hedgerow.gateway.apis import APIS
from hedgerow.gateway.config import TargetConfig
from hedgerow.gateway.headers import upstream_headers
from hedgerow.gateway.tracing import TraceParent
from hedgerow.race.upstream import ConnectionNotes
from hedgerow.values.failure import Failure, FailureKind
from hedgerow.values.request import StreamedRequest, WireRequest

if TYPE_CHECKING:
    from aiohttp.connector import Connection
    from aiohttp.tracing import Trace

__all__ = ["DeadlineOver", "GatewayCall", "TimedOut", "Upstreams"]

CONNECT_S = 10.0  # a target that swallows packets
KEEP_ALIVE_S, DNS_S = 55.0, 60  # below the minute after which load balancers drop a quiet connection
READ_BYTES = 65_536
IN_PIECES_BYTES = (
    1_000_000  # a larger body is written bit by bit, while others have their turn; aiohttp warns otherwise
)
AUTOMATIC = frozenset({"User-Agent", "Accept", "Accept-Encoding", "Content-Type"})
TRANSIENT = (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError, aiohttp.ClientResponseError, OSError)


class TimedOut(HedgerowError, TimeoutError):
    """An attempt that ran out of one of its policy's time-outs."""


class DeadlineOver(TimedOut):
    """A request that ran out of its policy's `timeout_s`: trying again would come too late."""


class Upstreams:
    """One worker's connections to all targets. Belongs to one event loop."""

    def __init__(self) -> None:
        trace = aiohttp.TraceConfig()
        trace.on_connection_create_start.append(_is_new)
        trace.on_connection_reuseconn.append(_is_reused)
        self.session = aiohttp.ClientSession(
            connector=_Connector(limit=0, keepalive_timeout=KEEP_ALIVE_S, ttl_dns_cache=DNS_S),
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=AUTOMATIC,
            auto_decompress=False,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S),
            trace_configs=[trace],
            read_bufsize=READ_BYTES,
        )

    async def close(self) -> None:
        """Ends all connections."""
        await self.session.close()


class _Connector(aiohttp.TCPConnector):
    """aiohttp's, which does not use a connection again on which something came unasked: it would be the next client's answer."""

    async def connect(
        self, req: aiohttp.ClientRequest, traces: "list[Trace]", timeout: aiohttp.ClientTimeout
    ) -> "Connection":
        while True:
            connection = await super().connect(req, traces, timeout)
            if connection.protocol is None or not connection.protocol.should_close:
                return connection
            connection.close()


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
        response = await self._upstreams.session.request(
            self._wire.method,
            url,
            data=BytesIO(body) if body and len(body) > IN_PIECES_BYTES else body or None,
            headers=headers,
            allow_redirects=False,
            trace_request_ctx=notes,
        )
        return AiohttpResponse(response)

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

    __slots__ = ("_content", "_response", "headers", "status")

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response, self._content = response, response.content
        self.status, self.headers = response.status, response.raw_headers

    async def read(self) -> bytes:
        return await self._content.readany()

    async def close(self) -> None:
        self._response.close()  # keeps the connection if the body was read to its end


def _laid_over(body: bytes, config: TargetConfig, *, model_in_path: bool) -> bytes:
    over = {name: value for name, value in config.set.items() if not (model_in_path and name == "model")}
    try:
        return orjson.dumps(laid_over(orjson.loads(body), over)) if over else body
    except orjson.JSONDecodeError:
        return body  # an upload: there is nothing to lay over


async def _is_new(session: aiohttp.ClientSession, context: SimpleNamespace, parameters: object) -> None:  # noqa: ARG001
    context.trace_request_ctx.connected(reused=False)


async def _is_reused(session: aiohttp.ClientSession, context: SimpleNamespace, parameters: object) -> None:  # noqa: ARG001
    context.trace_request_ctx.connected(reused=True)
