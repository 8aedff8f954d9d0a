"""Reads JSON that was broken off: a tool's input when the answer ran into its token limit.

What was complete is kept; the string, number or key at which it broke off is left out, as Anthropic's own SDK does.
"""

import json
import re

__all__ = ["loads_partial"]

CLOSERS = {"{": "}", "[": "]"}
MOST_TRIES = 4  # of a text that was only broken off, the second or third is always right
STRING = r'"(?:[^"\\]|\\.)*'
# What may follow the last complete value: a comma, a key, and the beginning of its value.
BROKEN_OFF = re.compile(rf'\s*,?\s*(?:{STRING}"\s*:\s*)?(?:{STRING}["\\]?|[-+.\w]*)\s*', re.DOTALL)


def loads_partial(text: str) -> object:
    """The value of as much of the text as is complete. Raises ValueError if there is none, or if it is not the beginning of
    any JSON."""
    for place, closers in _places(text)[: -MOST_TRIES - 1 : -1]:
        try:
            value: object = json.loads(text[:place] + closers)
        except (ValueError, RecursionError):
            continue
        if BROKEN_OFF.fullmatch(text, place):
            return value
    raise ValueError("not JSON, nor the beginning of it")


def _places(text: str) -> list[tuple[int, str]]:
    """Where a value may be complete, and what closes all that is open there; the end of the text last."""
    places: list[tuple[int, str]] = []
    closers, position, end = "", 0, len(text)
    while position < end:
        char = text[position]
        if char == '"':
            position = _end_of_string(text, position)
            continue
        if char in CLOSERS:
            closers = CLOSERS[char] + closers
            places.append((position + 1, closers))
        elif char in "}]":
            closers = closers[1:]
            places.append((position + 1, closers))
        elif char == ",":
            places.append((position, closers))
        position += 1
    places.append((end, closers))
    return places


def _end_of_string(text: str, start: int) -> int:
    """The position after the string that begins at `start`; the end of the text if it is not closed."""
    position = start + 1
    while (quote := text.find('"', position)) >= 0:
        before = quote - 1
        while text[before] == "\\":
            before -= 1
        if (quote - before) % 2:
            return quote + 1
        position = quote + 1
    return len(text)
