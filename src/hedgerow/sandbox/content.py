"""What an answer says, before any dialect writes it down: pieces of text, one for each token of a choice.

A generated token is a word of about four characters with its blank, so that characters / 4 ≈ tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from typing import Literal

from hedgerow.sandbox.script import Script

__all__ = ["Answer", "Call", "Piece", "ReportedUsage", "compose", "split"]

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

    `n`: choices. `generates` False: an answer without output tokens (embeddings). `body`: the request, for what only its
    own dialect needs.
    """

    model: str
    input_tokens: int
    stream: bool = False
    n: int = 1
    generates: bool = True
    usage_in_stream: bool = False
    max_tokens: int | None = None
    service_tier: str | None = None
    tool_names: tuple[str, ...] = ()
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

    def joined(self, kind: str, *, tool: int = 0) -> str:
        """All text of one kind."""
        return "".join(piece.text for piece in self.pieces if piece.kind == kind and piece.tool == tool)


def compose(script: Script, tokens: int, luck: Random) -> tuple[Piece, ...]:
    """The pieces of one choice: reasoning first, then a refusal, tool calls or text.

    `tokens` is the number of visible tokens; a scripted text or refusal with no scripted number is cut into as many as
    its length gives. With tool calls the tokens are spread over their arguments, and a scripted text is the arguments
    of each call, verbatim.
    """
    reasoning = [Piece(kind="reasoning", text=word) for word in _words(script.reasoning_tokens, luck)]
    if script.tool_calls:
        return (*reasoning, *_tool_calls(script, tokens, luck))
    said = script.refusal if script.refusal is not None else script.text
    kind: Literal["text", "refusal"] = "text" if script.refusal is None else "refusal"
    words = _words(tokens, luck) if said is None else split(said, script.tokens)
    return (*reasoning, *(Piece(kind=kind, text=word) for word in words))


def split(text: str, count: int | None = None) -> list[str]:
    """`text` in `count` (None: length / 4) pieces of even length; fewer if it has not so many characters, never empty ones."""
    if not text or count == 0:
        return []
    count = min(len(text), count or -(-len(text) // CHARS_PER_TOKEN))
    edges = [number * len(text) // count for number in range(count + 1)]
    return [text[start:end] for start, end in pairwise(edges)]


def _tool_calls(script: Script, tokens: int, luck: Random) -> Sequence[Piece]:
    pieces: list[Piece] = []
    for tool in range(script.tool_calls):
        share = tokens * (tool + 1) // script.tool_calls - tokens * tool // script.tool_calls
        if script.text is not None:
            words = split(script.text, script.tokens)
        else:
            # Quotes and braces take about four tokens' room.
            arguments = '{"note":"' + "".join(_words(max(1, share - 4), luck)) + '"}'
            words = split(arguments, max(1, share))
        pieces += (
            Piece(kind="tool", text=word, tool=tool, opens=first == 0) for first, word in enumerate(words or [""])
        )
    return pieces


def _words(count: int, luck: Random) -> list[str]:
    return [word if first == 0 else f" {word}" for first, word in enumerate(luck.choices(WORDS, k=count))]
