"""What became of each call under a policy, as columns; and the policies by age alone, in closed form.

A buffered caller gets the first whole answer, a streaming one the attempt whose first token came first.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.analysis.calls import Column, Flags
from hedgerow.analysis.whatif.parts import Parts

__all__ = ["IN_FLIGHT_S", "Field", "Prices", "Raced", "by_age", "once", "resent"]

IN_FLIGHT_S = 0.15  # a closed stream still costs the tokens of this long


@dataclass(frozen=True, slots=True)
class Prices:
    """Of a token in and a token out; only their ratio matters here."""

    input: float
    output: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """Calls in order of time, and two copies of each."""

    t_start: Column
    input_tokens: Column
    own: Parts
    copies: tuple[Parts, Parts]
    prices: Prices

    def __len__(self) -> int:
        return len(self.t_start)

    def cost(self, output_tokens: Column) -> Column:
        """What each call costs that answers with so many tokens. Unknown input costs nothing."""
        known = np.where(np.isnan(self.input_tokens), 0.0, self.input_tokens)
        return self.prices.input * known + self.prices.output * output_tokens

    def part(self, calls: NDArray[np.intp]) -> "Field":
        """Some of the calls, with their copies."""
        return Field(
            t_start=self.t_start[calls],
            input_tokens=self.input_tokens[calls],
            own=self.own.some(calls),
            copies=(self.copies[0].some(calls), self.copies[1].some(calls)),
            prices=self.prices,
        )

    def swapped(self) -> "Field":
        """The copies the other way round: a second look at the same calls."""
        return Field(
            t_start=self.t_start,
            input_tokens=self.input_tokens,
            own=self.own,
            copies=(self.copies[1], self.copies[0]),
            prices=self.prices,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Raced:
    """Per call: seconds to the first token and to the whole response (inf where all failed), backups sent, and what it cost
    beyond the call itself, at least and at most."""

    first_token_s: Column
    full_response_s: Column
    backups: Column
    cost_low: Column
    cost_high: Column


def once(field: Field) -> Raced:
    """Every call as it was."""
    nothing = np.zeros(len(field))
    return Raced(
        first_token_s=field.own.first_token_s,
        full_response_s=field.own.total_s,
        backups=nothing,
        cost_low=nothing,
        cost_high=nothing,
    )


def by_age(field: Field, delay_s: Column, *, of_first_token: bool = False) -> Raced:
    """A backup once a call is `delay_s` old (inf = never) without a whole answer, or without a first token."""
    own, copy = field.own, field.copies[0]
    full, copy_full = own.total_s, copy.total_s
    sent = (own.first_token_s if of_first_token else full) > delay_s
    sent_at = np.where(sent, delay_s, np.inf)
    ends = np.minimum(full, sent_at + copy_full)
    won = sent & (sent_at + copy_full < full)
    low_own, high_own = _loser(field, own, won, ends)
    low_copy, high_copy = _loser(field, copy, sent & ~won, ends - np.where(sent, delay_s, 0.0))
    return Raced(
        first_token_s=np.minimum(own.first_token_s, sent_at + copy.first_token_s),
        full_response_s=ends,
        backups=sent.astype(float),
        cost_low=low_own + low_copy,
        cost_high=high_own + high_copy,
    )


def resent(field: Field, delay_s: Column) -> Raced:
    """Cancelled at `delay_s` without a whole answer and sent again, once: no race."""
    own, copy = field.own, field.copies[0]
    sent = own.total_s > delay_s
    start = np.where(sent, delay_s, 0.0)
    low, high = _loser(field, own, sent, start)
    return Raced(
        first_token_s=np.where(sent, start + copy.first_token_s, own.first_token_s),
        full_response_s=np.where(sent, start + copy.total_s, own.total_s),
        backups=sent.astype(float),
        cost_low=low,
        cost_high=high,
    )


def _loser(field: Field, parts: Parts, lost: Flags, age_s: Column) -> tuple[Column, Column]:
    """What losers closed at this age cost at least (input, and tokens sent by then) and at most; nothing if they failed."""
    lost = lost & parts.answered
    per_token = parts.pace_s + parts.excess_s / parts.output_tokens
    decoding = np.where(lost, age_s + IN_FLIGHT_S - parts.first_token_s, -1.0)
    with np.errstate(divide="ignore"):
        seen = np.where(decoding < 0, 0.0, np.minimum(decoding / per_token + 1, parts.output_tokens))
    nothing = np.zeros(len(lost))
    return np.where(lost, field.cost(seen), nothing), np.where(lost, field.cost(parts.output_tokens), nothing)
