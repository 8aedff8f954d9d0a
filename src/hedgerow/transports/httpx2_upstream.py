"""httpx2 behind the upstream interface: one request, and how to send it to each of its targets."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from inspect import isawaitable
from types import AsyncGeneratorType
from typing import Any

import httpx2

from hedgerow.race.upstream import ConnectionNotes
from hedgerow.transports.httpx2_private import is_plain, pool_of
from hedgerow.values.failure import Failure, FailureKind
from hedgerow.values.request import StreamedRequest

__all__ = ["Httpx2Call", "Httpx2Response"]

log = logging.getLogger("hedgerow")
TRANSIENT = (httpx2.ConnectError, httpx2.ReadError, httpx2.WriteError, httpx2.CloseError, httpx2.RemoteProtocolError)
Route = Callable[[int, StreamedRequest | None], tuple[httpx2.AsyncBaseTransport, httpx2.Request]]
TimeOut = Callable[[str, httpx2.Request], Exception]


class Httpx2Response:
    """UpstreamResponse over an httpx2 response; `native` is the response as the inner transport returned it."""

    def __init__(self, native: httpx2.Response) -> None:
        self.native = native
        self.headers: Sequence[tuple[bytes, bytes]] = native.headers.raw
        assert isinstance(native.stream, httpx2.AsyncByteStream)
        self._stream = native.stream
        self._chunks: AsyncIterator[bytes] = native.stream.__aiter__()

    @property
    def status(self) -> int:
        return self.native.status_code

    async def read(self) -> bytes:
        async for chunk in self._chunks:
            if chunk:
                return chunk
        return b""

    def grew(self, more_bytes: int) -> None:
        """The caller has asked for it, and will decode it, too."""

    async def close(self) -> None:
        try:
            await self._stream.aclose()
        finally:
            chunks: Any = self._chunks
            if isinstance(chunks, AsyncGeneratorType) and not chunks.ag_running:  # else a read is under way and fails
                await chunks.aclose()


class Httpx2Call:
    """One request.

    `route` gives the transport and a fresh request for a target, asking for a stream if given; `deadline` makes the error for a
    request that ran out of its `timeout_s` (the SDK's own, so that it is not retried); `credentials` gives the headers with the
    caller's key as they would be now."""

    def __init__(
        self,
        request: httpx2.Request,
        route: Route,
        deadline: TimeOut | None = None,
        credentials: Callable[[], Awaitable[Mapping[str, str]]] | None = None,
    ) -> None:
        self._request, self._route, self._deadline, self._credentials = request, route, deadline, credentials
        self._has_failed = False

    async def open(self, target: int, notes: ConnectionNotes, as_stream: StreamedRequest | None) -> Httpx2Response:
        transport, request = self._route(target, as_stream)
        if target == 0 and self._has_failed and self._credentials is not None:
            await _refresh(request, self._credentials)
        if is_plain(transport):
            request.extensions["trace"] = _Trace(notes, request.extensions)
        else:
            notes.connected(reused=False)  # it does not say when it has a connection
        try:
            response = Httpx2Response(await transport.handle_async_request(request))
            self._has_failed = self._has_failed or response.status >= 400
            return response
        except httpx2.PoolTimeout as error:
            raise _named(error, transport, request) from error

    def failure_of(self, error: Exception) -> Failure:
        self._has_failed = True
        kind = FailureKind.LOCAL
        if isinstance(error, TRANSIENT):
            kind = FailureKind.TRANSIENT
        elif isinstance(error, httpx2.TimeoutException):
            kind = FailureKind.CALLER_LIMIT
        return Failure(kind=kind, error=type(error).__name__)

    def attempt_time_out(self, message: str) -> Exception:
        return httpx2.ReadTimeout(message, request=self._request)

    def broken_answer(self, message: str) -> Exception:
        return httpx2.RemoteProtocolError(message, request=self._request)

    def deadline_error(self, message: str) -> Exception:
        return self._deadline(message, self._request) if self._deadline else self.attempt_time_out(message)


async def _refresh(request: httpx2.Request, credentials: Callable[[], Awaitable[Mapping[str, str]]]) -> None:
    """A replacement goes with the key that the SDK would send now, as its own next try would."""
    try:
        fresh = await credentials()
    except Exception:  # the provider of the key failed; the key from before may still be good
        log.debug("the key could not be asked for again", exc_info=True)
        return
    request.headers.update({name: value for name, value in fresh.items() if name in request.headers})


class _Trace:
    """httpcore2's trace extension: its first event means that the pool has given the call a place. After that it takes
    itself out again, since each event costs; a trace of the user's own stays."""

    def __init__(self, notes: ConnectionNotes, extensions: dict[str, Any]) -> None:
        self._notes, self._extensions = notes, extensions
        self._users: Any = extensions.get("trace")

    async def __call__(self, name: str, info: dict[str, Any]) -> None:
        self._notes.connected(reused=not name.startswith(("connection.", "socks", "proxy")))
        if self._users is None:
            self._extensions.pop("trace", None)
            return
        self._extensions["trace"] = self._tell
        await self._tell(name, info)

    async def _tell(self, name: str, info: dict[str, Any]) -> None:
        said = self._users(name, info)
        if isawaitable(said):  # that of a synchronous client is a plain function
            await said


def _named(
    error: httpx2.PoolTimeout, transport: httpx2.AsyncBaseTransport, request: httpx2.Request
) -> httpx2.PoolTimeout:
    """A pool time-out that says so: it otherwise looks like a slow provider."""
    waited_s = request.extensions.get("timeout", {}).get("pool")
    pool = pool_of(transport)
    if waited_s is None or pool is None:
        return error
    busy, most = pool
    message = f"waited {waited_s:.1f} s for a connection: {busy} of {most} busy; raise limits or lower concurrency"
    return httpx2.PoolTimeout(message, request=request)
