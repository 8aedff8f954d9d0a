"""What the public functions take beyond a client, and the Hedger that it makes."""

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike

from hedgerow.clock import Clock
from hedgerow.cost.ledger import TargetBilling, billing_of
from hedgerow.cost.prices import PriceRule
from hedgerow.engine import Hedger
from hedgerow.record.books import Books
from hedgerow.record.recorder import Store
from hedgerow.record.store_urls import store_of
from hedgerow.settings import Policy, Target
from hedgerow.transports.targets import Home, home_place, place_of

__all__ = ["Hedging"]

UNKNOWN_HOME = Home()


@dataclass(frozen=True, slots=True, kw_only=True)
class Hedging:
    """What the public functions take beyond the client: see hedgerow.hedged."""

    policy: Policy | None = None
    backup: Target | Sequence[Target] | None = None
    events: Store | str | None = None
    state: str | PathLike[str] | None = None
    prices: Sequence[PriceRule] = ()
    clock: Clock | None = None

    @property
    def targets(self) -> tuple[Target, ...]:
        """The backup targets."""
        backup = self.backup
        return () if backup is None else (backup,) if isinstance(backup, Target) else tuple(backup)

    def hedger(self, *, name: str = "primary", home: Home = UNKNOWN_HOME) -> Hedger:
        """A Hedger for a client that sends to `home`, which events call `name`."""
        targets = self.targets
        places = (
            home_place(home, name),
            *(place_of(each, number, home) for number, each in enumerate(targets, start=1)),
        )
        billing = {
            place.name: billing_of(each.base_url or home.base_url, each.set, each.cancel_billing)
            for place, each in zip(places[1:], targets, strict=True)
        }
        books = Books(self.prices, {name: TargetBilling(provider_url=home.base_url), **billing})
        policy = self.policy or Policy()
        return Hedger(policy, places, clock=self.clock, store=store_of(self.events), state=self.state, books=books)
