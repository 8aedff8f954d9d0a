"""Time-ordered ids (UUID version 7, RFC 9562): 48 bits of milliseconds, then random bits."""

import os
from datetime import datetime

__all__ = ["uuid7"]


def uuid7(at: datetime) -> str:
    """A new id for something that happened at `at` (aware)."""
    milliseconds = int(at.timestamp() * 1000) & (2**48 - 1)
    bits = milliseconds << 80 | int.from_bytes(os.urandom(10), "big")
    bits = bits & ~(0xF << 76) | 0x7 << 76
    bits = bits & ~(0x3 << 62) | 0x2 << 62
    text = f"{bits:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
