"""OpenAI's chat completions as the provider writes them: chunks with deltas, a finish chunk, usage if asked, `[DONE]`."""

from collections.abc import Sequence
from typing import cast

import orjson

from hedgerow.sandbox.content import Answer, Call, Piece, ReportedUsage
from hedgerow.sandbox.http1 import BadRequest
from hedgerow.sandbox.openai_errors import error_body, error_frame
from hedgerow.sandbox.tools import Choice, callable_tools, objects, table, tool
from hedgerow.sandbox.wire_format import Frame, estimate_tokens, json_object

__all__ = ["OpenAIChat"]

PATHS = ("/v1/chat/completions", "/chat/completions")
MAX_CHOICES = 128


class OpenAIChat:
    """The wire format of chat completions."""

    error_frame = staticmethod(error_frame)
    error_body = staticmethod(error_body)

    def handles(self, path: str) -> bool:
        return path in PATHS

    def read(self, path: str, body: bytes) -> Call:  # noqa: ARG002 - other dialects have the model in the path
        asked = json_object(body)
        model, messages = asked.get("model"), asked.get("messages")
        if not isinstance(model, str):
            raise BadRequest("you must provide a model parameter")
        if not isinstance(messages, list) or not messages:
            raise BadRequest("messages is not a list with at least one message")
        limit = asked.get("max_completion_tokens", asked.get("max_tokens"))
        tier = asked.get("service_tier")
        options, choice = asked.get("stream_options"), _choice(asked.get("tool_choice"))
        return Call(
            model=model,
            input_tokens=max(1, estimate_tokens([asked["messages"], asked.get("tools")])),
            stream=asked.get("stream") is True,
            n=_choices(asked.get("n")),
            usage_in_stream=isinstance(options, dict) and bool(cast(dict[str, object], options).get("include_usage")),
            max_tokens=limit if isinstance(limit, int) and limit > 0 else None,
            service_tier=tier if isinstance(tier, str) and tier != "auto" else None,
            tools=callable_tools(
                (tool(table(each.get("function")), "parameters") for each in objects(asked.get("tools"))), choice
            ),
            tool_forced=choice.forced,
            form=_form(table(asked.get("response_format"))),
            body=asked,
        )

    def opening(self, answer: Answer) -> Sequence[Frame]:
        deltas: list[dict[str, object]] = [{"role": "assistant", "content": "", "refusal": None}]
        return _frames(answer, deltas)

    def token(self, answer: Answer, number: int) -> Sequence[Frame]:
        return _frames(answer, _deltas(answer, answer.pieces[number]))

    def closing(self, answer: Answer) -> Sequence[Frame]:
        frames: list[Frame] = []
        if answer.finish_reason is not None:
            frames += _frames(answer, [{}], answer.finish_reason)
        if answer.usage is not None and answer.call.usage_in_stream:
            frames.append(_frame(answer, [], _usage(answer.usage)))
        return frames

    def marker(self) -> Sequence[Frame]:
        return [Frame(data=b"[DONE]")]

    def ping(self) -> Frame:
        return Frame(comment="ping")

    def whole(self, answer: Answer) -> bytes:
        return orjson.dumps(
            _envelope(answer, "chat.completion")
            | {
                "choices": [
                    {
                        "index": choice,
                        "message": _message(answer),
                        "logprobs": None,
                        "finish_reason": answer.finish_reason,
                    }
                    for choice in range(answer.n)
                ]
            }
            | ({} if answer.usage is None else {"usage": _usage(answer.usage)})
        )


def _choices(n: object) -> int:
    if n is None:
        return 1
    if isinstance(n, int) and not isinstance(n, bool) and 1 <= n <= MAX_CHOICES:
        return n
    raise BadRequest(f"n = {n!r} is not a whole number from 1 to {MAX_CHOICES}")


def _choice(asked: object) -> Choice:
    if not isinstance(asked, dict):
        return Choice(forced=asked == "required")
    chosen, allowed = table(cast(object, asked)), table(table(cast(object, asked)).get("allowed_tools"))
    if chosen.get("type") == "allowed_tools":
        names = [table(each.get("function")).get("name") for each in objects(allowed.get("tools"))]
        return Choice(
            forced=allowed.get("mode") == "required", names=tuple(name for name in names if isinstance(name, str))
        )
    name = table(chosen.get("function")).get("name")
    return Choice(forced=True, names=(name,)) if isinstance(name, str) else Choice()


def _form(asked: dict[str, object]) -> dict[str, object] | None:
    if asked.get("type") == "json_schema":
        return table(table(asked.get("json_schema")).get("schema"))
    return {"type": "object"} if asked.get("type") == "json_object" else None


def _envelope(answer: Answer, kind: str) -> dict[str, object]:
    return {
        "id": answer.id,
        "object": kind,
        "created": answer.created_at_s,
        "model": answer.call.model,
        "service_tier": answer.service_tier,
        "system_fingerprint": "fp_sandbox",
    }


def _frames(answer: Answer, deltas: Sequence[dict[str, object]], finish_reason: str | None = None) -> list[Frame]:
    return [
        _frame(answer, [{"index": choice, "delta": delta, "logprobs": None, "finish_reason": finish_reason}])
        for choice in range(answer.n)
        for delta in deltas
    ]


def _frame(answer: Answer, choices: list[dict[str, object]], usage: dict[str, object] | None = None) -> Frame:
    body = _envelope(answer, "chat.completion.chunk") | {"choices": choices}
    if answer.usage is not None and answer.call.usage_in_stream:
        # A stream that will report its usage has the key, null, in all chunks before.
        body["usage"] = usage
    return Frame(data=orjson.dumps(body))


def _deltas(answer: Answer, piece: Piece) -> list[dict[str, object]]:
    if piece.kind != "tool":
        key = {"text": "content", "reasoning": "reasoning_content", "refusal": "refusal"}[piece.kind]
        return [{key: piece.text}]
    arguments: dict[str, object] = {"index": piece.tool, "function": {"arguments": piece.text}}
    deltas: list[dict[str, object]] = [{"tool_calls": [arguments]}] if piece.text else []
    if piece.opens:
        deltas.insert(0, {"tool_calls": [{"index": piece.tool, **_tool_call(answer, piece.tool, "")}]})
    return deltas


def _tool_call(answer: Answer, tool: int, arguments: str) -> dict[str, object]:
    function = {"name": answer.tool_name(tool), "arguments": arguments}
    return {"id": f"call_{answer.id.removeprefix('chatcmpl-')}_{tool}", "type": "function", "function": function}


def _message(answer: Answer) -> dict[str, object]:
    kinds = {piece.kind for piece in answer.pieces}
    tools = sorted({piece.tool for piece in answer.pieces if piece.kind == "tool"})
    message: dict[str, object] = {
        "role": "assistant",
        "content": None if tools or "refusal" in kinds else answer.joined("text"),
        "refusal": answer.joined("refusal") if "refusal" in kinds else None,
    }
    if "reasoning" in kinds:
        message["reasoning_content"] = answer.joined("reasoning")
    if tools:
        message["tool_calls"] = [_tool_call(answer, tool, answer.joined("tool", tool=tool)) for tool in tools]
    return message


def _usage(usage: ReportedUsage) -> dict[str, object]:
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens, "audio_tokens": 0},
    }
