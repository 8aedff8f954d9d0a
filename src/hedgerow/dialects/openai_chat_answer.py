"""Reads a chat completion while it arrives: first content, pace, end, usage and errors inside a 200.

Owns what counts as content: text, refusal, reasoning, sound, tool names and arguments, when they are not empty. A role, a
ping, a filter result, a usage chunk or a bare finish reason is none. Runs for every chunk of every stream.
"""

from hedgerow.dialects.event_reader import EventReader
from hedgerow.dialects.headers import Headers
from hedgerow.dialects.lenient_json import is_array, is_object, loads_or_none, whole_number
from hedgerow.dialects.sse import ServerSentEvent
from hedgerow.short_text import name_of
from hedgerow.values.answer import Usage

__all__ = ["ChatAnswerReader", "usage_of"]

END_MARK = b"[DONE]"


class ChatAnswerReader(EventReader):
    """One attempt's reader; not shared. Its `facts` are complete after `finish`, or after the stream's end mark."""

    __slots__ = ("_finish_reasons", "_with_output")

    def __init__(self, headers: Headers) -> None:
        super().__init__(headers)
        self._finish_reasons: dict[int, str | None] = {}  # of every choice seen so far
        self._with_output: set[int] = set()  # choices that have something a caller can use

    def finish(self) -> None:
        """The body ended cleanly: without an end mark, finish reasons of all choices are its end."""
        super().finish()
        if self.streamed and self._finish_reasons and all(self._finish_reasons.values()):
            self.facts.ended = True

    def _read_event(self, event: ServerSentEvent) -> None:
        facts = self.facts
        if event.data.startswith(END_MARK):
            facts.ended = facts.end_mark = facts.done = True
            return
        payload = loads_or_none(event.data)
        if event.name == "error":
            self._fail(payload if payload is not None else event.data.decode("utf-8", "replace"))
        if self.streamed is False:
            facts.ended = payload is not None
            payload = payload[0] if is_array(payload) and payload else payload
        if is_object(payload):
            self._read_completion(payload)

    def _read_completion(self, completion: dict[str, object]) -> None:
        facts = self.facts
        if error := completion.get("error"):
            self._fail(error)
        elif completion.get("object") == "error" or completion.get("type") == "error":
            self._fail(completion)
        facts.model = name_of(completion.get("model")) or facts.model
        facts.service_tier = name_of(completion.get("service_tier")) or facts.service_tier
        # Never summed: vLLM repeats the total so far on every chunk.
        facts.usage = usage_of(completion.get("usage")) or facts.usage
        choices = completion.get("choices")
        if not is_array(choices):
            return
        with_content = [self._read_choice(choice) for choice in choices if is_object(choice)]
        if any(with_content):
            facts.content = True
            facts.chunks += 1

    def _read_choice(self, choice: dict[str, object]) -> bool:
        """Takes in one choice of a chunk or body; is there content in it?"""
        facts = self.facts
        stated = choice.get("index")
        index = stated if isinstance(stated, int) else 0
        output = choice.get("delta") or choice.get("message")
        visible_chars, hidden_chars, sound = _measure(output) if is_object(output) else (0, 0, False)
        facts.visible_chars += visible_chars
        facts.hidden_chars += hidden_chars
        if visible_chars or sound:
            facts.useful = True
            self._with_output.add(index)
        if finish_reason := name_of(choice.get("finish_reason")):
            self._finish(index, finish_reason)
        else:
            self._finish_reasons.setdefault(index, None)
        if error := choice.get("error"):
            self._fail(error)
        return bool(visible_chars or hidden_chars or sound)

    def _finish(self, index: int, finish_reason: str) -> None:
        self._finish_reasons[index] = finish_reason
        self._finish_for(finish_reason)
        if finish_reason == "content_filter":
            self.facts.useful = any(self._finish_reasons.get(seen) != "content_filter" for seen in self._with_output)


def usage_of(usage: object) -> Usage | None:
    """The tokens of a `usage` object as chat and embeddings report them; None if it is no such object."""
    if not is_object(usage):
        return None
    input_tokens = whole_number(usage.get("prompt_tokens"))
    output_tokens = whole_number(usage.get("completion_tokens"))
    if input_tokens is None and output_tokens is None:
        return None
    input_details, output_details = usage.get("prompt_tokens_details"), usage.get("completion_tokens_details")
    cached = input_details.get("cached_tokens") if is_object(input_details) else usage.get("prompt_cache_hit_tokens")
    reasoning = output_details.get("reasoning_tokens") if is_object(output_details) else None
    return Usage(
        input_tokens=input_tokens or 0,
        output_tokens=output_tokens or 0,
        cached_tokens=whole_number(cached) or 0,
        reasoning_tokens=whole_number(reasoning) or 0,
    )


def _measure(output: dict[str, object]) -> tuple[int, int, bool]:
    """Characters of visible output and of reasoning in a delta or message, and whether it carries sound."""
    visible_chars = hidden_chars = 0
    sound = False
    content = output.get("content")
    if isinstance(content, str):
        visible_chars = len(content)
    elif is_array(content):
        visible_chars, hidden_chars = _measure_parts(content)
    visible_chars += _length(output.get("refusal"))
    # Some servers send the same text under both names.
    hidden_chars += _length(output.get("reasoning_content")) or _length(output.get("reasoning"))
    if is_array(calls := output.get("tool_calls")):
        for call in calls:
            if is_object(call):
                visible_chars += _measure_call(call.get("function")) + _measure_call(call.get("custom"))
    visible_chars += _measure_call(output.get("function_call"))
    if is_object(audio := output.get("audio")):
        sound = bool(audio.get("data"))
        visible_chars += _length(audio.get("transcript"))
    return visible_chars, hidden_chars, sound


def _measure_parts(parts: list[object]) -> tuple[int, int]:
    """Mistral: content as a list of text parts and of thinking parts, which are lists of text parts themselves."""
    visible_chars = hidden_chars = 0
    for part in parts:
        if not is_object(part):
            continue
        visible_chars += _length(part.get("text"))
        thinking = part.get("thinking")
        hidden_chars += _length(thinking)
        if is_array(thinking):
            hidden_chars += sum(_length(inner.get("text")) for inner in thinking if is_object(inner))
    return visible_chars, hidden_chars


def _measure_call(call: object) -> int:
    if not is_object(call):
        return 0
    return _length(call.get("name")) + _length(call.get("arguments")) + _length(call.get("input"))


def _length(value: object) -> int:
    return len(value) if isinstance(value, str) else 0
