"""What every dialect asks of a request's body: the object in it, whether it may be written anew, about how long it is."""

import re
from collections.abc import Mapping

import orjson

from hedgerow.dialects.lenient_json import is_object, loads_or_none, whole_number
from hedgerow.values.request import WireRequest

__all__ = [
    "CHARS_PER_TOKEN",
    "laid_over",
    "largest_of",
    "object_of",
    "object_to_rewrite",
    "rewritten",
    "tokens_estimate",
    "unreadable_reason",
]

CHARS_PER_TOKEN = 4
DIGITS = re.compile(r"\s*\d{1,16}\s*", re.ASCII)
ATTACHMENT_TOKENS = (
    800  # an image, sound or file: its base64 has thousands of characters, the model reads far fewer tokens
)
SIGNED_BODY = "AWS4-HMAC-SHA256"  # Bedrock: the signature covers the body's hash


def object_of(request: WireRequest) -> dict[str, object] | None:
    """The JSON object in the body; None if there is none, see unreadable_reason."""
    body = None if request.body is None else loads_or_none(request.body)
    return body if is_object(body) else None


def unreadable_reason(request: WireRequest) -> str:
    """Why there is no JSON object in a request: its body is not at hand, or is something else."""
    return "body_not_replayable" if request.body is None else "unreadable_body"


def object_to_rewrite(request: WireRequest) -> dict[str, object] | None:
    """The JSON object in the body, if we have the right to send another one: it is strict JSON, and not signed."""
    if (request.header(b"authorization") or "").startswith(SIGNED_BODY):
        return None
    try:
        body: object = orjson.loads(request.body or b"")
    except ValueError:
        return None
    return body if is_object(body) else None


def rewritten(body: Mapping[str, object], **laid_in: object) -> bytes | None:
    """The body with these fields laid in; None if it is not JSON to orjson: then we have no right to write it anew."""
    try:
        return orjson.dumps({**body, **laid_in})
    except TypeError:
        return None


def laid_over(body: object, over: Mapping[str, object]) -> dict[str, object]:
    """`over` wins; objects are merged key by key, everything else is replaced."""
    merged: dict[str, object] = dict(body) if is_object(body) else {}
    for name, value in over.items():
        merged[name] = laid_over(merged.get(name), value) if is_object(value) else value
    return merged


def largest_of(*values: object) -> int | None:
    """The largest number among fields that servers take for one limit; None if there is none. Many take a text for it, too."""
    numbers = [int(each) if isinstance(each, str) and DIGITS.fullmatch(each) else each for each in values]
    return max((number for each in numbers if (number := whole_number(each)) is not None), default=None)


def tokens_estimate(chars: int, attachments: int = 0) -> int:
    """Characters / 4, rounded up, and a flat number for each attachment."""
    return -(-chars // CHARS_PER_TOKEN) + attachments * ATTACHMENT_TOKENS
