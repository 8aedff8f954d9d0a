"""OpenAI's embeddings: unit vectors that depend on nothing but the text, so that two copies of a call agree."""

import base64
import math
import struct
from collections.abc import Sequence
from random import Random
from typing import cast

import orjson

from hedgerow.sandbox.content import Answer, Call
from hedgerow.sandbox.http1 import BadRequest
from hedgerow.sandbox.openai_errors import error_body, error_frame
from hedgerow.sandbox.wire_format import Frame, estimate_tokens, json_object

__all__ = ["OpenAIEmbeddings"]

PATHS = ("/v1/embeddings", "/embeddings")
USUAL_DIMENSIONS = 256
MAX_DIMENSIONS = 4096


class OpenAIEmbeddings:
    """The wire format of embeddings; there is nothing to stream."""

    error_frame = staticmethod(error_frame)
    error_body = staticmethod(error_body)

    def handles(self, path: str) -> bool:
        return path in PATHS

    def read(self, path: str, body: bytes) -> Call:  # noqa: ARG002 - other dialects have the model in the path
        asked = json_object(body)
        model, dimensions = asked.get("model"), asked.get("dimensions", USUAL_DIMENSIONS)
        if not isinstance(model, str):
            raise BadRequest("you must provide a model parameter")
        if not isinstance(dimensions, int) or not 1 <= dimensions <= MAX_DIMENSIONS:
            raise BadRequest(f"dimensions = {dimensions!r} is not a whole number from 1 to {MAX_DIMENSIONS}")
        if not _inputs(asked):
            raise BadRequest("input is not a text, a list of texts or a list of tokens")
        return Call(model=model, input_tokens=max(1, estimate_tokens(asked.get("input"))), generates=False, body=asked)

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

    def whole(self, answer: Answer) -> bytes:
        asked = answer.call.body
        dimensions = cast(int, asked.get("dimensions", USUAL_DIMENSIONS))
        in_base64 = asked.get("encoding_format") == "base64"
        body: dict[str, object] = {
            "object": "list",
            "data": [
                {"object": "embedding", "index": index, "embedding": _vector(text, dimensions, in_base64)}
                for index, text in enumerate(_inputs(asked))
            ],
            "model": answer.call.model,
        }
        if answer.usage is not None:
            tokens = answer.usage.input_tokens
            body["usage"] = {"prompt_tokens": tokens, "total_tokens": tokens}
        return orjson.dumps(body)


def _inputs(asked: dict[str, object]) -> list[str]:
    """Each text to embed; lists of tokens as their JSON."""
    given = asked.get("input")
    if isinstance(given, str):
        return [given]
    items = cast(list[object], given) if isinstance(given, list) else []
    if items and all(isinstance(item, int) for item in items):
        return [repr(items)]
    if not all(isinstance(item, str | list) for item in items):
        return []
    return [item if isinstance(item, str) else repr(item) for item in items]


def _vector(text: str, dimensions: int, in_base64: bool) -> str | list[float]:
    luck = Random(text)
    values = [luck.gauss(0, 1) for _ in range(dimensions)]
    length = math.hypot(*values) or 1.0
    unit = [value / length for value in values]
    return base64.b64encode(struct.pack(f"<{dimensions}f", *unit)).decode() if in_base64 else unit
