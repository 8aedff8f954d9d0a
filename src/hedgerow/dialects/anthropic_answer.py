"""Reads an Anthropic message while it arrives: first content, pace, end, usage and errors inside a 200.

Owns what counts as content: text, thinking, tool names and inputs, citations, redacted thinking. The opening message, a ping,
the start of an empty block or a signature is none. Events nobody knows are passed over, as the API asks of its clients.
"""

from types import MappingProxyType

from hedgerow.dialects.event_reader import TypedEventReader
from hedgerow.dialects.headers import Headers
from hedgerow.dialects.lenient_json import is_array, is_object, text_of, whole_number, written_length
from hedgerow.short_text import name_of
from hedgerow.values.answer import Usage

__all__ = ["MessageReader", "usage_of"]

# What a delta carries, by its type: the field, and whether the caller sees it.
DELTAS = MappingProxyType(
    {
        "text_delta": ("text", True),
        "thinking_delta": ("thinking", False),
        "input_json_delta": ("partial_json", True),
        "compaction_delta": ("content", True),
    }
)
# Blocks that an application can use by themselves.
CALLS = frozenset({"tool_use"})
# Blocks of tools that the provider runs: the answer goes on after them.
SERVER_CALLS = frozenset({"server_tool_use", "mcp_tool_use"})
# Why an answer may end with nothing said and yet be one: more of the same would end in the same way.
ANSWERS_WITHOUT_TEXT = frozenset({"refusal", "pause_turn"})


class MessageReader(TypedEventReader):
    """One attempt's reader; not shared. Its `facts` are complete after `finish`, or after message_stop."""

    __slots__ = ("_usage",)

    def __init__(self, headers: Headers) -> None:
        super().__init__(headers)
        self._usage: dict[str, object] = {}

    def finish(self) -> None:
        """The body ended cleanly: without message_stop, a stop reason is its end."""
        super().finish()
        if self.streamed and self.facts.finish_reason is not None:
            self.facts.ended = True

    def _read_object(self, payload: dict[str, object], kind: str) -> None:
        if kind == "content_block_delta":
            self._read_delta(payload.get("delta"))
        elif kind == "content_block_start":
            self._read_block(payload.get("content_block"))
        elif kind == "message_delta":
            self._read_usage(payload.get("usage"))
            self._read_stop(payload.get("delta"))
        elif kind == "message_start":
            self._read_opening(payload.get("message"))
        elif kind == "message_stop":
            self.facts.ended = self.facts.end_mark = True
        elif kind == "error" or payload.get("error"):
            self._fail(payload)
        elif self.streamed is False:
            self._read_whole(payload)

    def _read_opening(self, message: object) -> None:
        if is_object(message):
            self.facts.model = name_of(message.get("model")) or self.facts.model
            self._read_usage(message.get("usage"))

    def _read_whole(self, message: dict[str, object]) -> None:
        self._read_opening(message)
        content = message.get("content")
        for block in content if is_array(content) else ():
            self._read_block(block)
        self._read_stop(message)

    def _read_block(self, block: object) -> None:
        """The start of a block, or a whole one."""
        if not is_object(block):
            return
        kind = text_of(block.get("type"))
        if kind in CALLS or kind in SERVER_CALLS:
            called_with = block.get("input")
            self._take(_length(block.get("name")), visible=True, useful=kind in CALLS)
            if called_with:
                self.facts.visible_chars += written_length(called_with)
        elif kind == "redacted_thinking":
            self._see()
        elif kind == "thinking":
            self._take(_length(block.get("thinking")), visible=False)
        elif kind == "fallback" and is_object(served_by := block.get("to")):
            self.facts.model = name_of(served_by.get("model")) or self.facts.model
        elif kind == "text":
            self._take(_length(block.get("text")), visible=True, useful=True)
        elif kind == "compaction":
            self._take(_length(block.get("content")), visible=True, useful=True)

    def _read_delta(self, delta: object) -> None:
        if not is_object(delta):
            return
        kind = delta.get("type")
        if kind == "citations_delta":
            self._see()
        elif isinstance(kind, str) and kind in DELTAS:
            field, visible = DELTAS[kind]
            self._take(_length(delta.get(field)), visible=visible, useful=visible and kind != "input_json_delta")

    def _read_stop(self, delta: object) -> None:
        reason = name_of(delta.get("stop_reason")) if is_object(delta) else None
        if reason is not None:
            self._finish_for(reason)
            self.facts.useful = self.facts.useful or reason in ANSWERS_WITHOUT_TEXT

    def _read_usage(self, usage: object) -> None:
        """The opening's usage, overlaid by the later totals, which leave out what has not changed."""
        if is_object(usage):
            self._usage.update((name, value) for name, value in usage.items() if value is not None)
            self.facts.usage = usage_of(self._usage)
            self.facts.service_tier = served_tier(self._usage)

    def _take(self, chars: int, *, visible: bool, useful: bool = False) -> None:
        if not chars:
            return
        if visible:
            self.facts.visible_chars += chars
        else:
            self.facts.hidden_chars += chars
        self.facts.useful = self.facts.useful or useful
        self._see()

    def _see(self) -> None:
        self.facts.content = True
        self.facts.chunks += 1


def usage_of(usage: dict[str, object]) -> Usage | None:
    """The tokens of a message's `usage`, whose `input_tokens` are only those that no cache had; None if it has no counts."""
    uncached, output_tokens = whole_number(usage.get("input_tokens")), whole_number(usage.get("output_tokens"))
    if uncached is None and output_tokens is None:
        return None
    written = whole_number(usage.get("cache_creation_input_tokens")) or 0
    cached = whole_number(usage.get("cache_read_input_tokens")) or 0
    details = usage.get("output_tokens_details")
    reasoning = whole_number(details.get("thinking_tokens")) if is_object(details) else None
    return Usage(
        input_tokens=(uncached or 0) + written + cached,
        output_tokens=output_tokens or 0,
        cached_tokens=cached,
        reasoning_tokens=reasoning or 0,
    )


def served_tier(usage: dict[str, object]) -> str | None:
    """What decides the price: fast speed, if the answer was served so, else the service tier."""
    return "fast" if usage.get("speed") == "fast" else name_of(usage.get("service_tier"))


def _length(value: object) -> int:
    return len(value) if isinstance(value, str) else 0
