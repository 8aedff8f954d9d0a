"""When what of an answer leaves: a pure plan of steps, each with its due time from arrival.

Due times are absolute, so that a late wake-up delays one step and not all that follow.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from hedgerow.sandbox.draws import Draw
from hedgerow.sandbox.script import Script

__all__ = ["Pace", "Step", "pace", "refusal_step", "steps"]

Ending = Literal["end", "error", "cut"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """The rhythm of one answer: token j (from 0) is due at first_token_s + j·token_s, + stall_s if j ≥ stall_after."""

    first_token_s: float
    token_s: float
    stall_after: int
    stall_s: float

    def due_s(self, number: int) -> float:
        """When token `number` (from 0) is due."""
        return self.first_token_s + number * self.token_s + (self.stall_s if number >= self.stall_after else 0.0)

    def after_s(self, tokens: int) -> float:
        """When what follows the first `tokens` tokens is due: with the last of them, and after a stall that comes there."""
        if tokens == 0:
            return self.due_s(0)
        return self.due_s(tokens - 1) + (self.stall_s if self.stall_after == tokens else 0.0)


@dataclass(frozen=True, slots=True)
class Step:
    """Something that happens at `due_s` after arrival; `number` is the token's."""

    due_s: float
    what: Literal["headers", "ping", "token", "end", "error", "cut"]
    number: int = 0


def pace(script: Script | None, draw: Draw) -> Pace:
    """The draw's rhythm where the script is silent. A scripted answer has only the stall its script names."""
    if script is None:
        return Pace(
            first_token_s=draw.first_token_s,
            token_s=draw.token_s,
            stall_after=draw.stall_after_tokens,
            stall_s=draw.stall_s,
        )
    return Pace(
        first_token_s=draw.first_token_s if script.first_token_s is None else script.first_token_s,
        token_s=draw.token_s if script.token_s is None else script.token_s,
        stall_after=script.stall.after if script.stall else 0,
        stall_s=script.stall.wait_s if script.stall else 0.0,
    )


def steps(script: Script, rhythm: Pace, tokens: int, *, stream: bool) -> Iterator[Step]:
    """All steps of an answer with status 200, in order of time.

    A stream's headers leave at before_headers_s and nothing before them, except a cut before any token. Not streamed, one
    step has it all: the end when the last token is due, the error or cut when it would have come in a stream.
    """
    ending, last = _ending(script, tokens)
    due_s = rhythm.after_s(last)
    opened_s = script.before_headers_s
    if not stream:
        yield Step(due_s if ending == "cut" else max(opened_s, due_s), ending, last)
        return
    if ending == "cut" and last == 0 and due_s < opened_s:
        yield Step(due_s, "cut")
        return
    yield Step(opened_s, "headers")
    first_s = rhythm.due_s(0) if last else due_s
    for number in range(1, script.pings.count + 1 if script.pings else 1):
        if script.pings is not None and number * script.pings.every_s < first_s:
            yield Step(max(opened_s, number * script.pings.every_s), "ping")
    for number in range(last):
        yield Step(max(opened_s, rhythm.due_s(number)), "token", number)
    yield Step(max(opened_s, due_s), ending, last)


def refusal_step(script: Script | None, draw: Draw) -> Step:
    """When an answer with another status than 200 leaves: at once, unless the script or a failed draw names a time."""
    if script is None:
        return Step(draw.first_token_s, "end")
    return Step(max(script.before_headers_s, script.first_token_s or 0.0), "end")


def _ending(script: Script, tokens: int) -> tuple[Ending, int]:
    """How the answer ends and after how many tokens; of an error and a cut at the same place the error comes first."""
    error = script.error_frame.after if script.error_frame else None
    if error is not None and error <= tokens and (script.cut_after is None or error <= script.cut_after):
        return "error", error
    if script.cut_after is not None and script.cut_after <= tokens:
        return "cut", script.cut_after
    return "end", tokens
