"""How each API wants to be spoken to from the middle: its version, where keys stand, what its errors look like."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import orjson

from hedgerow.dialects.lenient_json import is_array, is_object, loads_or_none

__all__ = ["APIS", "Api", "Trouble", "error_in_api"]

MARKUP = re.compile(r"<(style|script)\b.*?</\1\s*>|<[^>]*>", re.DOTALL | re.IGNORECASE)
MOST_PAGE_BYTES, MOST_TOLD = 20_000, 300
STREAM_ENDS = b"data: [DONE]\n\n"
OPENAI_TYPES = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}
ANTHROPIC_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
}
GOOGLE_STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    413: "INVALID_ARGUMENT",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why the gateway itself answers with an error: an HTTP status, a sentence for people and a word for programs."""

    status: int
    message: str
    code: str


class Api(Protocol):
    """One API, as the gateway has to know it. Stateless."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str:
        """What its base URL ends in and its clients' paths begin with; "" for none."""
        ...

    @property
    def key_header(self) -> str: ...

    def key_value(self, key: str) -> str:
        """What stands in the key header."""
        ...

    def error_body(self, trouble: Trouble) -> bytes:
        """The body of an error with an HTTP status."""
        ...

    def error_frames(self, body: bytes, dialect: str) -> bytes:
        """Such a body, ours or a provider's, inside a stream of server-sent events that has begun, with what ends it."""
        ...


class OpenAI:
    """api.openai.com and all that speak like it. Its base URL ends in a version."""

    name = "openai"
    version = "/v1"
    key_header = "authorization"

    def key_value(self, key: str) -> str:
        return f"Bearer {key}"

    def error_body(self, trouble: Trouble) -> bytes:
        return orjson.dumps({"error": self._error(trouble)})

    def error_frames(self, body: bytes, dialect: str) -> bytes:
        if dialect != "openai_responses":
            return b"data: " + one_line(body) + b"\n\n" + STREAM_ENDS
        error = loads_or_none(body)
        said = error.get("error") if is_object(error) else None
        event = {name: said.get(name) if is_object(said) else None for name in ("code", "message", "param")}
        return b"event: error\ndata: " + orjson.dumps({"type": "error", **event}) + b"\n\n"

    def _error(self, trouble: Trouble) -> Mapping[str, object]:
        kind = OPENAI_TYPES.get(trouble.status) or (
            "server_error" if trouble.status >= 500 else "invalid_request_error"
        )
        return {"message": trouble.message, "type": kind, "param": None, "code": trouble.code}


class Anthropic:
    """api.anthropic.com. Its base URL has no version."""

    name = "anthropic"
    version = ""
    key_header = "x-api-key"

    def key_value(self, key: str) -> str:
        return key

    def error_body(self, trouble: Trouble) -> bytes:
        kind = ANTHROPIC_TYPES.get(trouble.status) or (
            "api_error" if trouble.status >= 500 else "invalid_request_error"
        )
        return orjson.dumps({"type": "error", "error": {"type": kind, "message": trouble.message}})

    def error_frames(self, body: bytes, dialect: str) -> bytes:  # noqa: ARG002 all of its streams are alike
        return b"event: error\ndata: " + one_line(body) + b"\n\n"


class Gemini:
    """generativelanguage.googleapis.com. Its base URL has no version."""

    name = "gemini"
    version = ""
    key_header = "x-goog-api-key"

    def key_value(self, key: str) -> str:
        return key

    def error_body(self, trouble: Trouble) -> bytes:
        status = GOOGLE_STATUSES.get(trouble.status) or ("INTERNAL" if trouble.status >= 500 else "INVALID_ARGUMENT")
        return orjson.dumps({"error": {"code": trouble.status, "message": trouble.message, "status": status}})

    def error_frames(self, body: bytes, dialect: str) -> bytes:  # noqa: ARG002
        return b"data: " + one_line(body) + b"\n\n"


APIS: Mapping[str, Api] = {"openai": OpenAI(), "anthropic": Anthropic(), "gemini": Gemini()}


def error_in_api(api: Api, status: int, body: bytes) -> bytes:
    """The body of a provider's error in the API's own form. As it came, if it has that form; else (a page of the proxy in front
    of it, a text, nothing) a body of ours that tells it, where every client of the API looks for an error."""
    said = loads_or_none(body)
    first = said[0] if is_array(said) and said else said
    if is_object(first) and first.get("error"):
        return body if first is said else orjson.dumps(first)
    text = " ".join(MARKUP.sub(" ", body[:MOST_PAGE_BYTES].decode("utf-8", "replace")).split())[:MOST_TOLD]
    told = f"the provider answered {status}" + (f": {text}" if text else " without a word")
    return api.error_body(Trouble(status if status >= 400 else 502, told, "upstream_error"))


def one_line(body: bytes) -> bytes:
    """JSON as it can stand in an event: a line end inside would end it."""
    return body.replace(b"\r", b"").replace(b"\n", b"")
