"""Counts of an input's tokens, as Anthropic and OpenAI answer them; there is nothing to stream."""

from collections.abc import Sequence

import orjson

from hedgerow.sandbox.anthropic import AnthropicMessages
from hedgerow.sandbox.content import Answer, Call
from hedgerow.sandbox.openai_responses import OpenAIResponses
from hedgerow.sandbox.wire_format import Frame, estimate_tokens, json_object

__all__ = ["TokenCounts"]

ANTHROPIC = "/v1/messages/count_tokens"
PATHS = (ANTHROPIC, "/v1/responses/input_tokens")
COUNTED = ("instructions", "input", "messages", "system", "tools")


class TokenCounts:
    """The wire format of both."""

    def handles(self, path: str) -> bool:
        return path in PATHS

    def read(self, path: str, body: bytes) -> Call:
        asked = json_object(body)
        tokens = max(1, estimate_tokens([asked.get(field) for field in COUNTED]))
        return Call(model=str(asked.get("model")), input_tokens=tokens, generates=False, body={**asked, "path": path})

    def opening(self, answer: Answer) -> Sequence[Frame]:  # noqa: ARG002
        return []

    def token(self, answer: Answer, number: int) -> Sequence[Frame]:  # noqa: ARG002
        return []

    def closing(self, answer: Answer) -> Sequence[Frame]:  # noqa: ARG002
        return []

    def marker(self) -> Sequence[Frame]:
        return []

    def ping(self) -> Frame:
        return Frame(comment="ping")

    def error_frame(self, error: dict[str, object]) -> Frame:
        return OpenAIResponses().error_frame(error)

    def error_body(self, status: int, message: str, error: dict[str, object] | None) -> bytes:
        """Anthropic's: what OpenAI's SDK looks for is in it as well."""
        return AnthropicMessages().error_body(status, message, error)

    def whole(self, answer: Answer) -> bytes:
        kind = {} if answer.call.body["path"] == ANTHROPIC else {"object": "response.input_tokens"}
        return orjson.dumps({**kind, "input_tokens": answer.call.input_tokens})
