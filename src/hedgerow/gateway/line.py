"""What ASGI has no word for: being told at once when a client leaves, and sending a head together with what follows it."""

import asyncio
from collections.abc import Callable
from typing import Any

__all__ = ["LINE", "TARGET_FORM", "WHOLE", "Line"]

LINE = "hedgerow.line"  # where a scope's extensions have the client's
TARGET_FORM = "hedgerow.authority"  # and, of an address that is not just a path, whom it names
WHOLE = "hedgerow.whole"  # and that all of its request has come


class Line:
    """A client's connection, as a transport of uvicorn's. leaving: whom to call when the client has left; lost: it has."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self.leaving: set[Callable[[], None]] = set()
        self.lost = False
        self._transport = transport
        self._together: list[bytes] | None = None

    def write(self, data: bytes) -> None:
        if self._together is None:
            self._transport.write(data)
        else:
            self._together.append(data)

    def hold(self) -> None:
        """What is written from now on goes as one with release(): a packet, and a system call, less."""
        self._together = []

    def release(self) -> None:
        """Write what was held back."""
        written, self._together = self._together, None
        if written:
            self._transport.write(b"".join(written))

    def close(self) -> None:
        """Once all is written."""
        self.release()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)
