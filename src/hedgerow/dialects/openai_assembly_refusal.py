"""Tells from an error answer whether the provider objects to being asked for a stream, and to nothing else.

Decided by the parameter it names where it names one, else by its words. What it echoes of our request is never looked at.
"""

import re
from collections.abc import Iterable, Iterator

from hedgerow.dialects.lenient_json import is_array, is_object, loads_or_none

__all__ = ["refuses_streaming"]

REFUSING_STATUSES = frozenset({400, 422})
OURS = frozenset({"stream", "stream_options", "include_usage"})
# Where errors keep what they say. `input`, `ctx`, `body` hold parts of our own request, in which "stream" always occurs.
SPEAKING_FIELDS = ("detail", "details", "error", "errors", "message", "metadata", "msg", "raw", "reason")
MAX_CHARS = 20_000  # of one message: an error says what it has to say at its beginning
# The fields of pydantic's complaints once they have been printed into a message (vLLM).
PRINTED_LOCATION = re.compile(r"""['"]loc['"]: ?[(\[]([^)\]]*)[)\]]""")
PRINTED_MESSAGE = re.compile(r"""['"]msg['"]: ?(?:'([^']*)'|"([^"]*)")""")
QUOTED_NAME = re.compile(r"""['"]([^'"]*)['"]""")

STREAMING = r"(?:streaming|streamed|stream mode|support stream|with stream|to stream|stream this)\b"
DENIAL = r"\b(?:not|cannot|unsupported|unavailable|disabled|must|without|incompatible|[a-z]+n't)\b"
REFUSAL = re.compile(
    # The options have a name that nobody says by accident.
    r"\bstream[_ ]options\b|\binclude_usage\b"
    # The field itself, marked as a name or with its value.
    r"""|(?<!function )(?<!tool )[`'"]stream[`'"]|\bstream[`'"]?\s*(?:=|:|is|to)\s*[`'"]?true\b"""
    r"|\b(?:argument|field|parameter|property)s?(?: supplied)?:? stream\b"
    # The field as the subject of its sentence; in the midst of one it may be any stream, of bytes or of the user's.
    r"|(?:^|[:;,.] )stream (?:is not|must|should|cannot|can only)\b"
    # A sentence about streaming that denies it.
    rf"|\b{STREAMING}[^.]{{0,80}}{DENIAL}|{DENIAL}[^.]{{0,80}}\b{STREAMING}",
    re.IGNORECASE,
)


def refuses_streaming(status: int, body: bytes) -> bool:
    """Is this error about `stream` or `stream_options`, so that the same request unstreamed may be answered?

    True makes a caller send the request as it was asked, and remember it; so a 400 about anything else must be False.
    """
    if status not in REFUSING_STATUSES:
        return False
    payload = loads_or_none(body)
    said: object = payload if is_object(payload) or is_array(payload) else body[:MAX_CHARS].decode("utf-8", "replace")
    return any(map(_objects_to_stream, _complaints(said)))


def _complaints(said: object) -> Iterator[tuple[str | None, str]]:
    """(parameter named, words) of every complaint in an error, whatever it is wrapped in."""
    waiting: list[object] = [said]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            inner = loads_or_none(item.encode("utf-8", "replace")) if item[:1] in ("{", "[") else None
            if is_object(inner) or is_array(inner):
                waiting.append(inner)  # OpenRouter hands on the provider's error as a text of JSON
            else:
                yield from _printed_complaints(item[:MAX_CHARS])
        elif is_array(item):
            waiting.extend(item)
        elif is_object(item):
            parameter = _parameter(item)
            words = [item[field] for field in SPEAKING_FIELDS if field in item]
            if parameter is None:
                waiting.extend(words)
            else:
                yield parameter, " ".join(word for word in words if isinstance(word, str))[:MAX_CHARS]
                waiting.extend(word for word in words if not isinstance(word, str))


def _parameter(complaint: dict[str, object]) -> str | None:
    """What `param` (OpenAI) or `loc` (pydantic) names, as a dotted path without "body"; None if it names nothing."""
    location = complaint.get("loc")
    if is_array(location):
        return _path(str(step) for step in location)
    named = complaint.get("param")
    return named if isinstance(named, str) and named else None


def _path(location: Iterable[str]) -> str | None:
    """Pydantic's location without "body" and the names of classes that it tried; None if that was all."""
    return ".".join(step for step in location if step != "body" and not step[:1].isupper()) or None


def _printed_complaints(text: str) -> Iterator[tuple[str | None, str]]:
    locations = PRINTED_LOCATION.findall(text)
    if not locations:
        yield None, text
        return
    for location in locations:
        if path := _path(QUOTED_NAME.findall(location)):
            yield path, ""
    for single, double in PRINTED_MESSAGE.findall(text):
        yield None, single or double


def _objects_to_stream(complaint: tuple[str | None, str]) -> bool:
    parameter, words = complaint
    if parameter is not None:
        if parameter.partition(".")[0] in OURS:
            return True
        if parameter == "messages" or "." in parameter or "[" in parameter:
            return False  # about something within another field: "stream" is then the user's own word
    return REFUSAL.search(words) is not None
