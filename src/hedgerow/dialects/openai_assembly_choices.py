"""Which fields of a streamed chat choice grow in which way, and what a whole choice has beside what was streamed.

Where providers differ, the choice is OpenAI's: content null beside tool calls or a refusal, refusal always there.
"""

from functools import partial
from types import MappingProxyType

from hedgerow.dialects.lenient_json import is_array, is_object, text_of
from hedgerow.dialects.openai_assembly_growth import (
    Appended,
    First,
    Kinds,
    Loose,
    Name,
    Parts,
    Record,
    Text,
    TextOrParts,
)

__all__ = ["Choices"]

CALLED: Kinds = MappingProxyType({"name": Name, "arguments": Text, "input": Text})
CALL: Kinds = MappingProxyType(
    {
        # Once: some vLLM versions make up a new id for every delta.
        "id": First,
        "function": partial(Record, CALLED),
        "custom": partial(Record, CALLED),
    }
)
# Parts within a part are texts and nothing else, so that no answer can nest us deep.
INNER_PART: Kinds = MappingProxyType({"text": Text})
PART: Kinds = MappingProxyType({"text": Text, "summary": Text, "thinking": partial(TextOrParts, INNER_PART)})
LOGPROBS: Kinds = MappingProxyType({"content": Appended, "refusal": Appended})


class Calls:
    """Tool calls, whose pieces say by `index` which call they belong to; in the end in that order, without the index.

    Two calls under one index, or calls without index (Gemini), are told apart by a new id that comes with a name.
    """

    __slots__ = ("_by_index", "_calls")

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}

    def take(self, piece: object) -> None:
        for delta in piece if is_array(piece) else ():
            if is_object(delta):
                self._call(delta).take(delta)

    def value(self) -> object:
        return [call.value() for call in sorted(self._calls, key=lambda call: call.index)]

    def _call(self, delta: dict[str, object]) -> "_Call":
        stated = delta.pop("index", None)
        index = stated if isinstance(stated, int) else None
        known = self._by_index.get(index) if index is not None else (self._calls[-1] if self._calls else None)
        if known is not None and not known.is_another(delta, index_stated=index is not None):
            return known
        call = _Call(index if index is not None else len(self._calls))
        self._calls.append(call)
        self._by_index[call.index] = call
        return call


class Message(Record):
    """The message of one choice, from its deltas."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(MESSAGE, Loose)

    def value(self) -> object:
        message = {"role": None, "content": None, "refusal": None, **self.grown()}
        message["role"] = message["role"] or "assistant"
        if message["content"] == "" and any(message.get(name) for name in ("tool_calls", "function_call", "refusal")):
            message["content"] = None  # the opening delta has "" before anyone knows what will follow
        return message


class Choices:
    """All choices of an answer, however their deltas interleave; in the order of their `index` (0 where it is not said)."""

    __slots__ = ("_choices",)

    def __init__(self) -> None:
        self._choices: dict[int, Record] = {}

    def take(self, piece: object) -> None:
        for delta in piece if is_array(piece) else ():
            if not is_object(delta):
                continue
            stated = delta.get("index")
            index = stated if isinstance(stated, int) else 0
            choice = self._choices.get(index)
            if choice is None:
                choice = self._choices[index] = Record(CHOICE)
            choice.take(delta)

    def value(self) -> object:
        return [_whole_choice(index, choice.grown()) for index, choice in sorted(self._choices.items())]


class _Call(Record):
    __slots__ = ("_id", "index")

    def __init__(self, index: int) -> None:
        super().__init__(CALL)
        self.index = index
        self._id: str | None = None

    def take(self, piece: object) -> None:
        if self._id is None and is_object(piece):
            self._id = text_of(piece.get("id"))
        super().take(piece)

    def value(self) -> object:
        call = self.grown()
        call["type"] = call.get("type") or ("custom" if call.get("custom") else "function")
        return call

    def is_another(self, delta: dict[str, object], *, index_stated: bool) -> bool:
        """Does this delta begin a call of its own, though nothing but its id and name says so?"""
        if not any(is_object(called := delta.get(kind)) and called.get("name") for kind in ("function", "custom")):
            return False
        name = text_of(delta.get("id"))
        if name is None or self._id is None:
            return name is None and not index_stated
        return name != self._id


def _whole_choice(index: int, choice: dict[str, object]) -> dict[str, object]:
    message = choice.pop("delta", None) or Message().value()
    return {"finish_reason": None, **choice, "index": index, "message": message}


# Not only OpenAI's: reasoning under the names of DeepSeek and vLLM, OpenRouter and Groq, Ollama, Copilot.
MESSAGE: Kinds = MappingProxyType(
    {
        "content": partial(TextOrParts, PART),
        "refusal": Text,
        "reasoning_content": Text,
        "reasoning": Text,
        "reasoning_text": Text,
        "thinking": partial(TextOrParts, INNER_PART),
        "reasoning_details": partial(Parts, PART),
        "thinking_blocks": partial(Parts, PART),
        "tool_calls": Calls,
        "function_call": partial(Record, CALLED),
    }
)
CHOICE: Kinds = MappingProxyType({"delta": Message, "logprobs": partial(Record, LOGPROBS), "token_ids": Appended})
