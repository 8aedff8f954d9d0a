"""One client's connection: bytes in, bytes out, and the moment the client is gone, noticed without reading on purpose.

It never stops reading while an answer is on its way, because a FIN is only seen by a socket that reads.
"""

import asyncio
import socket
import struct
import sys
from collections.abc import Awaitable, Callable
from typing import cast

from hedgerow.clock import Clock

__all__ = ["Connection", "ConnectionLost"]

# What a client may send ahead of its turn: more than any request body, less than memory.
MAX_BUFFERED_BYTES = 80 * 1024 * 1024


class ConnectionLost(Exception):
    """The client is gone and more was to be read or written."""


class Connection(asyncio.Protocol):
    """A connection served by one task, which alone calls the waiting methods.

    `gone`: the client has closed its side or the connection is lost. `lost`: nothing can be written any more.
    `busy`: an answer is on its way.
    """

    def __init__(self, serve: "Callable[[Connection], Awaitable[None]]") -> None:
        self._serve = serve
        self._buffer = bytearray()
        self._waiter: asyncio.Future[None] | None = None
        self._paused = False
        self.gone = self.lost = self.busy = False
        self.task: asyncio.Future[None] | None = None
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.task = asyncio.ensure_future(self._serve(self))

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if len(self._buffer) > MAX_BUFFERED_BYTES:
            self.abort()
        self._wake()

    def eof_received(self) -> bool:
        self.gone = True
        self._wake()
        # True keeps the writing side open, for answers that ignore the FIN; TLS has no such state.
        return self._transport is not None and self._transport.get_extra_info("ssl_object") is None

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        self.gone = self.lost = True
        self._wake()

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        self._wake()

    @property
    def buffered(self) -> bool:
        """Is there something to read already?"""
        return bool(self._buffer)

    async def read_through(self, end: bytes, limit_bytes: int) -> bytes | None:
        """Up to and including `end`; None if more than `limit_bytes` come first. ConnectionLost if the client goes."""
        searched = 0
        while (found := self._buffer.find(end, searched)) < 0:
            if len(self._buffer) > limit_bytes:
                return None
            searched = max(0, len(self._buffer) - len(end) + 1)
            await self._more()
        return None if found > limit_bytes else self._take(found + len(end))

    async def read_exactly(self, count: int) -> bytes:
        """So many bytes; ConnectionLost if the client goes before."""
        while len(self._buffer) < count:
            await self._more()
        return self._take(count)

    async def wait_until(self, due_s: float, clock: Clock, *, heed_gone: bool = True) -> bool:
        """Waits for a time of `clock`. False as soon as the client is gone, if that is to be heeded."""
        fired = False

        def fire() -> None:
            nonlocal fired
            fired = True
            self._wake()

        delay_s = due_s - clock.now()
        if delay_s > 0 and not (self.gone and heed_gone):
            timer = clock.call_later(delay_s, fire)
            try:
                while not fired and not (self.gone and heed_gone):
                    await self._wait()
            finally:
                timer.cancel()
        return not (self.gone and heed_gone)

    async def wait_lost(self) -> None:
        """Waits until the connection has come to its end, whatever the client sends or closes before."""
        while not self.lost:
            await self._wait()

    def write(self, data: bytes) -> None:
        """Hands bytes to the socket; does nothing when the connection is lost."""
        if self._transport is not None and not self.lost and data:
            self._transport.write(data)

    async def drain(self, *, heed_gone: bool = True) -> None:
        """Waits until a slow client has taken what was written, or is gone."""
        while self._paused and not self.lost and not (self.gone and heed_gone):
            await self._wait()

    def close(self) -> None:
        """Ends the connection with a FIN after what has been written."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Ends the connection at once; what was not sent yet is dropped."""
        if self._transport is not None:
            self._transport.abort()

    async def reset(self) -> None:
        """Ends the connection with a RST, after what has been written was handed to the network."""
        if self._transport is None or self.lost:
            return
        while self._transport.get_write_buffer_size() and not self.lost:
            await asyncio.sleep(0.001)
        raw = self._transport.get_extra_info("socket")
        if raw is not None:
            linger = struct.pack("hh" if sys.platform == "win32" else "ii", 1, 0)
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self._transport.abort()

    def _take(self, count: int) -> bytes:
        taken = bytes(self._buffer[:count])
        del self._buffer[:count]
        return taken

    async def _more(self) -> None:
        if self.gone:
            raise ConnectionLost
        await self._wait()

    async def _wait(self) -> None:
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
