"""One worker's connections to its targets: tells each call whether its own is new or stood already, and keeps spare ones.

A loser that is closed takes its connection with it, and the next race would have to wait for a new one. So a spare one is opened
in its place, in the background: never more than were in use at once of late, and nothing is sent over it.
"""

import asyncio

import httpx2

from hedgerow.clock import Clock, Timer
from hedgerow.gateway.addresses import Origin
from hedgerow.gateway.connecting import Connector
from hedgerow.gateway.connection import Answer, Connection
from hedgerow.race.upstream import ConnectionNotes

__all__ = ["Connections"]

KEEP_ALIVE_S = 55.0  # below the minute after which load balancers drop a quiet connection
MOST_SPARE = 8  # idle ones to a target, above which none is added
OF_LATE_S = 60.0
IDEMPOTENT = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"})


class Connections:
    """To all targets, without limits. Belongs to one event loop."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._connector = clock, Connector(clock)
        self._pools: dict[Origin, _Pool] = {}

    async def ask(self, origin: Origin, method: str, head: bytes, body: bytes, notes: ConnectionNotes) -> Answer:
        """Send a request and wait for the head of its answer; see Connection.ask. Cancelled, it cuts the connection.

        Where a target closed a connection just when it was used again, without a word, a request is sent once more if its method
        allows that (RFC 9110, 9.2.2); whether others may be is the policy's business."""
        pool = self._pools.get(origin)
        if pool is None:
            pool = self._pools[origin] = _Pool(origin, self._connector, self._clock)
        connection, without_body = pool.rested(), method == "HEAD"
        notes.connected(reused=connection is not None)
        if connection is not None:
            try:
                return await connection.ask(head, body, without_body=without_body)
            except httpx2.TransportError:
                if method not in IDEMPOTENT or not connection.heard_nothing:
                    raise
        connection = await pool.opened()
        return await connection.ask(head, body, without_body=without_body)

    @property
    def resting(self) -> int:
        """How many stand ready for the next calls."""
        return sum(pool.resting for pool in self._pools.values())

    async def close(self) -> None:
        """Ends all of them, whatever is under way."""
        await asyncio.gather(*(pool.close() for pool in self._pools.values()))


class _Pool:
    """Those to one target. The Owner of its connections."""

    def __init__(self, origin: Origin, connector: Connector, clock: Clock) -> None:
        self._origin, self._connector, self._clock = origin, connector, clock
        self._idle: dict[Connection, float] = {}  # since when; the one that has rested longest comes first
        self._busy: set[Connection] = set()
        self._opening: set[asyncio.Task[None]] = set()
        self._use = _Use()
        self._sweep: Timer | None = None
        self._closed = False

    @property
    def resting(self) -> int:
        return len(self._idle)

    def rested(self) -> Connection | None:
        """For a call: of those that stand, the last that was used."""
        while self._idle:
            connection, _ = self._idle.popitem()
            if connection.idle:
                return self._in_use(connection)
        return None

    async def opened(self) -> Connection:
        """For a call: a new one."""
        try:
            connection = await self._connector.open(self._origin, self)
        except asyncio.CancelledError:  # a loser
            self._replace()
            raise
        if not connection.idle:
            raise httpx2.RemoteProtocolError("the connection was closed as soon as it was opened")
        return self._in_use(connection)

    def free(self, connection: Connection) -> None:
        self._busy.discard(connection)
        self._rest(connection)

    def gone(self, connection: Connection, *, cut: bool) -> None:
        self._busy.discard(connection)
        self._idle.pop(connection, None)
        if cut:
            self._replace()

    async def close(self) -> None:
        self._closed = True
        if self._sweep is not None:
            self._sweep.cancel()
        for task in self._opening:
            task.cancel()
        await asyncio.gather(*self._opening, return_exceptions=True)
        for connection in [*self._busy, *self._idle]:
            connection.cut()

    def _in_use(self, connection: Connection) -> Connection:
        self._busy.add(connection)
        self._use.rose_to(len(self._busy), self._clock.now())
        return connection

    def _rest(self, connection: Connection) -> None:
        if self._closed or not connection.idle:
            connection.cut()
            return
        self._idle[connection] = self._clock.now()
        if self._sweep is None:
            self._sweep = self._clock.call_later(KEEP_ALIVE_S, self._sweep_up)

    def _sweep_up(self) -> None:
        """Close those that have rested for too long."""
        now_s, self._sweep = self._clock.now(), None
        for connection, since_s in list(self._idle.items()):
            if now_s - since_s < KEEP_ALIVE_S:
                self._sweep = self._clock.call_later(since_s + KEEP_ALIVE_S - now_s, self._sweep_up)
                return
            del self._idle[connection]
            connection.cut()

    def _replace(self) -> None:
        """A call was cut off, and its connection with it: open another in the background if it will be missed."""
        will_be_missed = self._use.most_of_late(len(self._busy), self._clock.now()) - len(self._busy)
        if self._closed or len(self._idle) + len(self._opening) >= min(MOST_SPARE, will_be_missed):
            return
        task = asyncio.get_running_loop().create_task(self._open_spare())
        self._opening.add(task)
        task.add_done_callback(self._opening.discard)

    async def _open_spare(self) -> None:
        try:
            connection = await self._connector.open(self._origin, self)
        except httpx2.TransportError:  # the next call finds out, and says so
            return
        self._rest(connection)


class _Use:
    """How many connections to a target were in use at most, in this minute and the one before."""

    __slots__ = ("_before", "_most", "_since_s")

    def __init__(self) -> None:
        self._most = self._before = 0
        self._since_s = 0.0

    def rose_to(self, busy: int, now_s: float) -> None:
        """One more."""
        if busy > self._most or now_s - self._since_s > OF_LATE_S:
            self._turn(busy, now_s)
            self._most = max(self._most, busy)

    def most_of_late(self, busy: int, now_s: float) -> int:
        self._turn(busy, now_s)
        return max(self._most, self._before)

    def _turn(self, busy: int, now_s: float) -> None:
        passed_s = now_s - self._since_s
        if passed_s > OF_LATE_S:
            self._before = self._most if passed_s <= 2 * OF_LATE_S else 0
            self._most, self._since_s = busy, now_s
