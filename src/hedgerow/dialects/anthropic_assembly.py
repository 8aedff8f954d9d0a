"""Asks for an Anthropic message as a stream, and makes of the stream the one JSON body that would have been the answer.

Fields nobody knows are kept: those of the opening message and of each block's start as they are, later ones laid over them.
"""

from collections.abc import Mapping

from hedgerow.dialects.anthropic_answer import MessageReader
from hedgerow.dialects.anthropic_safety import RULES, SAFE_FIELDS
from hedgerow.dialects.headers import Headers
from hedgerow.dialects.lenient_json import is_array, is_object, written
from hedgerow.dialects.partial_json import loads_partial
from hedgerow.dialects.request_body import rewritten
from hedgerow.dialects.sse import ServerSentEvent

__all__ = ["AssemblingMessageReader", "MessageAssembler", "streamed_message"]

EVENTS = frozenset({"content_block_delta", "content_block_start", "message_delta", "message_start"})
APPENDED = {"text_delta": "text", "thinking_delta": "thinking"}


def streamed_message(body: Mapping[str, object]) -> bytes | None:
    """The request with `stream` laid in; None if it is a stream already, has a field that we do not know, or a tool
    whose input is streamed unchecked and need not be JSON.

    A stream says all that the whole answer says: usage, stop details, citations, the blocks of server tools.
    """
    if body.get("stream") not in (None, False) or any(
        field not in SAFE_FIELDS and field not in RULES for field in body
    ):
        return None
    tools = body.get("tools")
    if any(is_object(tool) and tool.get("eager_input_streaming") for tool in (tools if is_array(tools) else ())):
        return None
    return rewritten(body, stream=True)


class MessageAssembler:
    """Takes the events of one answer, gives the whole. Not shared. `take` never raises, whatever the events are."""

    __slots__ = ("_blocks", "_message", "_senseless")

    def __init__(self) -> None:
        self._message: dict[str, object] | None = None
        self._blocks: dict[int, _Block] = {}
        self._senseless = False

    @property
    def complete(self) -> bool:
        """Did all make sense? Not so: no opening, a delta of a block that never started, a tool's input that is not JSON."""
        return (
            self._message is not None and not self._senseless and all(block.join() for block in self._blocks.values())
        )

    def take(self, event: dict[str, object]) -> None:
        """The next event of the stream; it is the assembler's from now on. Events it does not know are passed over."""
        kind, index = event.get("type"), event.get("index")
        if kind == "message_start" and is_object(message := event.get("message")):
            self._message = self._message or message
        elif kind == "message_delta" and self._message is not None:
            _lay_end_over(self._message, event)
        elif (
            kind == "content_block_start" and isinstance(index, int) and is_object(block := event.get("content_block"))
        ):
            self._blocks[index] = _Block(block)
        elif kind == "content_block_delta" and is_object(delta := event.get("delta")):
            if isinstance(index, int) and (growing := self._blocks.get(index)) is not None:
                growing.take(delta)
            else:
                self._senseless = True

    def response(self) -> bytes:
        """The JSON body of the message; to be asked once, when the reader says that the answer has ended."""
        message, content = self._message or {}, list[dict[str, object]]()
        for _, block in sorted(self._blocks.items()):
            block.join()
            content.append(block.fields)
            if block.fields.get("type") == "fallback" and is_object(served_by := block.fields.get("to")):
                message["model"] = served_by.get("model", message.get("model"))
        return written({**message, "content": content})


class _Block:
    """One content block while it grows."""

    __slots__ = ("_pieces", "fields")

    def __init__(self, start: dict[str, object]) -> None:
        self.fields = start
        self._pieces: dict[str, list[str]] = {}

    def take(self, delta: dict[str, object]) -> None:
        kind = delta.get("type")
        for name, value in delta.items():
            if name == "type":
                continue
            if name == APPENDED.get(str(kind)) or name == "partial_json":
                if isinstance(value, str):
                    self._pieces.setdefault(name, []).append(value)
            elif kind == "citations_delta" and name == "citation":
                before = self.fields.get("citations")
                self.fields["citations"] = [*(before if is_array(before) else ()), value]
            elif value is not None or name not in self.fields:
                self.fields[name] = value

    def join(self) -> bool:
        """Join what came in pieces. Could all of it be read? May be asked again."""
        for name in self._pieces.keys() - {"partial_json"}:
            before = self.fields.get(name)
            self.fields[name] = "".join((before if isinstance(before, str) else "", *self._pieces.pop(name)))
        if called_with := "".join(self._pieces.get("partial_json", ())):
            try:
                self.fields["input"] = loads_partial(called_with)
            except ValueError:
                return False
        return True


class AssemblingMessageReader(MessageReader):
    """Reads an answer as MessageReader does, and hands on what it has parsed: one pass for both. Not shared."""

    __slots__ = ("_assembler", "_handed_on", "_left_out")

    def __init__(self, headers: Headers) -> None:
        super().__init__(headers)
        self._assembler = MessageAssembler()
        self._handed_on = True
        self._left_out = False

    @property
    def complete(self) -> bool:
        """Was everything read that came? If something was too large or too broken for that, `response` lacks it."""
        return self._assembler.complete and not (self._left_out or self.truncated)

    def response(self) -> bytes:
        """The whole answer as JSON; see MessageAssembler.response."""
        return self._assembler.response()

    def _read_event(self, event: ServerSentEvent) -> None:
        self._handed_on = False
        super()._read_event(event)
        self._left_out |= not self._handed_on and event.data.startswith(b"{")

    def _read_object(self, payload: dict[str, object], kind: str) -> None:
        super()._read_object(payload, kind)
        self._handed_on = True
        if kind in EVENTS:
            payload["type"] = kind
            self._assembler.take(payload)


def _lay_end_over(message: dict[str, object], event: dict[str, object]) -> None:
    """Stop reason and final usage of a message_delta; a null says nothing new."""
    for name, value in event.items():
        if name == "delta" and is_object(value):
            message.update(
                (field, inner) for field, inner in value.items() if inner is not None or field not in message
            )
        elif name == "usage" and is_object(value):
            usage = message.get("usage")
            opening = usage if is_object(usage) else {}
            message["usage"] = {**opening, **{field: count for field, count in value.items() if count is not None}}
        elif name != "type" and value is not None:
            message[name] = value
