"""What an attempt cost, between a lower and an upper bound, and whether that was measured or estimated. Pure.

A cancelled copy is billed as the provider pleases: for what it had sent, for its whole answer, or not at all, and the usage it
would have reported never comes. The three figures for it are those of policy.md, "Cost of a loser".
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from hedgerow.cost.price import Price
from hedgerow.values.answer import Usage

__all__ = [
    "NOTHING",
    "Bounds",
    "CancelBilling",
    "Cut",
    "Kind",
    "LoserCost",
    "Usual",
    "input_usd",
    "loser_bounds",
    "total",
    "winner_cost",
]

OVERRUN_S = 0.15  # what a provider goes on making until it notices that the connection is closed

CancelBilling = Literal["so_far", "full", "none", "unknown"]


class Kind(StrEnum):
    """How a cost is known. A sum with an estimate in it is an estimate."""

    MEASURED = "measured"
    ESTIMATED = "estimated"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """USD, low_usd ≤ high_usd; high_usd None = nobody can say how much at most. `+` adds both and keeps the weaker kind.

    `hidden_reasoning`: it may have been billed for reasoning that nobody saw, so that even low_usd says too little.
    """

    low_usd: float
    high_usd: float | None
    kind: Kind
    hidden_reasoning: bool = False

    def __add__(self, other: "Bounds") -> "Bounds":
        known = self.high_usd is not None and other.high_usd is not None
        measured = self.kind is other.kind is Kind.MEASURED
        return Bounds(
            low_usd=self.low_usd + other.low_usd,
            high_usd=(self.high_usd or 0.0) + (other.high_usd or 0.0) if known else None,
            kind=Kind.MEASURED if measured else Kind.ESTIMATED,
            hidden_reasoning=self.hidden_reasoning or other.hidden_reasoning,
        )


NOTHING = Bounds(low_usd=0.0, high_usd=0.0, kind=Kind.MEASURED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """An attempt that ended before it could say what it used.

    input_tokens: the whole input; cached_tokens: the part that was probably read from a cache. input_measured: the provider
    said both before it was cut. tokens_seen: output that had arrived. max_output_tokens: the request's limit, None = none.
    """

    input_tokens: int
    cached_tokens: int = 0
    input_measured: bool = False
    tokens_seen: int = 0
    max_output_tokens: int | None = None
    hidden_reasoning: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Usual:
    """What is normal for the request's key: mean and Q90 of output tokens, median seconds per token. None = not known."""

    mean_output_tokens: float | None = None
    q90_output_tokens: float | None = None
    token_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoserCost:
    """The three figures, USD; always low ≤ expected ≤ high where they are known.

    low: billed for what it had sent. expected: for an answer as long as the winner's, what budgets reckon with. high: for a
    long answer. expected and high are None where no length is known to reckon with.
    """

    low_usd: float
    expected_usd: float | None
    high_usd: float | None
    hidden_reasoning: bool = False

    @property
    def bounds(self) -> Bounds:
        """Low to high, for reports."""
        return Bounds(
            low_usd=self.low_usd,
            high_usd=self.high_usd,
            kind=Kind.ESTIMATED,
            hidden_reasoning=self.hidden_reasoning,
        )

    def headline_usd(self, cancel_billing: CancelBilling) -> float | None:
        """The one figure to show, by what the target is known to bill for a cancelled call; unknown: as if in full."""
        if cancel_billing == "none":
            return 0.0
        return self.low_usd if cancel_billing == "so_far" else self.high_usd


def total(parts: Iterable[Bounds | None]) -> Bounds | None:
    """The sum; None as soon as one part is unknown, for the sum of the rest would pass for the whole."""
    whole = NOTHING
    for part in parts:
        if part is None:
            return None
        whole += part
    return whole


def winner_cost(price: Price, usage: Usage) -> Bounds:
    """The cost of an attempt whose usage the provider has told: measured, low = high."""
    cost_usd = input_usd(price, usage.input_tokens, usage.cached_tokens) + usage.output_tokens * price.output_usd
    return Bounds(low_usd=cost_usd, high_usd=cost_usd, kind=Kind.MEASURED)


def loser_bounds(price: Price, cut: Cut, usual: Usual, *, winner_tokens: int | None = None) -> LoserCost:
    """What an attempt cost that was cut short. winner_tokens: output of the winner, None = there is none (yet)."""
    likely_input_usd = input_usd(price, cut.input_tokens, cut.cached_tokens)
    # The twin of a call whose prefix is only now being written to the cache misses it.
    most_input_usd = likely_input_usd if cut.input_measured else input_usd(price, cut.input_tokens, 0)
    sent = _sent_tokens(cut, usual)
    likely = _likely_tokens(sent, cut, usual, winner_tokens)
    most = _most_tokens(likely or sent, cut, usual, winner_tokens)
    return LoserCost(
        low_usd=min(likely_input_usd, most_input_usd) + sent * price.output_usd,
        expected_usd=None if likely is None else likely_input_usd + likely * price.output_usd,
        high_usd=None if most is None else max(likely_input_usd, most_input_usd) + most * price.output_usd,
        hidden_reasoning=cut.hidden_reasoning,
    )


def input_usd(price: Price, input_tokens: int, cached_tokens: int) -> float:
    """The input, its cached part at its own price, and what a call costs as such."""
    cached_tokens = min(cached_tokens, input_tokens)
    return (input_tokens - cached_tokens) * price.input_usd + cached_tokens * price.cached_usd + price.call_usd


def _sent_tokens(cut: Cut, usual: Usual) -> float:
    """Seen, and what was on its way while the connection was closed; nothing is on its way before the first token."""
    if not cut.tokens_seen or not usual.token_s:
        return cut.tokens_seen
    sent = cut.tokens_seen + OVERRUN_S / usual.token_s
    limit = cut.max_output_tokens
    return sent if limit is None else max(cut.tokens_seen, min(sent, limit))


def _likely_tokens(sent: float, cut: Cut, usual: Usual, winner_tokens: int | None) -> float | None:
    """The winner's length, for it answered the same prompt; before there is one the key's mean. Never less than was sent."""
    if winner_tokens is not None:
        return max(sent, winner_tokens)
    if usual.mean_output_tokens is None:
        return None
    return max(sent, _at_most(usual.mean_output_tokens, cut.max_output_tokens))


def _most_tokens(least: float, cut: Cut, usual: Usual, winner_tokens: int | None) -> float | None:
    """min(max_tokens, max(winner's output, Q90)); never less than the other two figures reckon with."""
    lengths = [tokens for tokens in (winner_tokens, usual.q90_output_tokens) if tokens is not None]
    if lengths:
        return max(least, _at_most(max(lengths), cut.max_output_tokens))
    return None if cut.max_output_tokens is None else max(least, cut.max_output_tokens)


def _at_most(tokens: float, limit: int | None) -> float:
    return tokens if limit is None else min(tokens, limit)
