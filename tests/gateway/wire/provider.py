"""A provider on bare sockets, and the gateway's connections to it."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

from hedgerow.clock import SystemClock
from hedgerow.gateway.addresses import Origin
from hedgerow.gateway.connection import Answer
from hedgerow.gateway.connections import Connections
from hedgerow.race.attempt import Attempt

__all__ = ["OK", "Provider", "body_of", "provider_that", "says"]

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
GET = b"GET /v1/models HTTP/1.1\r\nhost: h\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


class Provider:
    """`talk`: what it does with each connection; `met`: how many it had; `open`: how many stand."""

    def __init__(self, talk: Talk) -> None:
        self.talk, self.met, self.open = talk, 0, 0
        self.origin = Origin(tls=False, host="127.0.0.1", port=0)
        self.connections = Connections(SystemClock())
        self.reused: list[bool | None] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.met += 1
        self.open += 1
        try:
            await self.talk(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self.open -= 1
            writer.close()

    async def ask(self, head: bytes = GET, body: bytes = b"") -> Answer:
        notes = Attempt(0, 0, "primary", SystemClock())
        try:
            return await self.connections.ask(self.origin, head.split(b" ")[0].decode(), head, body, notes)
        finally:
            self.reused.append(notes.reused)


@asynccontextmanager
async def provider_that(talk: Talk) -> AsyncGenerator[Provider]:
    provider = Provider(talk)
    server = await asyncio.start_server(provider.serve, "127.0.0.1", 0)
    provider.origin = Origin(tls=False, host="127.0.0.1", port=server.sockets[0].getsockname()[1])
    try:
        yield provider
    finally:
        await provider.connections.close()
        server.close()


def says(*pieces: bytes, cuts: bool = False) -> Talk:
    """Answers each request with these, a moment apart, and may end the connection after the first."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.readuntil(b"\r\n\r\n"):
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0.001)
            if cuts:
                return

    return talk


async def body_of(answer: Answer) -> bytes:
    chunks: list[bytes] = []
    while chunk := await answer.read():
        chunks.append(chunk)
    return b"".join(chunks)
