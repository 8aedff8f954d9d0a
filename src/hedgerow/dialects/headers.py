"""Response headers as they come off the wire."""

from collections.abc import Sequence

__all__ = ["CREDENTIALS", "Headers", "assembled_headers", "header_value"]

# What tells whose account is used: never for an endpoint of somebody else.
CREDENTIALS = (
    "authorization",
    "api-key",
    "x-api-key",
    "x-goog-api-key",
    "x-goog-user-project",
    "proxy-authorization",
    "cookie",
    "anthropic-user-profile-id",
    "anthropic-workspace-id",
    "openai-organization",
    "openai-project",
)
# What says how a body was carried, and no longer does once the body is another.
CARRIAGE = frozenset({b"content-encoding", b"content-length", b"content-type", b"transfer-encoding"})

Headers = Sequence[tuple[bytes, bytes]]
"""Pairs in the order they arrived; names in any case."""


def header_value(headers: Headers, name: bytes) -> str | None:
    """The first value of a header (lower-case `name`), as Latin-1; None if absent."""
    for key, value in headers:
        if key.lower() == name:
            return value.decode("latin-1")
    return None


def assembled_headers(headers: Headers, body: bytes) -> list[tuple[bytes, bytes]]:
    """A stream's response headers made those of an assembled `body`: JSON, not encoded, of its length; others as they are."""
    kept = [(name, value) for name, value in headers if name.lower() not in CARRIAGE]
    return [*kept, (b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
