"""Time-ordered ids (UUID version 7, RFC 9562): 48 bits of milliseconds, then random bits."""

import os
import sys
from datetime import datetime
from random import Random

__all__ = ["uuid7"]

RANDOM = Random()  # one of our own, which no random.seed() of the program's makes tell the same ids again
if sys.platform != "win32":
    os.register_at_fork(after_in_child=RANDOM.seed)


def uuid7(at: datetime) -> str:
    """A new id for something that happened at `at` (aware). No two are alike, but they can be guessed."""
    milliseconds = int(at.timestamp() * 1000) & (2**48 - 1)
    bits = RANDOM.getrandbits(74)
    text = f"{milliseconds:012x}7{bits >> 62:03x}{1 << 63 | bits & (1 << 62) - 1:016x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
