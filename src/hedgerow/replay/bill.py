"""What the arms cost, from the sandbox's own list of attempts: a closed loser is a range, because providers differ.

low = input and the tokens that had been sent; high = input and all the tokens its answer would have had. An attempt that
ran to its end is charged in full whether it won or not; one that failed for its input and tokens, if it sent any.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from hedgerow.errors import HedgerowError

__all__ = ["Attempt", "Cost", "Tariff", "cases_of", "cost_of"]


class Tariff(Protocol):
    """One stated price list, applied to every attempt whatever the sandbox itself bills."""

    def cost_usd(self, input_tokens: int, output_tokens: int, service_tier: str) -> float:
        """USD for so many tokens at a service tier."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One arrival as the sandbox saw it. `outcome` is completed, disconnected, failed, or None while it is in flight."""

    outcome: str | None
    input_tokens: int
    tokens: int
    planned_tokens: int
    service_tier: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """USD between two bounds; they are equal where nothing was cut short."""

    low_usd: float = 0.0
    high_usd: float = 0.0

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(low_usd=self.low_usd + other.low_usd, high_usd=self.high_usd + other.high_usd)


def cost_of(attempts: Sequence[Attempt], tariff: Tariff) -> Cost:
    """What all attempts of a request cost together."""
    return sum((_cost_of_one(attempt, tariff) for attempt in attempts), Cost())


def cases_of(stats: Mapping[str, Any]) -> dict[str, tuple[Attempt, ...]]:
    """The attempts of every case in an answer of `/_sandbox/stats`. HedgerowError if that is not one of this version."""
    try:
        return {case: tuple(_attempt(entry) for entry in entries) for case, entries in stats["cases"].items()}
    except (AttributeError, KeyError, TypeError) as error:
        raise HedgerowError(
            f"the sandbox's stats lack what the bill needs ({error!r}): run the sandbox of the same hedgerow version"
        ) from None


def _attempt(entry: Mapping[str, Any]) -> Attempt:
    return Attempt(
        outcome=entry["outcome"],
        input_tokens=int(entry["input_tokens"]),
        tokens=int(entry["tokens"]),
        planned_tokens=int(entry["planned_tokens"]),
        service_tier=str(entry["service_tier"]),
    )


def _cost_of_one(attempt: Attempt, tariff: Tariff) -> Cost:
    if attempt.outcome == "failed" and not attempt.tokens:
        return Cost()
    so_far_usd = tariff.cost_usd(attempt.input_tokens, attempt.tokens, attempt.service_tier)
    if attempt.outcome in ("completed", "failed"):
        return Cost(low_usd=so_far_usd, high_usd=so_far_usd)
    full_usd = tariff.cost_usd(attempt.input_tokens, attempt.planned_tokens, attempt.service_tier)
    return Cost(low_usd=so_far_usd, high_usd=full_usd)
