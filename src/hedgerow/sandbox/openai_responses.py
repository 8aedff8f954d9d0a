"""OpenAI's responses as the provider writes them: numbered events, items that are announced, grow and are done, and at the end
the whole response in one event."""

from collections.abc import Sequence
from typing import cast

import orjson

from hedgerow.sandbox.content import Answer, Call, Piece, ReportedUsage
from hedgerow.sandbox.http1 import BadRequest
from hedgerow.sandbox.openai_errors import error_body
from hedgerow.sandbox.tools import Choice, callable_tools, objects, table, tool
from hedgerow.sandbox.wire_format import Frame, estimate_tokens, json_object

__all__ = ["OpenAIResponses"]

PATHS = ("/v1/responses", "/responses")
# Why a response ends, by a script's finish reason; every other one is "completed".
INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}
FAILED = {"code": "server_error", "message": "An error occurred while processing your request."}
EVENT_OF_DELTA = {
    "text": "response.output_text.delta",
    "refusal": "response.refusal.delta",
    "reasoning": "response.reasoning_summary_text.delta",
    "tool": "response.function_call_arguments.delta",
}
OPENING_EVENTS = 2
# Events that announce an item, and that say it is done.
EVENTS_BEFORE = {"text": 2, "refusal": 2, "reasoning": 2, "tool": 1}
EVENTS_AFTER = {"text": 3, "refusal": 3, "reasoning": 3, "tool": 2}


class OpenAIResponses:
    """The wire format of responses. The finish reason `failed` ends in response.failed; there is no `n`."""

    error_body = staticmethod(error_body)

    def handles(self, path: str) -> bool:
        return path in PATHS

    def read(self, path: str, body: bytes) -> Call:  # noqa: ARG002 - other dialects have the model in the path
        asked = json_object(body)
        model, limit, tier = asked.get("model"), asked.get("max_output_tokens"), asked.get("service_tier")
        if not isinstance(model, str):
            raise BadRequest("Missing required parameter: 'model'.")
        if not isinstance(asked.get("input"), str | list):
            raise BadRequest("Missing required parameter: 'input'.")
        choice = _choice(asked.get("tool_choice"))
        return Call(
            model=model,
            input_tokens=max(1, estimate_tokens([asked.get(each) for each in ("instructions", "input", "tools")])),
            stream=asked.get("stream") is True,
            usage_in_stream=True,
            max_tokens=limit if isinstance(limit, int) and limit > 0 else None,
            service_tier=tier if isinstance(tier, str) and tier != "auto" else None,
            tools=callable_tools((tool(each, "parameters") for each in objects(asked.get("tools"))), choice),
            tool_forced=choice.forced,
            form=_form(table(table(asked.get("text")).get("format"))),
            body=asked,
        )

    def opening(self, answer: Answer) -> Sequence[Frame]:
        response = _response(answer, "in_progress", [])
        return [
            _frame(number, f"response.{event}", response=response)
            for number, event in enumerate(("created", "in_progress"))
        ]

    def token(self, answer: Answer, number: int) -> Sequence[Frame]:
        piece, item = answer.pieces[number], _item_of(answer, number)
        frames: list[Frame] = []
        if number == 0 or _item_of(answer, number - 1) != item:
            frames += _done(answer, number - 1) if number else []
            frames += _announced(answer, number)
        delta = {**_place(answer, number), "delta": piece.text}
        if piece.kind == "text":
            delta["logprobs"] = []
        return [*frames, _frame(_events_before(answer, number), EVENT_OF_DELTA[piece.kind], **delta)]

    def closing(self, answer: Answer) -> Sequence[Frame]:
        if answer.finish_reason is None:
            return []
        last, frames = len(answer.pieces) - 1, list[Frame]()
        if answer.pieces:
            frames += _done(answer, last)
        number = (_events_before(answer, last) + 1 if answer.pieces else OPENING_EVENTS) + len(frames)
        status = _status(answer)
        return [*frames, _frame(number, f"response.{status}", response=_response(answer, status, _output(answer)))]

    def marker(self) -> Sequence[Frame]:
        return []

    def ping(self) -> Frame:
        return Frame(comment="ping")

    def error_frame(self, error: dict[str, object]) -> Frame:
        fields = {"message": None, "param": None, **error, "code": error.get("code") or error.get("type")}
        return _frame(0, "error", **{name: value for name, value in fields.items() if name != "type"})

    def whole(self, answer: Answer) -> bytes:
        return orjson.dumps(_response(answer, _status(answer), _output(answer)))


def _choice(asked: object) -> Choice:
    if not isinstance(asked, dict):
        return Choice(forced=asked == "required")
    chosen = table(cast(object, asked))
    if chosen.get("type") == "allowed_tools":
        names = [each.get("name") for each in objects(chosen.get("tools"))]
        return Choice(
            forced=chosen.get("mode") == "required", names=tuple(name for name in names if isinstance(name, str))
        )
    name = chosen.get("name")
    return Choice(forced=True, names=(name,)) if isinstance(name, str) else Choice()


def _form(asked: dict[str, object]) -> dict[str, object] | None:
    if asked.get("type") == "json_schema":
        return table(asked.get("schema"))
    return {"type": "object"} if asked.get("type") == "json_object" else None


def _item_of(answer: Answer, number: int) -> int:
    """Which item a token belongs to: reasoning, the message, each tool call."""
    piece, reasoned = answer.pieces[number], answer.pieces[0].kind == "reasoning"
    return 0 if piece.kind == "reasoning" else piece.tool + reasoned


def _events_before(answer: Answer, number: int) -> int:
    """How many events come before the delta of token `number`: that is its sequence number."""
    kind, item = answer.pieces[number].kind, _item_of(answer, number)
    reasoned = kind != "reasoning" and answer.pieces[0].kind == "reasoning"
    items = EVENTS_BEFORE[kind] + (item - reasoned) * (EVENTS_BEFORE[kind] + EVENTS_AFTER[kind])
    reasoning = EVENTS_BEFORE["reasoning"] + EVENTS_AFTER["reasoning"] if reasoned else 0
    return OPENING_EVENTS + reasoning + items + number


def _place(answer: Answer, number: int) -> dict[str, object]:
    """Where in the output a token belongs."""
    piece, item = answer.pieces[number], _item_of(answer, number)
    inside = {"reasoning": {"summary_index": 0}, "tool": {}}.get(piece.kind, {"content_index": 0})
    return {"item_id": _item(answer, piece, "", "in_progress")["id"], "output_index": item, **inside}


def _announced(answer: Answer, number: int) -> list[Frame]:
    piece, item, place = answer.pieces[number], _item_of(answer, number), _place(answer, number)
    first = _events_before(answer, number) - EVENTS_BEFORE[piece.kind]
    empty = _item(answer, piece, None, "in_progress")
    frames = [_frame(first, "response.output_item.added", output_index=item, item=empty)]
    if piece.kind != "tool":
        kind = "reasoning_summary_part" if piece.kind == "reasoning" else "content_part"
        frames.append(_frame(first + 1, f"response.{kind}.added", **place, part=_part(piece, "")))
    return frames


def _done(answer: Answer, last: int) -> list[Frame]:
    """The events that follow an item's last token."""
    piece, item, place = answer.pieces[last], _item_of(answer, last), _place(answer, last)
    said, number = answer.joined(piece.kind, tool=piece.tool), _events_before(answer, last) + 1
    field = {"refusal": "refusal", "tool": "arguments"}.get(piece.kind, "text")
    finished = {**place, field: said}
    if piece.kind == "text":
        finished["logprobs"] = []
    frames = [_frame(number, EVENT_OF_DELTA[piece.kind].replace(".delta", ".done"), **finished)]
    if piece.kind != "tool":
        kind = "reasoning_summary_part" if piece.kind == "reasoning" else "content_part"
        frames.append(_frame(number + 1, f"response.{kind}.done", **place, part=_part(piece, said)))
    whole = _item(answer, piece, said, "completed")
    return [*frames, _frame(number + len(frames), "response.output_item.done", output_index=item, item=whole)]


def _output(answer: Answer) -> list[dict[str, object]]:
    items: list[dict[str, object]] = []
    for number, piece in enumerate(answer.pieces):
        if number == 0 or _item_of(answer, number - 1) != _item_of(answer, number):
            items.append(_item(answer, piece, answer.joined(piece.kind, tool=piece.tool), "completed"))
    return items


def _item(answer: Answer, piece: Piece, said: str | None, status: str) -> dict[str, object]:
    """An item of the output; `said` None: announced, without any part yet."""
    number = answer.id.rpartition("-")[2]
    if piece.kind == "tool":
        call = f"{number}_{piece.tool}"
        called = {"name": answer.tool_name(piece.tool), "arguments": said or "", "call_id": f"call_{call}"}
        return {"id": f"fc_{call}", "type": "function_call", "status": status, **called}
    parts = [] if said is None else [_part(piece, said)]
    if piece.kind == "reasoning":
        return {"id": f"rs_{number}", "type": "reasoning", "summary": parts}
    return {"id": f"msg_{number}", "type": "message", "status": status, "role": "assistant", "content": parts}


def _part(piece: Piece, said: str) -> dict[str, object]:
    if piece.kind == "reasoning":
        return {"type": "summary_text", "text": said}
    if piece.kind == "refusal":
        return {"type": "refusal", "refusal": said}
    return {"type": "output_text", "annotations": [], "logprobs": [], "text": said}


def _status(answer: Answer) -> str:
    if answer.finish_reason == "failed":
        return "failed"
    return "incomplete" if answer.finish_reason in INCOMPLETE else "completed"


def _response(answer: Answer, status: str, output: list[dict[str, object]]) -> dict[str, object]:
    asked, over = answer.call.body, status != "in_progress"
    reason = INCOMPLETE.get(answer.finish_reason or "")
    return {
        "id": f"resp_{answer.id.rpartition('-')[2]}",
        "object": "response",
        "created_at": answer.created_at_s,
        "status": status,
        "background": False,
        "completed_at": answer.created_at_s if status == "completed" else None,
        "error": FAILED if status == "failed" else None,
        "incomplete_details": {"reason": reason} if reason and over else None,
        "instructions": asked.get("instructions"),
        "max_output_tokens": asked.get("max_output_tokens"),
        "model": answer.call.model,
        "output": output,
        "parallel_tool_calls": asked.get("parallel_tool_calls", True),
        "previous_response_id": asked.get("previous_response_id"),
        "reasoning": asked.get("reasoning") or {"effort": None, "summary": None},
        "service_tier": answer.service_tier if over else "auto",
        "store": asked.get("store") is not False,
        "temperature": asked.get("temperature", 1.0),
        "text": asked.get("text") or {"format": {"type": "text"}},
        "tool_choice": asked.get("tool_choice", "auto"),
        "tools": asked.get("tools") or [],
        "top_p": asked.get("top_p", 1.0),
        "truncation": "disabled",
        "usage": _usage(answer.usage) if answer.usage and over else None,
        "metadata": asked.get("metadata") or {},
    }


def _usage(usage: ReportedUsage) -> dict[str, object]:
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }


def _frame(number: int, event: str, **fields: object) -> Frame:
    return Frame(event=event, data=orjson.dumps({"type": event, "sequence_number": number, **fields}))
