"""Puts prices on the record of a request: what each attempt cost, what all cost together, and how well that is known.

Off the hot path: an event is priced when it is written. A total with an unknown price in it is None.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import get_args

from hedgerow.cost.billable import Billed, billed, cut_of, usage_of, winner_of
from hedgerow.cost.bounds import (
    NOTHING,
    Bounds,
    CancelBilling,
    Kind,
    LoserCost,
    Usual,
    loser_bounds,
    total,
    winner_cost,
)
from hedgerow.cost.price import Price
from hedgerow.cost.prices import PriceBook
from hedgerow.errors import SettingError
from hedgerow.values.answer import Usage
from hedgerow.values.event import AttemptEvent, Event

__all__ = ["ESTIMATED", "HIDDEN_REASONING", "Bill", "TargetBilling", "bill_of", "billing_of", "price_event"]

# Notes in `price_source`, after the sources, separated by "; ".
ESTIMATED = "estimated"
HIDDEN_REASONING = "hidden reasoning: low is no lower bound"

FASTEST_TOKEN_S = 0.0005  # an answer that seems faster than any model came in one piece, and its pace means nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetBilling:
    """How a target bills. provider_url: its base URL, by which the public list knows it.

    model, service_tier: what it is asked for where the request does not say (a target's `set`); what the answer names counts
    more. cancel_billing: what it charges for a cancelled call, so_far | full | none | unknown; else SettingError.
    """

    provider_url: str | None = None
    model: str | None = None
    service_tier: str | None = None
    cancel_billing: CancelBilling = "unknown"

    def __post_init__(self) -> None:
        if self.cancel_billing not in get_args(CancelBilling):
            allowed = " | ".join(get_args(CancelBilling))
            raise SettingError("cancel_billing", self.cancel_billing, allowed, fix='leave it out for "unknown"')


def billing_of(provider_url: str | None, over: Mapping[str, object], cancel_billing: CancelBilling) -> TargetBilling:
    """How a target bills that lays `over` over the body: a model or a tier that it names there is what it is asked for."""
    model, tier = over.get("model"), over.get("service_tier") or over.get("serviceTier")
    return TargetBilling(
        provider_url=provider_url,
        model=model if isinstance(model, str) else None,
        service_tier=tier if isinstance(tier, str) else None,
        cancel_billing=cancel_billing,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """What a request cost. None = unknown. `attempts` in the event's order; `winner` None too where there is none.

    `headline_usd`: the one figure to show or to charge, by each target's `cancel_billing`. `source`: where the prices come
    from and what is unsure of it, None where nothing had to be priced.
    """

    attempts: tuple[Bounds | None, ...]
    total: Bounds | None
    winner: Bounds | None
    headline_usd: float | None
    source: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Item:
    """One attempt's line. `headline_usd` None: unknown."""

    bounds: Bounds | None = None
    headline_usd: float | None = None
    source: str | None = None


FREE = _Item(bounds=NOTHING, headline_usd=0.0)
ELSEWHERE = TargetBilling()

enter = object.__setattr__  # into a frozen record


def price_event(event: Event, book: PriceBook, *, targets: Mapping[str, TargetBilling], usual: Usual) -> None:
    """Fill in an event's costs: cost_low_usd, cost_high_usd of attempts and request, winner_cost_usd, price_source.

    targets: by the names that attempts use. usual: the key's lengths and pace, Usual() if unknown. A target that is not
    named is priced by its model's name alone. Only for who has just made the event: it is filled in, since a copy of so many
    fields would cost more than pricing it.
    """
    bill = bill_of(event, book, targets=targets, usual=usual)
    for attempt, cost in zip(event.attempts, bill.attempts, strict=True):
        _enter_bounds(attempt, cost)
    _enter_bounds(event, bill.total)
    enter(event, "winner_cost_usd", bill.winner.high_usd if bill.winner is not None else None)
    enter(event, "price_source", bill.source)


def bill_of(event: Event, book: PriceBook, *, targets: Mapping[str, TargetBilling], usual: Usual) -> Bill:
    """What the request cost, attempt by attempt; the arguments are those of `price_event`."""
    ledger = _Ledger(event=event, book=book, usual=usual)
    items = tuple(ledger.item(each, targets.get(each.target, ELSEWHERE)) for each in event.attempts)
    whole = total(item.bounds for item in items)
    headlines = [item.headline_usd for item in items]
    won = (item.bounds for item, each in zip(items, event.attempts, strict=True) if each.attempt == event.winner)
    return Bill(
        attempts=tuple(item.bounds for item in items),
        total=whole,
        winner=next(won, None),
        headline_usd=sum(each or 0.0 for each in headlines) if None not in headlines else None,
        source="; ".join(dict.fromkeys(_notes(items))) or None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ledger:
    """One request, while its attempts are priced one by one."""

    event: Event
    book: PriceBook
    usual: Usual

    def item(self, attempt: AttemptEvent, target: TargetBilling) -> _Item:
        manner = billed(attempt, self.event)
        if manner is Billed.NOTHING:
            return FREE
        usage = usage_of(attempt, self.event)
        if manner is not Billed.USAGE and not usage.input_tokens:
            return _Item(source="tokens unknown")
        price, name = self._price(attempt, target, usage.input_tokens)
        if price is None:
            return _Item(source=f"price of {name!r} unknown" if name else "model unknown")
        if manner is Billed.USAGE:
            return _item(winner_cost(price, usage), price)
        if manner is Billed.ANSWER:
            return self._guessed(attempt, price, usage)
        return self._partial(attempt, target, price, manner)

    def _price(
        self, attempt: AttemptEvent, target: TargetBilling, input_tokens: int
    ) -> tuple[Price | None, str | None]:
        asked = target.model or self.event.model
        winner = winner_of(self.event)
        twin = winner if winner is not None and winner.target == attempt.target else attempt
        name = attempt.model or twin.model or asked
        if name is None:
            return None, None
        price = self.book.price(
            name,
            provider_url=target.provider_url,
            service_tier=attempt.service_tier or twin.service_tier or target.service_tier,
            input_tokens=input_tokens,
            at=self.event.at,
            asked_as=asked,
        )
        return price, name

    def _guessed(self, attempt: AttemptEvent, price: Price, usage: Usage) -> _Item:
        """A whole answer by its length; one of which nothing was seen is unknown, unless only its input costs."""
        if not usage.output_tokens and price.output_usd > 0:
            return _Item(source="tokens unknown")
        hidden = cut_of(attempt, self.event).hidden_reasoning
        return _item(replace(winner_cost(price, usage), kind=Kind.ESTIMATED, hidden_reasoning=hidden), price)

    @property
    def _streamed(self) -> bool:
        return self.event.stream or self.event.upstream_stream

    def _partial(self, attempt: AttemptEvent, target: TargetBilling, price: Price, manner: Billed) -> _Item:
        """A loser, and whatever else ended like one."""
        winner = winner_of(self.event)
        winner_tokens = None
        if winner is not None and winner is not attempt:
            winner_tokens = winner.tokens_seen if winner.output_tokens is None else winner.output_tokens
        usual = _paced(self.usual, self.event)
        cost = loser_bounds(price, cut_of(attempt, self.event), usual, winner_tokens=winner_tokens)
        billing = target.cancel_billing
        if attempt.outcome == "abandoned" or (billing == "so_far" and not self._streamed):
            billing = "full"  # what was not cancelled ran to its end, and what is not a stream is not made in parts
        if manner is Billed.REFUSAL:
            cost, billing = _from_nothing(cost), "so_far"  # an error is as a rule not billed
        elif billing == "none":
            cost = _from_nothing(cost)
        return _Item(bounds=cost.bounds, headline_usd=cost.headline_usd(billing), source=price.source)


def _item(cost: Bounds, price: Price) -> _Item:
    return _Item(bounds=cost, headline_usd=cost.high_usd, source=price.source)


def _paced(usual: Usual, event: Event) -> Usual:
    """With a pace: the key's, else the one the rule used, else the winner's own."""
    winner = winner_of(event)
    own_s = None
    if winner is not None and winner.first_token_s is not None and winner.ended_s is not None:
        tokens = winner.output_tokens or winner.tokens_seen
        own_s = (winner.ended_s - winner.first_token_s) / tokens if tokens else None
    if own_s is not None and own_s < FASTEST_TOKEN_S:
        own_s = None
    return replace(usual, token_s=usual.token_s or event.tau_s or own_s)


def _from_nothing(cost: LoserCost) -> LoserCost:
    return replace(cost, low_usd=0.0)


def _notes(items: tuple[_Item, ...]) -> Iterator[str]:
    """Sources first, in the order of the attempts, then what is unsure."""
    yield from (item.source for item in items if item.source is not None)
    known = [item.bounds for item in items if item.bounds is not None]
    if any(bounds.kind is Kind.ESTIMATED for bounds in known):
        yield ESTIMATED
    if any(bounds.hidden_reasoning for bounds in known):
        yield HIDDEN_REASONING


def _enter_bounds(record: AttemptEvent | Event, cost: Bounds | None) -> None:
    enter(record, "cost_low_usd", None if cost is None else cost.low_usd)
    enter(record, "cost_high_usd", None if cost is None else cost.high_usd)
