"""One call, measured where the caller sits: when its first content came, when its answer was whole, or how it failed.

Which SDK speaks is not known here: a stream of Pieces is all it takes.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import NamedTuple

from hedgerow.clock import Clock

__all__ = ["Measured", "Piece", "measure"]


class Piece(NamedTuple):
    """One part of a streamed answer. `content`: there is text in it; `last`: the answer says that it is complete.

    Parts that are neither the first content nor the last may be left out.
    """

    answer_id: str
    content: bool
    last: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A call that is over. Times in provider seconds from its start; None = did not happen.

    `answers`: how many different answers it brought to their end, 1 if all is well, 0 if it failed. `error`: the name of
    the exception, None if it was answered.
    """

    first_token_s: float | None
    full_response_s: float | None
    answers: int
    error: str | None = None


async def measure(pieces: AsyncGenerator[Piece], clock: Clock) -> Measured:
    """Reads a stream to its end. What it raises is a failed call; a stream that ends without an end is one too."""
    began_s = clock.now()
    first_token_s: float | None = None
    complete: set[str] = set()
    try:
        async with aclosing(pieces):
            async for piece in pieces:
                if piece.content and first_token_s is None:
                    first_token_s = clock.now() - began_s
                if piece.last:
                    complete.add(piece.answer_id)
    except Exception as error:  # reported by name: the arm counts it, and the reader sees how many there were
        return Measured(
            first_token_s=first_token_s, full_response_s=None, answers=len(complete), error=type(error).__name__
        )
    if not complete:
        return Measured(first_token_s=first_token_s, full_response_s=None, answers=0, error="no end")
    return Measured(first_token_s=first_token_s, full_response_s=clock.now() - began_s, answers=len(complete))
