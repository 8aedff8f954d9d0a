"""What of strangers' text and numbers (a client's, a provider's) is kept, shown or counted: this and no more. Pure.

It is asked where such a thing is first read. What goes upstream, or back to the client, stays as it was sent.
"""

import re

__all__ = ["MOST_COUNTED", "MOST_OF_A_NAME", "is_cut", "name_of", "quoted", "safe_name"]

MOST_OF_A_NAME = 256  # characters; the longest names of models are those of files
MOST_COUNTED = 2**53  # JSON's readers count so far; no store takes more than 64 bits, and no call has so many tokens
MOST_QUOTED = 80
LIKE_A_NAME = re.compile(r"[A-Za-z0-9_.:/-]{1,40}")


def name_of(value: object) -> str | None:
    """A stranger's name for something (a model, a tier, a reason, an id) as it is kept: on one line and of at most 256
    characters. None if it is no text."""
    if not isinstance(value, str):
        return None
    if len(value) <= MOST_OF_A_NAME and value.isprintable():
        return value or None
    kept = "".join(each if each.isprintable() else "?" for each in value[:MOST_OF_A_NAME])
    return kept if len(value) <= MOST_OF_A_NAME else f"{kept}…"


def is_cut(name: str | None) -> bool:
    """Is it only the beginning of what was said? Then it must not stand for the whole where something is decided by it."""
    return name is not None and len(name) > MOST_OF_A_NAME


def safe_name(name: object) -> str:
    """A field's or tool's name as it may stand in a reason: it could be a prompt, so only what looks like a name is shown."""
    return name if isinstance(name, str) and LIKE_A_NAME.fullmatch(name) else "?"


def quoted(text: str) -> str:
    """The beginning of what a client wrote, escaped, for a message to that client."""
    return repr(text[:MOST_QUOTED] + ("…" if len(text) > MOST_QUOTED else ""))
