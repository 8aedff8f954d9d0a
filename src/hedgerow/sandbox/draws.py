"""How one attempt at the provider goes if no script says otherwise, and whose luck it depends on.

A draw depends on the seed, the last part of the case id and the arrival number, on nothing else: arms can be paired.
"""

from dataclasses import dataclass
from random import Random
from typing import Protocol

__all__ = ["Arrival", "Draw", "DrawSource"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """Who arrives: the server's `seed`, the `part` of the case id after its last "/", and the `number` of this arrival of it."""

    seed: int
    part: str
    number: int

    def request_luck(self) -> Random:
        """A generator that all arrivals of this part share."""
        return Random(f"{self.seed}|{self.part}")

    def attempt_luck(self, purpose: str = "") -> Random:
        """A generator of this arrival's own; another one for each `purpose`."""
        return Random(f"{self.seed}|{self.part}|{self.number}|{purpose}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """One attempt. Token j (from 1) is due at first_token_s + (j - 1)·token_s, + stall_s if j > stall_after_tokens.

    With a `status` other than 200 the failure leaves at first_token_s.
    """

    first_token_s: float
    token_s: float
    tokens: int
    stall_after_tokens: int = 0
    stall_s: float = 0.0
    status: int = 200

    @property
    def total_s(self) -> float:
        """From arrival to the end of the answer."""
        return self.first_token_s + max(0, self.tokens - 1) * self.token_s + self.stall_s


class DrawSource(Protocol):
    """A profile, or rows of real calls."""

    def draw(self, arrival: Arrival) -> Draw:
        """The attempt that this arrival meets."""
        ...
