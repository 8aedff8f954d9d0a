"""The four APIs as a provider speaks them: one answer, as a stream of events and as one body that says the same.

The numbers and texts are the test's own. `pieces` are the events in groups as they would be sent; the last one ends the stream.
"""

import json
from dataclasses import dataclass, field
from typing import Any

__all__ = ["WORDS", "Event", "Spoken", "spoken"]

WORDS = ("Hedges ", "grow ", "slowly.")
FINISHES = {
    "chat": {
        "usual": "stop",
        "length": "length",
        "filter": "content_filter",
        "unknown": "eos_reached",
        "abort": "abort",
    },
    "responses": {
        "usual": None,
        "length": "max_output_tokens",
        "filter": "content_filter",
        "unknown": "eos",
        "abort": "abort",
    },
    "messages": {"usual": "end_turn", "length": "max_tokens", "filter": "refusal", "unknown": "eos", "abort": "abort"},
    "gemini": {"usual": "STOP", "length": "MAX_TOKENS", "filter": "SAFETY", "unknown": "EOS_REACHED", "abort": "ABORT"},
}
ERRORS = {
    "chat": {"error": {"message": "queue full", "type": "server_error", "param": None, "code": "503"}},
    "responses": {"error": {"message": "queue full", "type": "server_error", "param": None, "code": "server_error"}},
    "messages": {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
    "gemini": {"error": {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}},
}


@dataclass(frozen=True)
class Event:
    """One event of a stream: its data (JSON unless it is a text), its name if it has one, whether a caller sees content in it."""

    data: Any
    name: str | None = None
    content: bool = False

    @property
    def text(self) -> str:
        return self.data if isinstance(self.data, str) else json.dumps(self.data)


@dataclass(frozen=True)
class Spoken:
    """An answer: as events, with the place of the end mark (None if the API has none), as one body, and an error of the API's."""

    events: list[Event]
    whole: dict[str, Any]
    error: dict[str, Any]
    error_event: Event
    end_mark: Event | None = None
    extra: list[Event] = field(default_factory=list)


def spoken(dialect: str, finish: str, *, odd: bool = False, late_usage: bool = False) -> Spoken:
    """odd: values that few servers send. late_usage: the usage comes in an event of its own after the finish reason."""
    reason = FINISHES[dialect].get(finish)
    return {"chat": _chat, "responses": _responses, "messages": _messages, "gemini": _gemini}[dialect](
        reason, odd, late_usage
    )


def _chat(reason: str | None, odd: bool, late_usage: bool) -> Spoken:
    about = {"id": "chatcmpl-1", "created": 1_790_000_000, "model": "m-1"}
    usage = {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}
    logprob = {"token": "x", "logprob": float("-inf") if odd else -0.25, "bytes": None, "top_logprobs": []}

    def chunk(delta: dict[str, Any], content: bool = False, **more: Any) -> Event:
        choice = {"index": 0, "delta": delta, "finish_reason": None, **more}
        return Event({**about, "object": "chat.completion.chunk", "choices": [choice]}, content=content)

    events = [chunk({"role": "assistant", "content": ""})]
    for word in WORDS:
        more = {"logprobs": {"content": [logprob], "refusal": None}} if odd else {}
        events.append(chunk({"content": word}, True, **more))
    last = {**about, "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}
    if late_usage:
        events += [Event(last), Event({**last, "choices": [], "usage": usage})]
    else:
        events.append(Event({**last, "usage": usage}))
    message = {"role": "assistant", "content": "".join(WORDS), "refusal": None}
    choice: dict[str, Any] = {"index": 0, "message": message, "finish_reason": reason}
    if odd:
        choice["logprobs"] = {"content": [logprob] * len(WORDS), "refusal": None}
    whole = {**about, "object": "chat.completion", "choices": [choice], "usage": usage}
    error = ERRORS["chat"]
    return Spoken(events, whole, error, Event(error), Event("[DONE]"))


def _responses(reason: str | None, odd: bool, late_usage: bool) -> Spoken:  # noqa: ARG001
    status = "incomplete" if reason else "completed"
    about: dict[str, Any] = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1_790_000_000.0,
        "model": "m-1",
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }
    part = {"type": "output_text", "text": "".join(WORDS), "annotations": []}
    item = {"type": "message", "id": "msg_1", "role": "assistant", "status": status, "content": [part]}
    usage: dict[str, Any] = {
        "input_tokens": 7,
        "output_tokens": 5,
        "total_tokens": 12,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    whole = {**about, "status": status, "output": [item], "usage": usage}
    if reason:
        whole["incomplete_details"] = {"reason": reason}
    if odd:
        whole["top_logprobs"] = 0
        whole["unknown_field"] = {"deep": [1, None, {"x": 1e22}]}

    def event(kind: str, number: int, content: bool = False, **fields: Any) -> Event:
        return Event({"type": kind, "sequence_number": number, **fields}, kind, content)

    events = [event("response.created", 0, response={**about, "status": "in_progress", "output": []})]
    where = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    for number, word in enumerate(WORDS, start=1):
        events.append(event("response.output_text.delta", number, True, **where, delta=word, logprobs=[]))
    last = event(f"response.{status}", 9, response=whole)
    error = ERRORS["responses"]
    failed = event("error", 5, code="server_error", message="queue full", param=None)
    return Spoken(events, whole, error, failed, last)


def _messages(reason: str | None, odd: bool, late_usage: bool) -> Spoken:  # noqa: ARG001
    about = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m-1"}
    opening = {
        **about,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 7, "output_tokens": 1},
    }
    if odd:
        opening["unknown_field"] = [None, 1.5]

    def event(kind: str, content: bool = False, **fields: Any) -> Event:
        return Event({"type": kind, **fields}, kind, content)

    events = [
        event("message_start", message=opening),
        event("content_block_start", index=0, content_block={"type": "text", "text": ""}),
    ]
    for word in WORDS:
        events.append(event("content_block_delta", True, index=0, delta={"type": "text_delta", "text": word}))
    events.append(event("content_block_stop", index=0))
    if reason is not None:
        stop = {"stop_reason": reason, "stop_sequence": None}
        events.append(event("message_delta", delta=stop, usage={"output_tokens": 5}))
    whole = {
        **opening,
        "content": [{"type": "text", "text": "".join(WORDS)}],
        "stop_reason": reason,
        "usage": {"input_tokens": 7, "output_tokens": 5 if reason is not None else 1},
    }
    error = ERRORS["messages"]
    return Spoken(events, whole, error, Event(error, "error"), event("message_stop"))


def _gemini(reason: str | None, odd: bool, late_usage: bool) -> Spoken:
    usage = {"promptTokenCount": 7, "candidatesTokenCount": 5, "totalTokenCount": 12}

    def chunk(text: str | None, content: bool, **more: Any) -> Event:
        candidate: dict[str, Any] = {"index": 0, **more}
        if text is not None:
            candidate["content"] = {"role": "model", "parts": [{"text": text}]}
        return Event({"candidates": [candidate], "modelVersion": "m-1", "responseId": "r-1"}, content=content)

    events = [chunk(word, True) for word in WORDS[:-1]]
    last = chunk(WORDS[-1], True, **({"finishReason": reason} if reason else {}))
    if odd:
        last.data["candidates"][0]["avgLogprobs"] = float("-inf")
    if late_usage:
        events += [last, Event({"usageMetadata": usage, "modelVersion": "m-1", "responseId": "r-1"})]
    else:
        last.data["usageMetadata"] = usage
        events.append(last)
    candidate: dict[str, Any] = {"index": 0, "content": {"role": "model", "parts": [{"text": "".join(WORDS)}]}}
    if reason:
        candidate["finishReason"] = reason
    if odd:
        candidate["avgLogprobs"] = float("-inf")
    whole = {"candidates": [candidate], "modelVersion": "m-1", "responseId": "r-1", "usageMetadata": usage}
    error = ERRORS["gemini"]
    return Spoken(events, whole, error, Event(error))
