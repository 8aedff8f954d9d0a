"""Asks for an OpenAI response as a stream, and takes from its last event the one JSON body that would have been the answer."""

from collections.abc import Mapping

import orjson

from hedgerow.dialects.headers import Headers
from hedgerow.dialects.lenient_json import is_object, written
from hedgerow.dialects.openai_responses_answer import ENDS, ResponseReader
from hedgerow.dialects.openai_responses_safety import RULES, SAFE_FIELDS
from hedgerow.dialects.request_body import rewritten

__all__ = ["AssemblingResponseReader", "streamed_response"]


def streamed_response(body: Mapping[str, object]) -> bytes | None:
    """The request with `stream` laid in; None if it is a stream already, runs in the background, or has a field that we do not
    know."""
    if body.get("stream") not in (None, False) or body.get("background"):
        return None
    if any(field not in SAFE_FIELDS and field not in RULES for field in body):
        return None
    return rewritten(body, stream=True)


class AssemblingResponseReader(ResponseReader):
    """Reads an answer as ResponseReader does, and keeps the response that its last event carries. Not shared."""

    __slots__ = ("_error", "_items", "_response")

    def __init__(self, headers: Headers) -> None:
        super().__init__(headers)
        self._items: dict[int, object] = {}
        self._response: dict[str, object] | None = None
        self._error = b""

    @property
    def complete(self) -> bool:
        """Is the whole response here? An event in between that could not be read takes nothing away from it."""
        return self._response is not None

    def response(self) -> bytes:
        """The whole answer as JSON."""
        response = self._response or {}
        if not response.get("output") and self._items:
            # Some servers leave the items out of the last event, since each has been sent before.
            response = {**response, "output": [item for _, item in sorted(self._items.items())]}
        return written(response)

    def error_response(self) -> bytes:
        """The error that came inside the stream, as the JSON body the API answers errors with; empty if there was none."""
        return self._error or super().error_response()

    def _read_object(self, payload: dict[str, object], kind: str) -> None:
        failed_before = self.facts.failure is not None
        super()._read_object(payload, kind)
        index, response = payload.get("output_index"), payload.get("response")
        if kind == "response.output_item.done" and isinstance(index, int):
            self._items[index] = payload.get("item")
        elif kind in ENDS and is_object(response):
            self._response = response
        if self.facts.failure is not None and not failed_before:
            self._error = _error_body(payload)


def _error_body(event: dict[str, object]) -> bytes:
    """`event: error` has the error's fields at its top, response.failed has them in its response."""
    response = event.get("response")
    error = response.get("error") if is_object(response) else event.get("error")
    if not is_object(error):
        error = {name: value for name, value in event.items() if name not in ("response", "sequence_number", "type")}
    return orjson.dumps({"error": {"message": None, "type": None, "param": None, "code": None, **error}})
