"""One worker's connections to its targets: tells each call whether its own is new or stood already, and keeps spare ones.

A loser that is closed takes its connection with it, and the next race would have to wait for a new one. So a spare one is opened
in its place, in the background: never more than were in use at once of late, and nothing is sent over it.
"""

import asyncio
from contextvars import ContextVar

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ConnectionKey
from aiohttp.connector import Connection
from aiohttp.tracing import Trace
from yarl import URL

from hedgerow.clock import Clock
from hedgerow.race.upstream import ConnectionNotes

__all__ = ["CONNECT_S", "NOTES", "Connections"]

CONNECT_S = 10.0  # a target that swallows packets
KEEP_ALIVE_S, DNS_S = 55.0, 60  # below the minute after which load balancers drop a quiet connection
MOST_SPARE = 8  # idle ones to a target, above which none is added
OF_LATE_S = 60.0
MOST_TARGETS = 1024  # remembered; a configuration has a few

NOTES: ContextVar[ConnectionNotes] = ContextVar("hedgerow_connection_notes")
"""Who is told of the connection of the call that is being made."""


class Connections(aiohttp.TCPConnector):
    """aiohttp's pool, without limits. Belongs to one event loop."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(  # pyright: ignore[reportUnknownMemberType]  # it takes a socket factory of unknown addresses
            limit=0, keepalive_timeout=KEEP_ALIVE_S, ttl_dns_cache=DNS_S
        )
        self._clock = clock
        self._uses: dict[ConnectionKey, _Use] = {}
        self._opening: dict[asyncio.Task[None], ConnectionKey] = {}

    async def connect(
        self, req: aiohttp.ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> Connection:
        """A connection for a call, as aiohttp finds or opens it."""
        connection = await super().connect(req, traces, timeout)
        while connection.protocol is not None and connection.protocol.should_close:
            # Somebody spoke unasked on an idle connection (a proxy's 408): it would be taken for the answer.
            connection.close()
            connection = await super().connect(req, traces, timeout)
        NOTES.get().connected(reused=True)  # for the first time only if none was created
        self._use(req.connection_key).begin(self._clock.now())
        return connection

    def replace(self, url: URL) -> None:
        """A call to this address was cut off, and its connection with it: open another in the background if it will be missed."""
        request = aiohttp.ClientRequest("GET", url, loop=self._loop)  # never sent: aiohttp opens connections by request
        key = request.connection_key
        idle = sum(protocol.is_connected() for protocol, _ in self._conns.get(key, ()))
        idle += list(self._opening.values()).count(key)
        use = self._uses.get(key)
        if self._closed or use is None or idle >= min(MOST_SPARE, use.most_of_late(self._clock.now()) - use.now):
            return
        task = self._loop.create_task(self._open_spare(request, key))
        self._opening[task] = key
        task.add_done_callback(self._opening.pop)

    async def stop_replacing(self) -> None:
        """Give up the spare connections that are being opened."""
        for task in self._opening:
            task.cancel()
        await asyncio.gather(*self._opening, return_exceptions=True)

    async def _create_connection(
        self, req: aiohttp.ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> ResponseHandler:
        NOTES.get().connected(reused=False)
        return await super()._create_connection(req, traces, timeout)

    def _release(self, key: ConnectionKey, protocol: ResponseHandler, *, should_close: bool = False) -> None:
        self._use(key).now -= 1
        super()._release(key, protocol, should_close=should_close)

    async def _open_spare(self, request: aiohttp.ClientRequest, key: ConnectionKey) -> None:
        time_out = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S)
        try:
            protocol = await super()._create_connection(request, [], time_out)
        except (aiohttp.ClientError, OSError):  # the next call finds out, and says so
            return
        super()._release(key, protocol)

    def _use(self, key: ConnectionKey) -> "_Use":
        use = self._uses.get(key)
        if use is None:
            if len(self._uses) >= MOST_TARGETS:
                self._uses = {known: use for known, use in self._uses.items() if use.now}
            use = self._uses[key] = _Use()
        return use


class _Use:
    """How many connections to a target are in use, and were at most in this minute and the one before."""

    __slots__ = ("_before", "_most", "_since_s", "now")

    def __init__(self) -> None:
        self.now = self._most = self._before = 0
        self._since_s = 0.0

    def begin(self, now_s: float) -> None:
        """One more."""
        self.now += 1
        if self.now > self._most or now_s - self._since_s > OF_LATE_S:
            self._turn(now_s)
            self._most = max(self._most, self.now)

    def most_of_late(self, now_s: float) -> int:
        self._turn(now_s)
        return max(self._most, self._before)

    def _turn(self, now_s: float) -> None:
        passed_s = now_s - self._since_s
        if passed_s > OF_LATE_S:
            self._before = self._most if passed_s <= 2 * OF_LATE_S else 0
            self._most, self._since_s = self.now, now_s
