"""OpenAI's error object, shared by its APIs."""

import orjson

from hedgerow.sandbox.wire_format import Frame

__all__ = ["error_body", "error_frame"]

# type and code by status; other statuses of 500 and more are server errors, below that invalid requests.
KINDS: dict[int, tuple[str, str | None]] = {
    401: ("invalid_request_error", "invalid_api_key"),
    404: ("invalid_request_error", "model_not_found"),
    408: ("timeout", None),
    429: ("requests", "rate_limit_exceeded"),
    503: ("service_unavailable_error", "slow_down"),
    529: ("overloaded_error", None),
}


def error_body(status: int, message: str, error: dict[str, object] | None) -> bytes:
    """`{"error": {…}}` for a status, or with a given error object."""
    kind, code = KINDS.get(status, ("server_error" if status >= 500 else "invalid_request_error", None))
    return orjson.dumps({"error": error or {"message": message, "type": kind, "param": None, "code": code}})


def error_frame(error: dict[str, object]) -> Frame:
    """An in-band error: the same object as a data frame."""
    return Frame(data=error_body(500, "The server had an error while processing your request", error))
