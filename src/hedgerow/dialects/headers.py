"""Response headers as they come off the wire."""

from collections.abc import Sequence

__all__ = ["Headers", "header_value"]

Headers = Sequence[tuple[bytes, bytes]]
"""Pairs in the order they arrived; names in any case."""


def header_value(headers: Headers, name: bytes) -> str | None:
    """The first value of a header (lower-case `name`), as Latin-1; None if absent."""
    for key, value in headers:
        if key.lower() == name:
            return value.decode("latin-1")
    return None
