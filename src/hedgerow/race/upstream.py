"""The seam between a race and whatever carries its calls: open → status, headers, chunks, close."""

from collections.abc import Sequence
from typing import Protocol

from hedgerow.values.failure import Failure
from hedgerow.values.request import StreamedRequest

__all__ = ["Call", "ConnectionNotes", "UpstreamResponse"]


class ConnectionNotes(Protocol):
    """What a carrier tells about the connection while it opens one."""

    def connected(self, *, reused: bool) -> None:
        """The call has its connection (or a free place to open one): it no longer waits for the pool."""

    def abandoned(self) -> None:
        """It was cancelled, but nothing can stop it (a thread): it runs on, and nobody listens."""


class UpstreamResponse(Protocol):
    """An open response. Its body is the raw bytes of the wire, content encoding included."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Sequence[tuple[bytes, bytes]]: ...

    async def read(self) -> bytes:
        """The next bytes as they come; b"" at the clean end. Raises the carrier's own error if the connection breaks."""
        ...

    def grew(self, more_bytes: int) -> None:
        """What was read last has been decoded, to so many bytes more. Raises the carrier's own error where that is too much."""

    async def close(self) -> None:
        """Give it up: ends the connection unless the body was read to its end. Idempotent; survives cancellation."""


class Call(Protocol):
    """One request, and how to send it to each of its targets (0 = where the caller wanted it to go)."""

    async def open(self, target: int, notes: ConnectionNotes, as_stream: StreamedRequest | None) -> UpstreamResponse:
        """Send it, asking for a stream if given, and wait for the response's headers. Cancelling closes the
        connection."""
        ...

    def failure_of(self, error: Exception) -> Failure:
        """What an error raised by open() or read() means for the race."""
        ...

    def attempt_time_out(self, message: str) -> Exception:
        """The error a caller of this carrier expects for an attempt that ran out of time."""
        ...

    def broken_answer(self, message: str) -> Exception:
        """The error a caller of this carrier expects for an answer that broke off."""
        ...

    def deadline_error(self, message: str) -> Exception:
        """The error a caller expects when the whole request ran out of time: not to be retried."""
        ...
