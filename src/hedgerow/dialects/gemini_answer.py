"""Reads Gemini's answers while they arrive: first content, pace, end, usage, blocked prompts and errors inside a 200.

Owns what counts as content: any part but an empty text or a bare signature. Usage is the total so far in every chunk, so
the last one counts; it is over when every candidate that was seen has its finish reason.
"""

from collections.abc import Mapping
from types import MappingProxyType

from hedgerow.dialects.event_reader import EventReader
from hedgerow.dialects.gemini_failures import gemini_failure_in_band
from hedgerow.dialects.gemini_framing import GeminiFraming
from hedgerow.dialects.gemini_paths import in_camel_case
from hedgerow.dialects.headers import Headers, header_value
from hedgerow.dialects.lenient_json import is_array, is_object, loads_or_none, text_of, whole_number, written_length
from hedgerow.dialects.sse import ServerSentEvent
from hedgerow.short_text import name_of
from hedgerow.values.answer import Usage
from hedgerow.values.failure import Failure

__all__ = ["GeminiReader", "usage_of"]

# Finish reasons by which a filter stopped the answer: what came until then is no good answer.
FILTERED = frozenset(
    {
        "BLOCKLIST",
        "IMAGE_PROHIBITED_CONTENT",
        "IMAGE_RECITATION",
        "IMAGE_SAFETY",
        "LANGUAGE",
        "MODEL_ARMOR",
        "PROHIBITED_CONTENT",
        "RECITATION",
        "SAFETY",
        "SPII",
    }
)
UNSPECIFIED = "FINISH_REASON_UNSPECIFIED"
# Parts that are text of some kind: where it stands.
TEXTS = MappingProxyType(
    {"audioTranscription": "text", "codeExecutionResult": "output", "executableCode": "code", "functionCall": "name"}
)
ABOUT_A_PART = frozenset({"mediaResolution", "partMetadata", "thought", "thoughtSignature", "videoMetadata"})


class GeminiReader(EventReader):
    """One attempt's reader; not shared. Its `facts` are complete after `finish`."""

    __slots__ = ("_finish_reasons", "_goes_on", "_pieces", "_with_output")

    def __init__(self, headers: Headers) -> None:
        framing = GeminiFraming(headers)
        super().__init__(headers, framing)
        self._pieces = framing
        self.facts.service_tier = name_of(header_value(headers, b"x-gemini-service-tier"))
        self._finish_reasons: dict[int, str | None] = {}  # of every candidate seen so far
        self._with_output: set[int] = set()  # candidates that have something a caller can use
        self._goes_on = False  # content came behind a finish reason: in this stream they are no ends

    def feed(self, data: bytes) -> None:
        """More decoded bytes. The bracket that closes an array is the only end mark that Gemini has."""
        super().feed(data)
        if self._pieces.closed:
            self.facts.end_mark = self.facts.ended = self.facts.ended or self._all_finished

    def finish(self) -> None:
        """The body ended cleanly: that is the end also where finish reasons come with every chunk."""
        super().finish()
        self.facts.ended = self.facts.ended or self._all_finished

    @property
    def _all_finished(self) -> bool:
        return bool(self._finish_reasons) and all(self._finish_reasons.values())

    def _read_event(self, event: ServerSentEvent) -> None:
        chunk = loads_or_none(event.data)
        if event.name == "error":
            self._fail(chunk if chunk is not None else event.data.decode("utf-8", "replace"))
        elif is_object(chunk):
            self._read_chunk(in_camel_case(chunk))

    def _read_chunk(self, chunk: dict[str, object]) -> None:
        """One GenerateContentResponse, or an error."""
        facts = self.facts
        if error := chunk.get("error"):
            self._fail(error)
        facts.model = name_of(chunk.get("modelVersion")) or facts.model
        if is_object(usage := chunk.get("usageMetadata")):
            facts.usage = usage_of(usage) or facts.usage
            facts.service_tier = facts.service_tier or name_of(usage.get("serviceTier"))
        if is_object(feedback := chunk.get("promptFeedback")) and (block := name_of(feedback.get("blockReason"))):
            facts.finish_reason, facts.ended = block, True
        candidates = chunk.get("candidates")
        if not is_array(candidates) or not candidates:
            return
        with_content = [self._read_candidate(each) for each in candidates if is_object(each)]
        if any(with_content):
            facts.content = True
            facts.chunks += 1
        facts.ended = self._all_finished and not self._goes_on

    def _read_candidate(self, candidate: dict[str, object]) -> bool:
        """Takes in one candidate of a chunk or body; is there content in it?"""
        facts = self.facts
        index = whole_number(candidate.get("index")) or 0
        content = candidate.get("content")
        parts = content.get("parts") if is_object(content) else None
        seen = False
        for part in parts if is_array(parts) else []:
            if is_object(part):
                visible_chars, hidden_chars, other = _measure(part)
                facts.visible_chars += visible_chars
                facts.hidden_chars += hidden_chars
                seen = seen or bool(visible_chars or hidden_chars or other)
                if visible_chars or other:
                    facts.useful = True
                    self._with_output.add(index)
        self._goes_on = self._goes_on or (seen and self._finish_reasons.get(index) is not None)
        reason = name_of(candidate.get("finishReason") or candidate.get("finish_reason"))
        if reason and reason != UNSPECIFIED:
            self._finish(index, reason)
        else:
            self._finish_reasons.setdefault(index, None)
        return seen

    def _finish(self, index: int, reason: str) -> None:
        self._finish_reasons[index] = reason
        self._finish_for(reason)
        if reason in FILTERED:
            self.facts.useful = any(self._finish_reasons.get(each) not in FILTERED for each in self._with_output)

    def _failure(self, error: object) -> Failure:
        return gemini_failure_in_band(error)


def usage_of(usage: Mapping[str, object]) -> Usage | None:
    """The tokens of a `usageMetadata`; None if it reports none. What tools fetched is read as input; thoughts are output."""
    counted = {name: whole_number(value) or 0 for name, value in in_camel_case(usage).items()}
    input_tokens = counted.get("promptTokenCount", 0) + counted.get("toolUsePromptTokenCount", 0)
    thoughts = counted.get("thoughtsTokenCount", 0)
    output_tokens = counted.get("candidatesTokenCount", 0) + thoughts
    if not input_tokens and not output_tokens:
        return None
    return Usage(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cached_tokens=counted.get("cachedContentTokenCount", 0),
        reasoning_tokens=thoughts,
    )


def _measure(part: dict[str, object]) -> tuple[int, int, bool]:
    """Characters of a part that are visible and that are thought, and whether it holds something else (an image, a file)."""
    part = in_camel_case(part)
    chars = len(text_of(part.get("text")) or "")
    other = False
    for kind, value in part.items():
        if kind == "text" or kind in ABOUT_A_PART or not value:
            continue
        if kind in TEXTS and is_object(value):
            chars += len(text_of(value.get(TEXTS[kind])) or "") + _length_of_arguments(value)
        other = True
    return (0, chars, other) if part.get("thought") is True else (chars, 0, other)


def _length_of_arguments(call: dict[str, object]) -> int:
    arguments = call.get("args") or call.get("partialArgs")
    return written_length(arguments) if arguments else 0
