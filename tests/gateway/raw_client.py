"""A client on a bare socket: what it sends is written by hand, and it leaves as it likes."""

import asyncio
import json
import socket
import struct
from typing import Any
from urllib.parse import urlsplit

from tests.sdk.racing import PATIENCE_S, scripted

__all__ = ["CHAT", "LEAVING", "RawClient", "request_of"]

CHAT = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
LEAVING = ["fin", "rst", "half_close"]
READ_BYTES = 65_536


def request_of(path: str, body: Any, **headers: str) -> bytes:
    """A POST with this body, JSON unless it is bytes."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    named = {"host": "localhost", "content-type": "application/json", "content-length": str(len(data)), **headers}
    lines = "".join(f"{name}: {value}\r\n" for name, value in named.items())
    return f"POST {path} HTTP/1.1\r\n{lines}\r\n".encode() + data


class RawClient:
    """One connection. `got` is all that has been read of it."""

    def __init__(self, opened: socket.socket) -> None:
        self.socket, self.got = opened, b""
        self._loop = asyncio.get_running_loop()

    @classmethod
    async def connect(cls, url: str, *, receive_bytes: int | None = None) -> "RawClient":
        """To a gateway. receive_bytes: how little the kernel keeps for it while it does not read."""
        parts = urlsplit(url)
        opened = socket.socket()
        opened.setblocking(False)
        if receive_bytes is not None:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        await asyncio.get_running_loop().sock_connect(opened, (parts.hostname, parts.port))
        return cls(opened)

    async def send(self, data: bytes) -> None:
        """Bytes as they are."""
        await self._loop.sock_sendall(self.socket, data)

    async def chat(self, case: str, *attempts: dict[str, Any], **fields: Any) -> None:
        """A chat completion that the sandbox answers as scripted."""
        await self.send(request_of("/v1/chat/completions", CHAT | fields, **scripted(case, *attempts)))

    async def read_until(self, mark: bytes) -> bytes:
        """Read on until `mark` has come; all so far."""
        async with asyncio.timeout(PATIENCE_S):
            while mark not in self.got:
                more = await self._loop.sock_recv(self.socket, READ_BYTES)
                assert more, f"the connection ended without {mark!r}: {self.got!r}"
                self.got += more
        return self.got

    async def read_to_end(self) -> bytes:
        """All until the gateway ends the connection, in whichever way."""
        async with asyncio.timeout(PATIENCE_S):
            try:
                while more := await self._loop.sock_recv(self.socket, READ_BYTES):
                    self.got += more
            except ConnectionError:
                pass
        return self.got

    def leave(self, how: str = "fin") -> None:
        """fin: as a client ends that has read all so far. rst: as one that is killed. half_close: it only says that it will send
        no more; close() ends it."""
        if how == "rst":
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        if how == "half_close":
            self.socket.shutdown(socket.SHUT_WR)
        else:
            self.close()

    def close(self) -> None:
        """Idempotent."""
        self.socket.close()
