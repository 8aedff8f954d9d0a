"""What an answer says, before any dialect writes it down: pieces of text, one for each token of a choice.

A generated token is a word of about four characters with its blank, so that characters / 4 ≈ tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from typing import Literal

import orjson

from hedgerow.sandbox.http1 import BadRequest
from hedgerow.sandbox.instances import NoInstanceError, instance_of
from hedgerow.sandbox.script import Script
from hedgerow.sandbox.tools import Tool

__all__ = ["Answer", "Call", "Piece", "ReportedUsage", "compose", "split", "tool_calls"]

PROSE = (
    "the sea was calm and no boat left port all day long we sat on a wall and let sun fall on us then rain came in so "
    "you went up to see how far it had run by noon old men told of big fish one made of tin two of gold but none had "
    "ever been near them at dusk bell rang ten times"
)
WORDS = tuple(PROSE.split())
CHARS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What a request asked for, the same for every dialect.

    `n`: choices. `generates` False: an answer without output tokens (embeddings). `tools`: those that may be called, one after
    the other; `tool_forced`: at least one must be. `form`: the JSON schema of the answer's text. `body`: the request, for what
    only its own dialect needs.
    """

    model: str
    input_tokens: int
    stream: bool = False
    n: int = 1
    generates: bool = True
    usage_in_stream: bool = False
    max_tokens: int | None = None
    service_tier: str | None = None
    tools: tuple[Tool, ...] = ()
    tool_forced: bool = False
    form: dict[str, object] | None = None
    body: dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One token's worth of one choice. `tool` numbers the tool call it belongs to; `opens`: it is that call's first."""

    kind: Literal["text", "reasoning", "refusal", "tool"]
    text: str
    tool: int = 0
    opens: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedUsage:
    """Tokens as the answer reports them; `output_tokens` over all choices, with reasoning."""

    input_tokens: int
    output_tokens: int
    cached_tokens: int = 0
    reasoning_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A whole answer. Every choice says the same `pieces`. `finish_reason` None: the answer is left without one."""

    id: str
    created_at_s: int
    call: Call
    n: int
    pieces: tuple[Piece, ...]
    finish_reason: str | None
    service_tier: str
    usage: ReportedUsage | None

    def tool_name(self, tool: int) -> str:
        """The tool that call number `tool` calls."""
        return self.call.tools[tool % len(self.call.tools)].name if self.call.tools else "sandbox_tool"

    def joined(self, kind: str, *, tool: int = 0) -> str:
        """All text of one kind."""
        return "".join(piece.text for piece in self.pieces if piece.kind == kind and piece.tool == tool)


def compose(script: Script, call: Call, tokens: int, luck: Random) -> tuple[Piece, ...]:
    """The pieces of one choice: reasoning first, then a refusal, tool calls or text.

    `tokens` is the number of visible tokens; a scripted text or refusal with no scripted number is cut into as many as
    its length gives. With tool calls the tokens are spread over their arguments, and a scripted text is the arguments
    of each call, verbatim. Raises BadRequest if nothing is found that fits a schema of the request.
    """
    reasoning = [Piece(kind="reasoning", text=word) for word in _words(script.reasoning_tokens, luck)]
    calls = tool_calls(script, call)
    if calls:
        return (*reasoning, *_tool_calls(script, call, calls, tokens, luck))
    said = script.refusal if script.refusal is not None else script.text
    kind: Literal["text", "refusal"] = "text" if script.refusal is None else "refusal"
    if said is not None:
        words = split(said, script.tokens)
    elif call.form is not None:
        words = split(_instance(call.form, "the answer"), tokens)
    else:
        words = _words(tokens, luck)
    return (*reasoning, *(Piece(kind=kind, text=word) for word in words))


def tool_calls(script: Script, call: Call) -> int:
    """How many tool calls the answer makes: as scripted, or one where the request insists on it and the script says nothing."""
    if script.tool_calls is not None:
        return script.tool_calls
    if script.arguments:
        return len(script.arguments)
    return 1 if call.tool_forced and script.text is None and script.refusal is None else 0


def split(text: str, count: int | None = None) -> list[str]:
    """`text` in `count` (None: length / 4) pieces of even length; fewer if it has not so many characters, never empty ones."""
    if not text or count == 0:
        return []
    count = min(len(text), count or -(-len(text) // CHARS_PER_TOKEN))
    edges = [number * len(text) // count for number in range(count + 1)]
    return [text[start:end] for start, end in pairwise(edges)]


def _tool_calls(script: Script, call: Call, calls: int, tokens: int, luck: Random) -> Sequence[Piece]:
    pieces: list[Piece] = []
    for number in range(calls):
        share = tokens * (number + 1) // calls - tokens * number // calls
        if script.text is not None:
            words = split(script.text, script.tokens)
        else:
            words = split(_arguments(script, call, number, share, luck), max(1, share))
        pieces += (
            Piece(kind="tool", text=word, tool=number, opens=first == 0) for first, word in enumerate(words or [""])
        )
    return pieces


def _arguments(script: Script, call: Call, number: int, tokens: int, luck: Random) -> str:
    if script.arguments:
        return script.arguments[min(number, len(script.arguments) - 1)]
    tool = call.tools[number % len(call.tools)] if call.tools else None
    if tool is not None and tool.schema:
        # Arguments are an object, also where the schema does not say so.
        return _instance({"type": "object"} | tool.schema, f"the arguments of {tool.name!r}")
    # Quotes and braces take about four tokens' room.
    return '{"note":"' + "".join(_words(max(1, tokens - 4), luck)) + '"}'


def _instance(schema: dict[str, object], what: str) -> str:
    try:
        return orjson.dumps(instance_of(schema)).decode()
    except NoInstanceError as error:
        raise BadRequest(f"the sandbox finds nothing that fits the schema of {what} ({error}): script it") from None


def _words(count: int, luck: Random) -> list[str]:
    return [word if first == 0 else f" {word}" for first, word in enumerate(luck.choices(WORDS, k=count))]
