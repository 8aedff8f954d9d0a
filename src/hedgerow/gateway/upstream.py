"""One request behind the upstream interface: how each target of its route is asked.

A call gets nothing that its client has not asked for: no headers, no cookies, no decoding, no redirects.
"""

import asyncio
from collections.abc import Iterable, Sequence
from functools import partial

import httpx2

from hedgerow.dialects.lenient_json import loads_or_none, written
from hedgerow.dialects.request_body import laid_over
from hedgerow.errors import HedgerowError
from hedgerow.gateway.addresses import Address
from hedgerow.gateway.apis import APIS
from hedgerow.gateway.config import TargetConfig
from hedgerow.gateway.connection import Answer
from hedgerow.gateway.connections import Connections
from hedgerow.gateway.headers import upstream_headers
from hedgerow.gateway.held import Held
from hedgerow.gateway.request_body import LARGE_BYTES
from hedgerow.gateway.tracing import TraceParent
from hedgerow.race.upstream import ConnectionNotes
from hedgerow.values.failure import Failure, FailureKind
from hedgerow.values.request import StreamedRequest, WireRequest

__all__ = ["BrokenAnswer", "DeadlineOver", "GatewayCall", "TimedOut", "is_a_call"]

NO_JSON = ("multipart/", "application/octet-stream", "audio/", "image/", "video/")
WITHOUT_BODY = frozenset({"GET", "HEAD", "DELETE", "OPTIONS", "TRACE"})  # that tell no length if there is none


class TimedOut(HedgerowError, TimeoutError):
    """An attempt that ran out of one of its policy's time-outs."""


class BrokenAnswer(HedgerowError):
    """A provider's answer that is not whole, though its stream has ended."""


class DeadlineOver(TimedOut):
    """A request that ran out of its policy's `timeout_s`: trying again would come too late."""


class GatewayCall:
    """One client's request, and how to send it to each target of its route."""

    def __init__(
        self,
        connections: Connections,
        targets: Sequence[TargetConfig],
        address: Address,
        wire: WireRequest,
        *,
        trace: TraceParent | None,
        decodable: bool,
        held: Held,
    ) -> None:
        self._connections, self._targets, self._address, self._wire = connections, targets, address, wire
        self._trace, self._decodable, self._held = trace, decodable, held

    async def open(self, target: int, notes: ConnectionNotes, as_stream: StreamedRequest | None) -> Answer:
        config = self._targets[target]
        api = APIS[config.dialect]
        through = config.passes_keys_through
        address = self._address.with_key if through else self._address
        path = address.at(config.base_url, api, model=config.set.get("model"), as_stream=as_stream)
        headers = upstream_headers(self._wire.headers, keep_keys=through, decodable=self._decodable)
        if config.api_key is not None and not through:
            headers.append(self._key(config))
        if self._trace is not None:
            headers = [pair for pair in headers if pair[0] != b"traceparent"]
            headers.append((b"traceparent", self._trace.span().encode()))
        body = (self._wire.body if as_stream is None else as_stream.body) or b""
        if config.set and body and is_a_call(self._wire):
            over = partial(_laid_over, body, config, model_in_path=api.name == "gemini")
            body = over() if len(body) < LARGE_BYTES else await asyncio.to_thread(over)
        method, origin = self._wire.method, config.base_url.origin
        if body or method not in WITHOUT_BODY:
            headers.append((b"content-length", str(len(body)).encode()))
        head = _head(f"{method} {path}", origin.authority, headers)
        answer = await self._connections.ask(origin, method, head, body, notes)
        answer.held = self._held
        return answer

    def failure_of(self, error: Exception) -> Failure:
        kind = FailureKind.LOCAL
        if isinstance(error, TimeoutError | httpx2.TimeoutException):
            kind = FailureKind.TIMEOUT
        elif isinstance(error, httpx2.TransportError | OSError):
            kind = FailureKind.TRANSIENT
        return Failure(kind=kind, error=type(error).__name__)

    def attempt_time_out(self, message: str) -> Exception:
        return TimedOut(message)

    def broken_answer(self, message: str) -> Exception:
        return BrokenAnswer(message)

    def deadline_error(self, message: str) -> Exception:
        return DeadlineOver(message)

    def _key(self, config: TargetConfig) -> tuple[bytes, bytes]:
        """A target's key, where its API wants it; Azure's resources want it where Azure's clients put it."""
        assert config.api_key is not None
        if config.dialect == "openai" and self._wire.header(b"api-key") is not None:
            return b"api-key", config.api_key.encode()
        api = APIS[config.dialect]
        return api.key_header.encode(), api.key_value(config.api_key).encode()


def _head(asked: str, host: str, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """A request's head. No name or value has a line end in it: what came from a client was parsed, and a target's own key and
    address were checked with the configuration."""
    lines = [f"{asked} HTTP/1.1\r\nhost: {host}".encode("latin-1"), *(b"%b: %b" % pair for pair in headers), b"\r\n"]
    return b"\r\n".join(lines)


def is_a_call(wire: WireRequest) -> bool:
    """Is its body a JSON object, if it is right at all? Forms, media and Google's uploads are not: nothing is laid over them."""
    label = (wire.header(b"content-type") or "").strip().lower()
    return not label.startswith(NO_JSON) and not wire.path.startswith("/upload/")


def _laid_over(body: bytes, config: TargetConfig, *, model_in_path: bool) -> bytes:
    """All that some server reads is read here, NaN and half surrogates as well, so that nothing gets round what is laid over."""
    over = {name: value for name, value in config.set.items() if not (model_in_path and name == "model")}
    return written(laid_over(loads_or_none(body), over)) if over else body
