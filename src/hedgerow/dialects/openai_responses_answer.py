"""Reads an OpenAI response while it arrives: first content, pace, end, usage and errors inside a 200.

Owns what counts as content: a delta of text, refusal, reasoning, sound, code, of a tool's arguments, or part of an image. The
events that announce a response, an item or a part are none. Events nobody knows are passed over.
"""

from types import MappingProxyType

from hedgerow.dialects.event_reader import TypedEventReader
from hedgerow.dialects.lenient_json import is_array, is_object, text_of, whole_number
from hedgerow.short_text import name_of
from hedgerow.values.answer import Usage

__all__ = ["ENDS", "ResponseReader", "usage_of"]

ENDS = frozenset({"response.cancelled", "response.completed", "response.failed", "response.incomplete"})
OPENINGS = frozenset({"response.created", "response.in_progress", "response.queued"})
# Deltas that nobody can count as characters: sound and images, and what a tool on the server printed.
WITHOUT_TEXT = frozenset({"response.audio.delta", "response.image_generation_call.partial_image"})
# Items that only lead to an answer; all others are something an application can use.
ON_THE_WAY = frozenset(
    {
        "additional_tools",
        "code_interpreter_call",
        "file_search_call",
        "mcp_call",
        "mcp_list_tools",
        "program",
        "program_output",
        "reasoning",
        "tool_search_output",
        "web_search_call",
    }
)
# What the API's own words for a broken answer stand for.
STATUS_OF_END = MappingProxyType({"cancelled": 499, "failed": 500})


class ResponseReader(TypedEventReader):
    """One attempt's reader; not shared. Its `facts` are complete after `finish`, or after the event that ends the stream."""

    __slots__ = ()

    def _read_object(self, payload: dict[str, object], kind: str) -> None:
        if kind.endswith(".delta") or kind in WITHOUT_TEXT:
            self._read_delta(payload, kind)
        elif kind in ENDS:
            self.facts.ended = self.facts.end_mark = True
            self._read_response(payload.get("response"), kind.removeprefix("response."))
        elif kind in OPENINGS:
            response = payload.get("response")
            self.facts.model = (name_of(response.get("model")) if is_object(response) else None) or self.facts.model
        elif kind == "error" or payload.get("object") == "error":
            self._fail(payload)
        elif self.streamed is False:
            self._read_whole(payload)
        elif payload.get("error") and not kind:
            self._fail(payload)  # a proxy's own error, in no dialect

    def _read_whole(self, response: dict[str, object]) -> None:
        self._read_response(response, name_of(response.get("status")) or "")
        for part in _parts_of(response):
            field = "refusal" if part.get("type") == "refusal" else "text"
            if chars := _length(part.get(field)) + _length(part.get("arguments")) + _length(part.get("input")):
                hidden = part.get("type") in ("reasoning_text", "summary_text")
                self._count(chars, visible=not hidden)
        self.facts.content = self.facts.content or self.facts.useful

    def _read_delta(self, payload: dict[str, object], kind: str) -> None:
        delta = payload.get("partial_image_b64") or payload.get("delta")
        if isinstance(delta, str) and delta:
            self._count(0 if kind in WITHOUT_TEXT else len(delta), visible="reasoning" not in kind)

    def _read_response(self, response: object, status: str) -> None:
        """A response that has ended, whichever way."""
        if not is_object(response):
            return
        facts, error, incomplete = self.facts, response.get("error"), response.get("incomplete_details")
        facts.model = name_of(response.get("model")) or facts.model
        facts.service_tier = name_of(response.get("service_tier")) or facts.service_tier
        facts.usage = usage_of(response.get("usage")) or facts.usage
        reason = name_of(incomplete.get("reason")) if is_object(incomplete) else None
        if error or status in STATUS_OF_END:
            self._fail(error or {"code": STATUS_OF_END[status], "type": status})
        if reason or status:
            self._finish_for(reason or status)
        facts.useful = reason != "content_filter" and any(map(_is_useful, _items_of(response)))

    def _count(self, chars: int, *, visible: bool) -> None:
        facts = self.facts
        if visible:
            facts.visible_chars += chars
        else:
            facts.hidden_chars += chars
        facts.content = True
        facts.chunks += 1


def usage_of(usage: object) -> Usage | None:
    """The tokens of a response's `usage`; None if it is no such object."""
    if not is_object(usage):
        return None
    input_tokens, output_tokens = whole_number(usage.get("input_tokens")), whole_number(usage.get("output_tokens"))
    if input_tokens is None and output_tokens is None:
        return None
    input_details, output_details = usage.get("input_tokens_details"), usage.get("output_tokens_details")
    cached = input_details.get("cached_tokens") if is_object(input_details) else None
    reasoning = output_details.get("reasoning_tokens") if is_object(output_details) else None
    return Usage(
        input_tokens=input_tokens or 0,
        output_tokens=output_tokens or 0,
        cached_tokens=whole_number(cached) or 0,
        reasoning_tokens=whole_number(reasoning) or 0,
    )


def _items_of(response: dict[str, object]) -> list[dict[str, object]]:
    output = response.get("output")
    return [item for item in output if is_object(item)] if is_array(output) else []


def _parts_of(response: dict[str, object]) -> list[dict[str, object]]:
    """Items, and what messages and reasoning are made of."""
    parts: list[dict[str, object]] = []
    for item in _items_of(response):
        parts.append(item)
        for field in ("content", "summary"):
            inner = item.get(field)
            parts += [part for part in inner if is_object(part)] if is_array(inner) else []
    return parts


def _is_useful(item: dict[str, object]) -> bool:
    if item.get("type") != "message":
        return text_of(item.get("type")) not in ON_THE_WAY
    content = item.get("content")
    return any(
        is_object(part) and (part.get("text") or part.get("refusal") or part.get("data"))
        for part in (content if is_array(content) else ())
    )


def _length(value: object) -> int:
    return len(value) if isinstance(value, str) else 0
