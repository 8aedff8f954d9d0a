"""Makes of a streamed chat completion the one JSON body that the API would have answered with had nobody asked to stream.

Fields nobody knows are kept: see openai_assembly_growth for how they grow, openai_assembly_choices for what a choice is.
"""

from types import MappingProxyType

from hedgerow.dialects.headers import Headers
from hedgerow.dialects.lenient_json import is_array, is_object, written
from hedgerow.dialects.openai_assembly_choices import Choices
from hedgerow.dialects.openai_assembly_growth import First, Kinds, Record, Replaced
from hedgerow.dialects.openai_chat_answer import ChatAnswerReader
from hedgerow.dialects.sse import ServerSentEvent

__all__ = ["Assembler", "AssemblingChatReader"]

ANSWER: Kinds = MappingProxyType({"id": First, "created": First, "model": First, "usage": Replaced, "choices": Choices})


class Assembler:
    """Takes the chunks of one answer, gives the whole. Not shared. `take` never raises, whatever the chunks are."""

    __slots__ = ("_answer", "_whole")

    def __init__(self) -> None:
        self._answer = Record(ANSWER)
        self._whole: dict[str, object] | None = None

    def take(self, chunk: dict[str, object]) -> None:
        """The next object of the stream; it is the assembler's from now on. Pings and other events are passed over."""
        choices = chunk.get("choices")
        if is_array(choices) and choices and is_object(choice := choices[0]):
            if "message" not in choice:
                self._answer.take(chunk)
                return
            if "delta" not in choice:
                self._whole = chunk  # a server that streams its whole answer as one event
                return
            # Perplexity sends the message so far beside each delta.
            for each in choices:
                if is_object(each):
                    each.pop("message", None)
        if choices is not None or "usage" in chunk:
            self._answer.take(chunk)

    def response(self) -> bytes:
        """The JSON body of the chat.completion; to be asked once, when the reader says that the answer has ended.

        Of a stream that was cut it gives what came until then, which is no answer to hand to anybody. RecursionError if a
        field is nested deeper than Python's own recursion limit allows (hundreds of levels).
        """
        return written(self._completion() if self._whole is None else self._whole)

    def _completion(self) -> dict[str, object]:
        answer = self._answer.grown()
        padded = answer.pop("obfuscation", None) is not None
        choices = answer.get("choices")
        if padded and is_array(choices):
            # Only OpenAI pads its chunks, and its whole messages always have this list; its streams do not.
            for choice in choices:
                if is_object(choice) and is_object(message := choice["message"]):
                    message["annotations"] = message.get("annotations") or []
        return {**answer, "object": "chat.completion", "choices": choices or []}


class AssemblingChatReader(ChatAnswerReader):
    """Reads an answer as ChatAnswerReader does, and hands on what it has parsed: one pass for both. Not shared."""

    __slots__ = ("_assembler", "_handed_on", "_left_out")

    def __init__(self, headers: Headers) -> None:
        super().__init__(headers)
        self._assembler = Assembler()
        self._handed_on = False  # has the event at hand been read?
        self._left_out = False

    @property
    def complete(self) -> bool:
        """Was everything read that came? If something was too large or too broken for that, `response` lacks it."""
        return not (self._left_out or self.truncated)

    def response(self) -> bytes:
        """The whole answer as JSON; see Assembler.response."""
        return self._assembler.response()

    def _read_event(self, event: ServerSentEvent) -> None:
        self._handed_on = False
        super()._read_event(event)
        if not self._handed_on and event.data.startswith(b"{"):
            self._left_out = True

    def _read_completion(self, completion: dict[str, object]) -> None:
        super()._read_completion(completion)
        self._assembler.take(completion)
        self._handed_on = True
