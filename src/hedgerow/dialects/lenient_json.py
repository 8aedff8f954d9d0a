"""Reads JSON that others wrote: what cannot be read is None, never an exception."""

import json
import re
from typing import TypeGuard

import orjson

__all__ = [
    "is_array",
    "is_object",
    "loads_or_none",
    "name_of",
    "safe_name",
    "text_of",
    "whole_number",
    "written",
    "written_length",
]

MOST_OF_A_NAME = 128  # characters; the longest names of models have some 80
LIKE_A_NAME = re.compile(r"[A-Za-z0-9_.:/-]{1,40}")


class _Constant(float):
    """NaN or an infinity. orjson refuses what is no plain float, where it would write null for these."""


def loads_or_none(data: bytes) -> object:
    """The value, or None if it is not JSON. Also takes what some servers send: NaN, infinities, lone surrogates, broken UTF-8."""
    try:
        return orjson.loads(data)
    except ValueError:
        pass
    try:
        return json.loads(data.decode("utf-8", "replace"), parse_constant=_Constant)
    except (ValueError, RecursionError):
        return None


def is_object(value: object) -> TypeGuard[dict[str, object]]:
    """Is it a JSON object?"""
    return isinstance(value, dict)


def is_array(value: object) -> TypeGuard[list[object]]:
    """Is it a JSON array?"""
    return isinstance(value, list)


def text_of(value: object) -> str | None:
    """The text if it is a non-empty string, else None."""
    return value if isinstance(value, str) and value else None


def name_of(value: object) -> str | None:
    """A stranger's name for something (a model, a tier, a reason) as it is kept: on one line and of at most 128 characters. None
    if it is no text."""
    text = text_of(value)
    if text is None or (len(text) <= MOST_OF_A_NAME and text.isprintable()):
        return text
    kept = "".join(each if each.isprintable() else "?" for each in text[:MOST_OF_A_NAME])
    return kept if len(text) <= MOST_OF_A_NAME else f"{kept}…"


def safe_name(name: object) -> str:
    """A field's or tool's name as it may stand in a reason: it could be a prompt, so only what looks like a name is shown."""
    return name if isinstance(name, str) and LIKE_A_NAME.fullmatch(name) else "?"


def whole_number(value: object) -> int | None:
    """The number if it is an integer ≥ 0 (2.0 counts as one, true does not), else None; nothing here counts beyond 63 bits, and
    SQLite takes no more."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63 else None


def written(value: object) -> bytes:
    """A value that was read here, as JSON again. RecursionError if it is nested deeper than Python goes (hundreds of levels)."""
    try:
        return orjson.dumps(value)
    except TypeError:  # half a surrogate pair, an infinity, or nested deeper than orjson goes
        return json.dumps(value, separators=(",", ":")).encode()


def written_length(value: object) -> int:
    """About how many characters a value has as JSON. Never raises: what cannot be written is measured as Python prints it."""
    try:
        return len(orjson.dumps(value))
    except TypeError:  # a lone surrogate, or a number beyond 64 bits
        return len(str(value))
