"""Prices events when they are written, and tells the pilot what output costs against input. Trouble with it costs no call."""

import logging
import os
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib import import_module
from threading import Lock

from hedgerow.cost.bounds import Usual
from hedgerow.cost.counted import counted_usd
from hedgerow.cost.ledger import TargetBilling, price_event
from hedgerow.cost.price import Price
from hedgerow.cost.prices import PriceBook, PriceRule
from hedgerow.statistics.key import KeyStatistics
from hedgerow.values.event import Event
from hedgerow.values.set_aside import SetAside

__all__ = ["Books"]

UNKNOWN = TargetBilling()
FORK_PATIENCE_S = 10.0  # that a fork waits for what is being loaded; this takes some 0.2 s
UNPRICED_RATIO = 4.0  # output costs about so many times as much as input where nobody knows better

log = logging.getLogger("hedgerow")


class Books:
    """One Hedger's price book. targets: how each target bills, by the name events use."""

    def __init__(self, prices: Sequence[PriceRule], targets: Mapping[str, TargetBilling]) -> None:
        self._book, self._targets = PriceBook(prices), targets
        self.ready = self._complained = False

    def load(self) -> None:
        """Load the public list: some 0.2 s of work, once; from any thread."""
        try:
            with _no_fork():
                public_list = import_module("hedgerow.cost.public_list")
                public_list.day_prices("gpt-4o", provider_url=None, tier=None, day=datetime.now(UTC).date())
        except Exception:  # logged: then only the user's own prices are known
            log.exception("the public price list cannot be loaded")
        finally:
            self.ready = True

    def output_ratio(self, target: str, model: str | None, at: datetime) -> float:
        """What an output token costs against an input token; a usual figure where it is not known, or not yet."""
        price = self._price(target, model, at)
        return price.output_usd / price.input_usd if price is not None and price.input_usd > 0 else UNPRICED_RATIO

    def prices_at(self, target: str, home: str, model: str | None, at: datetime) -> tuple[float, float]:
        """What an input and an output token cost at a target, in input tokens of the primary's; as there, where either price is
        not known, or not yet."""
        here, away = self._price(home, model, at), self._price(target, model, at)
        if here is None or away is None or here.input_usd <= 0:
            return 1.0, self.output_ratio(home, model, at)
        return away.input_usd / here.input_usd, away.output_usd / here.input_usd

    def most_usd(
        self, target: str, model: str | None, at: datetime, *, input_tokens: int, output_tokens: int
    ) -> float | None:
        """US dollars that a call of so many tokens costs at a target; None where its price is not known."""
        price = self._price(target, model, at, input_tokens)
        return None if price is None else price.input_usd * input_tokens + price.output_usd * output_tokens

    def _price(self, target: str, model: str | None, at: datetime, input_tokens: int = 0) -> Price | None:
        billing = self._targets.get(target, UNKNOWN)
        name = billing.model or model
        if not self.ready or name is None:
            return None
        url, tier = billing.provider_url, billing.service_tier
        return self._book.price(name, provider_url=url, service_tier=tier, input_tokens=input_tokens, at=at)

    def price(self, event: Event, known: KeyStatistics, set_aside: SetAside | None = None) -> None:
        """Fill in a new event's costs; none if they cannot be told. set_aside: of a client key's day, if that counts them."""
        if not self.ready:
            self.load()
        answers = known.answers
        usual = Usual(
            mean_output_tokens=known.mean_output if answers else None,
            q90_output_tokens=known.outputs.quantile(0.9),
            token_s=known.paces.quantile(0.5),
        )
        try:
            price_event(event, self._book, targets=self._targets, usual=usual)
        except Exception:  # logged once: the event is kept without its costs
            if not self._complained:
                self._complained = True
                log.exception("a request could not be priced")
        if set_aside is not None:
            object.__setattr__(event, "counted_usd", counted_usd(event, set_aside))  # made just now: nobody else has it


@cache
def _no_fork() -> Lock:
    """Hold it to import something in a thread that callers do not know of. A child forked meanwhile would inherit the import's
    lock without the thread that gives it back, and wait for it for ever, at its end at the latest: so forks wait instead."""
    importing, held = Lock(), list[bool]()

    def before() -> None:
        held.append(importing.acquire(timeout=FORK_PATIENCE_S))

    def after() -> None:
        if held.pop():
            importing.release()

    if sys.platform != "win32":
        os.register_at_fork(before=before, after_in_parent=after, after_in_child=after)
    return importing
