"""All that a configuration comes to while it is in force: routes, hedgers, client keys, connections, the store.

A reload builds a new one; what has not changed moves over, and calls under way end where they began.
"""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from hedgerow.clock import Clock, SystemClock
from hedgerow.cost.ledger import billing_of
from hedgerow.engine import Hedger
from hedgerow.gateway.bodies import BodyFile, body_file_beside
from hedgerow.gateway.client_keys import Keyring
from hedgerow.gateway.config import Config
from hedgerow.gateway.connections import Connections
from hedgerow.gateway.held import HeldAll
from hedgerow.gateway.logs import log_request
from hedgerow.gateway.origins import Origins
from hedgerow.gateway.routes import Routes
from hedgerow.policy.gate import Place
from hedgerow.record.batches import BatchedStore
from hedgerow.record.books import Books
from hedgerow.record.history import Origin
from hedgerow.record.recorder import Store
from hedgerow.record.sqlite_store import SqliteStore
from hedgerow.record.store_urls import store_of
from hedgerow.values.event import Event

__all__ = ["House", "Worker"]

LOOK_AGAIN_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """Which of the gateway's processes this is: budgets and limits are shared out among `of` of them."""

    number: int = 0
    of: int = 1
    clock: Clock = field(default_factory=SystemClock)


class House:
    """One configuration in force in one worker. Belongs to one event loop."""

    def __init__(self, config: Config, worker: Worker, before: "House | None" = None) -> None:
        self.config, self.worker, self.clock = config, worker, worker.clock
        self.keyring = Keyring(share=1 / worker.of, clock=worker.clock) if before is None else before.keyring
        same_store = before is not None and before.config.gateway.events == config.gateway.events
        self.store = before.store if before is not None and same_store else store_of(config.gateway.events)
        self.bodies = BodyFile(body_file_beside(config.gateway.events)) if config.gateway.record_bodies else None
        self.connections = Connections(worker.clock) if before is None else before.connections
        self.hedgers: Mapping[str, Hedger] = {name: self._hedger(name, before) for name in config.policies}
        self.held = HeldAll() if before is None else before.held
        self.routes, self.origins = Routes(config, self.hedgers), Origins(config)
        self.keyring.renew(config.client_keys)
        if before is None and isinstance(self.store, SqliteStore):
            self.keyring.remember(self.store)

    async def leave_to(self, after: "House") -> None:
        """Another house has taken over: end what it has not, once the calls under way are over."""
        for name, hedger in self.hedgers.items():
            if after.hedgers.get(name) is not hedger:
                while hedger.stats()["in_flight"]:
                    await asyncio.sleep(LOOK_AGAIN_S)
                await hedger.aclose()
        if after.store is not self.store:
            self.store.close()
        if self.bodies is not None:
            self.bodies.close()

    async def close(self) -> None:
        """Nothing more will come: close losers, connections and the store."""
        for hedger in self.hedgers.values():
            await hedger.aclose()
        await self.connections.close()
        self.store.close()
        if self.bodies is not None:
            self.bodies.close()

    @property
    def unwritable(self) -> dict[str, int]:
        """What this process has dropped since it could not be written as it was."""
        events = self.store.unwritable if isinstance(self.store, BatchedStore) else 0
        return {"events": events, "bodies": 0 if self.bodies is None else self.bodies.unwritable}

    def _hedger(self, name: str, house: "House | None") -> Hedger:
        """A policy's hedger: that of the house before if nothing has changed for it, else a new one that remembers what that
        knew."""
        before = None if house is None else house.hedgers.get(name)
        if before is not None and house is not None and _alike(self.config, house.config, name):
            return before
        hedger = self._new_hedger(name, None if before is not None else self._state_file(name))
        bucket = hedger.pilot.gate.bucket
        if before is not None:
            hedger.take_over(before)
        elif bucket is not None and not bucket.requests:
            bucket.level /= self.worker.of
        hedger.subscribe(self.keyring.spent)
        hedger.subscribe(log_request)
        return hedger

    def _new_hedger(self, name: str, state: Path | None) -> Hedger:
        targets = self.config.targets
        billing = {
            name: billing_of(str(each.base_url), each.set, each.cancel_billing) for name, each in targets.items()
        }
        books = Books(self.config.prices, billing)
        books.load()  # now, while nobody waits for an answer
        return Hedger(
            self.config.policies[name],
            (Place(name=next(iter(targets))),),
            clock=self.clock,
            store=_Lent(self.store),
            state=state,
            books=books,
            origin=Origin(policy=name, measured_at="gateway"),
        )

    def _state_file(self, name: str) -> Path | None:
        folder = self.config.gateway.state
        if folder is None:
            return None
        Path(folder).mkdir(parents=True, exist_ok=True)
        file = f"{quote(name, safe=' ')}.{self.worker.number}-of-{self.worker.of}.json"  # a name may hold / and worse
        return Path(folder) / file


class _Lent:
    """The house's store as one of its hedgers has it: the house closes it."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __iter__(self) -> Iterator[Event]:
        return iter(self._store)

    def append(self, event: Event) -> None:
        self._store.append(event)

    def close(self) -> None:
        """Others write to it still."""


def _alike(after: Config, before: Config, policy: str) -> bool:
    """Is all the same that a hedger of this policy was made of?"""
    return (
        after.policies[policy] == before.policies[policy]
        and after.targets == before.targets
        and after.prices == before.prices
        and (after.gateway.events, after.gateway.state) == (before.gateway.events, before.gateway.state)
    )
