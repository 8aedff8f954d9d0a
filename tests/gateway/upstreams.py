"""A provider on bare sockets: keeps what it was asked, byte for byte, and answers with bytes that a test has written."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

__all__ = ["Bare", "answer", "bare_upstream"]


def answer(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    """An HTTP/1.1 answer of known length."""
    lines = [f"HTTP/1.1 {status}", f"content-length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


OK = answer(b'{"object":"list","data":[]}', "content-type: application/json")


@dataclass
class Bare:
    """`asked`: the requests so far. `answers`: what is sent next, the last one again and again; a connection ends after each of
    them in `cuts`."""

    url: str = ""
    asked: list[bytes] = field(default_factory=list)
    answers: list[bytes] = field(default_factory=lambda: [OK])
    cuts: bool = False

    @property
    def last_head(self) -> str:
        return self.asked[-1].partition(b"\r\n\r\n")[0].decode("latin-1")

    @property
    def last_headers(self) -> dict[str, str]:
        pairs = (line.partition(": ") for line in self.last_head.split("\r\n")[1:])
        return {name.lower(): value for name, _, value in pairs}

    @property
    def last_body(self) -> bytes:
        return self.asked[-1].partition(b"\r\n\r\n")[2]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                lengths = [
                    line.split(b":")[1] for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")
                ]
                body = await reader.readexactly(int(lengths[0]) if lengths else 0)
                self.asked.append(head + body)
                if await self.reply(self.asked[-1], writer):
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def reply(self, request: bytes, writer: asyncio.StreamWriter) -> bool:  # noqa: ARG002 others look at the request
        """Answer one request; does the connection end then?"""
        writer.write(self.answers.pop(0) if len(self.answers) > 1 else self.answers[0])
        await writer.drain()
        return self.cuts


@asynccontextmanager
async def bare_upstream(bare: Bare | None = None) -> AsyncIterator[Bare]:
    """Runs until the block ends. bare: one of another kind."""
    bare = bare or Bare()
    server = await asyncio.start_server(bare.serve, "127.0.0.1", 0)
    bare.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield bare
    finally:
        server.close()
