"""Reads JSON that others wrote: what cannot be read is None, never an exception."""

import json
import re
from typing import TypeGuard

import orjson

from hedgerow.short_text import MOST_COUNTED

__all__ = [
    "MOST_VALUES",
    "is_array",
    "is_crowded",
    "is_object",
    "loads_or_none",
    "text_of",
    "whole_number",
    "written",
    "written_length",
]


# Objects, lists and fields: a million empty objects take 0.1 s to parse and 3 s to look at. The longest prompts have 8 MB.
MOST_VALUES = 1_000_000
SPACED_FIELD = re.compile(rb'"[ \t\r\n]++:')


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


def is_crowded(data: bytes) -> bool:
    """Is it made of more parts than can be looked at while others wait?"""
    if len(data) <= MOST_VALUES:  # a part takes a byte at least
        return False
    if data.count(b"{") + data.count(b"[") > MOST_VALUES:
        return True
    return data.count(b'":') + len(SPACED_FIELD.findall(data)) > MOST_VALUES


def is_object(value: object) -> TypeGuard[dict[str, object]]:
    """Is it a JSON object?"""
    return isinstance(value, dict)


def is_array(value: object) -> TypeGuard[list[object]]:
    """Is it a JSON array?"""
    return isinstance(value, list)


def text_of(value: object) -> str | None:
    """The text if it is a non-empty string, else None."""
    return value if isinstance(value, str) and value else None


def whole_number(value: object) -> int | None:
    """The number if it is an integer from 0 to 2^53 (2.0 counts as one, true does not), else None."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_COUNTED else None


def written(value: object) -> bytes:
    """A value that was read here, as JSON again. RecursionError if it is nested deeper than Python goes (hundreds of levels)."""
    try:
        return orjson.dumps(value)
    except TypeError:  # half a surrogate pair, an infinity, or nested deeper than orjson goes
        return json.dumps(value, separators=(",", ":")).encode()


def written_length(value: object) -> int:
    """About how many characters a value has as JSON. Never raises: what cannot be written is measured as Python prints it,
    and what is nested deeper than that goes (hundreds of levels) is not measured."""
    try:
        return len(orjson.dumps(value))
    except TypeError:  # a lone surrogate, a number beyond 64 bits, or nested deeper than orjson goes
        pass
    try:
        return len(str(value))
    except RecursionError:
        return 0
