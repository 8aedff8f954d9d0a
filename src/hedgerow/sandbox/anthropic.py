"""Anthropic's messages as the provider writes them: named events, blocks that start, grow and stop, pings, totals at the end.

Each run of pieces of one kind is a block of its own; a block with nothing in it is not written.
"""

import re
from collections.abc import Sequence
from itertools import groupby
from typing import cast

import orjson

from hedgerow.sandbox.content import Answer, Call, Piece
from hedgerow.sandbox.http1 import BadRequest
from hedgerow.sandbox.tools import Choice, callable_tools, objects, table, tool
from hedgerow.sandbox.wire_format import Frame, estimate_tokens, json_object

__all__ = ["AnthropicMessages"]

PATHS = ("/v1/messages", "/messages")
ON_VERTEX = re.compile(r".*/publishers/anthropic/models/([^/:]+):(?:rawPredict|streamRawPredict)")
SIGNATURE = "c2FuZGJveA=="
# A script's finish reasons are OpenAI's words; others go over as they are.
STOP_REASONS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}
ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    409: "conflict_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
DELTAS = {
    "text": ("text_delta", "text"),
    "refusal": ("text_delta", "text"),
    "reasoning": ("thinking_delta", "thinking"),
    "tool": ("input_json_delta", "partial_json"),
}


class AnthropicMessages:
    """The wire format of messages. A refusal is said as text, with the stop reason `refusal`; there is no `n`."""

    def handles(self, path: str) -> bool:
        return path in PATHS or ON_VERTEX.fullmatch(path) is not None

    def read(self, path: str, body: bytes) -> Call:
        asked, on_vertex = json_object(body), ON_VERTEX.fullmatch(path)
        model, messages, limit = asked.get("model"), asked.get("messages"), asked.get("max_tokens")
        model = on_vertex[1] if on_vertex else model
        if not isinstance(model, str):
            raise BadRequest("model: Field required")
        if not isinstance(messages, list) or not messages:
            raise BadRequest("messages: at least one message is required")
        if not isinstance(limit, int) or limit < 1:
            raise BadRequest("max_tokens: Field required")
        choice = _choice(table(asked.get("tool_choice")))
        return Call(
            model=model,
            input_tokens=max(1, estimate_tokens([asked.get(each) for each in ("system", "messages", "tools")])),
            stream=asked.get("stream") is True,
            usage_in_stream=True,
            max_tokens=limit,
            service_tier=None,
            tools=callable_tools((tool(each, "input_schema") for each in objects(asked.get("tools"))), choice),
            tool_forced=choice.forced,
            form=_form(asked),
            body=asked,
        )

    def opening(self, answer: Answer) -> Sequence[Frame]:
        return [_frame("message_start", message=_message(answer, [], None, _opening_usage(answer)))]

    def token(self, answer: Answer, number: int) -> Sequence[Frame]:
        piece, index = answer.pieces[number], _block_of(answer, number)
        frames: list[Frame] = []
        if number == 0 or _block_of(answer, number - 1) != index:
            if number:
                frames += _stop(answer.pieces[number - 1], index - 1)
            frames.append(_frame("content_block_start", index=index, content_block=_start(answer, piece)))
        kind, field = DELTAS[piece.kind]
        frames.append(_frame("content_block_delta", index=index, delta={"type": kind, field: piece.text}))
        return frames

    def closing(self, answer: Answer) -> Sequence[Frame]:
        frames: list[Frame] = []
        if answer.pieces:
            frames += _stop(answer.pieces[-1], _block_of(answer, len(answer.pieces) - 1))
        if answer.finish_reason is not None:
            delta = {"stop_reason": _stop_reason(answer), "stop_sequence": None}
            usage = {"usage": _final_usage(answer)} if answer.usage else {}
            frames.append(_frame("message_delta", delta=delta, **usage))
        return frames

    def marker(self) -> Sequence[Frame]:
        return [_frame("message_stop")]

    def ping(self) -> Frame:
        return _frame("ping")

    def error_frame(self, error: dict[str, object]) -> Frame:
        return Frame(event="error", data=self.error_body(500, "Internal server error", error))

    def error_body(self, status: int, message: str, error: dict[str, object] | None) -> bytes:
        kind = ERROR_TYPES.get(status, "api_error" if status >= 500 else "invalid_request_error")
        return orjson.dumps({"type": "error", "error": error or {"type": kind, "message": message}})

    def whole(self, answer: Answer) -> bytes:
        blocks: list[dict[str, object]] = []
        for _, run in groupby(range(len(answer.pieces)), key=lambda number: _block_of(answer, number)):
            pieces = [answer.pieces[number] for number in run]
            said = "".join(piece.text for piece in pieces)
            block = _start(answer, pieces[0])
            if block["type"] == "tool_use":
                block["input"] = _input(said)
            elif block["type"] == "thinking":
                block |= {"thinking": said, "signature": SIGNATURE}
            else:
                block["text"] = said
            blocks.append(block)
        usage = {**_opening_usage(answer), **_final_usage(answer)}
        return orjson.dumps(_message(answer, blocks, _stop_reason(answer), usage))


def _choice(asked: dict[str, object]) -> Choice:
    name = asked.get("name")
    if asked.get("type") == "tool" and isinstance(name, str):
        return Choice(forced=True, names=(name,))
    return Choice(forced=asked.get("type") == "any")


def _form(asked: dict[str, object]) -> dict[str, object] | None:
    """The schema of the answer; betas had it in a field of its own."""
    form = table(table(asked.get("output_config")).get("format")) or table(asked.get("output_format"))
    return table(form.get("schema")) if form.get("type") == "json_schema" else None


def _block_of(answer: Answer, number: int) -> int:
    """Which block a token belongs to: reasoning, text or a refusal, each tool call."""
    piece, reasoned = answer.pieces[number], answer.pieces[0].kind == "reasoning"
    return 0 if piece.kind == "reasoning" else piece.tool + reasoned


def _start(answer: Answer, piece: Piece) -> dict[str, object]:
    if piece.kind == "reasoning":
        return {"type": "thinking", "thinking": "", "signature": ""}
    if piece.kind == "tool":
        name, number = answer.tool_name(piece.tool), f"{answer.id.rpartition('-')[2]}_{piece.tool}"
        return {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": {}}
    return {"type": "text", "text": ""}


def _stop(last: Piece, index: int) -> list[Frame]:
    signature = {"type": "signature_delta", "signature": SIGNATURE}
    frames = [_frame("content_block_delta", index=index, delta=signature)] if last.kind == "reasoning" else []
    return [*frames, _frame("content_block_stop", index=index)]


def _input(written: str) -> object:
    """What the API makes of a tool's arguments; a script's text that is no JSON is shown as the API shows it."""
    try:
        return cast(object, orjson.loads(written)) if written else {}
    except orjson.JSONDecodeError:
        return {"INVALID_JSON": written}


def _stop_reason(answer: Answer) -> str | None:
    if answer.finish_reason == "stop" and any(piece.kind == "refusal" for piece in answer.pieces):
        return "refusal"
    return None if answer.finish_reason is None else STOP_REASONS.get(answer.finish_reason, answer.finish_reason)


def _message(
    answer: Answer, content: list[dict[str, object]], stop_reason: str | None, usage: dict[str, object]
) -> dict[str, object]:
    return {
        "id": f"msg_{answer.id.rpartition('-')[2]}",
        "type": "message",
        "role": "assistant",
        "model": answer.call.model,
        "content": content,
        "stop_reason": stop_reason,
        "stop_sequence": None,
        **({"usage": usage} if usage else {}),
    }


def _opening_usage(answer: Answer) -> dict[str, object]:
    """Input is exact from the start on, without the cached part; of the output the API then says a token or so."""
    usage = answer.usage
    if usage is None:
        return {}
    return {
        "input_tokens": usage.input_tokens - usage.cached_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached_tokens,
        "output_tokens": 1,
        "service_tier": "standard" if answer.service_tier == "default" else answer.service_tier,
    }


def _final_usage(answer: Answer) -> dict[str, object]:
    usage = answer.usage
    if usage is None:
        return {}
    counts: dict[str, object] = {"output_tokens": usage.output_tokens}
    if usage.reasoning_tokens:
        counts["output_tokens_details"] = {"thinking_tokens": usage.reasoning_tokens}
    return counts


def _frame(event: str, **fields: object) -> Frame:
    return Frame(event=event, data=orjson.dumps({"type": event, **fields}))
