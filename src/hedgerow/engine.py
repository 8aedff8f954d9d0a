"""request → classify → plan → race → commit / cancel → record → tune: that sentence, in code."""

import asyncio
import os
import socket
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime
from random import Random

from hedgerow.call_context import current_context
from hedgerow.clock import Clock, SystemClock
from hedgerow.dialects.base import Dialect, StreamingDialect
from hedgerow.dialects.registry import dialect_for
from hedgerow.errors import UnsupportedError
from hedgerow.policy.gate import Place
from hedgerow.policy.pilot import Flight, Pilot
from hedgerow.policy.plan import Caller
from hedgerow.policy.snapshot import remember, snapshot_of
from hedgerow.race.attempt import UNREADABLE
from hedgerow.race.driver import Race
from hedgerow.race.order import Order
from hedgerow.race.referee import RaceSeen
from hedgerow.race.stream import Delivery
from hedgerow.race.upstream import Call
from hedgerow.record.books import Books
from hedgerow.record.filing import Filing
from hedgerow.record.history import CLIENT, Circumstances, Origin
from hedgerow.record.memory import MemoryStore
from hedgerow.record.recorder import Hook, Recorder, Store
from hedgerow.record.state import StateFile
from hedgerow.retry_ledger import Ledger
from hedgerow.settings import Policy
from hedgerow.statistics.shares import put_bounded
from hedgerow.umpire import Umpire
from hedgerow.units import parse_share
from hedgerow.values.event import Event
from hedgerow.values.failure import Repeats
from hedgerow.values.race import Fate
from hedgerow.values.request import RequestFacts, StreamedRequest, WireRequest

__all__ = ["Hedger"]

MOST_MODELS = 1_000  # of which it is known how they stream
MOST_PLANS = 200  # that are counted by their full name
REFUSED_STREAM = frozenset({400, 422})
MOST_UNREADABLE = 2  # streams from one model: after that its answers are asked for whole again
POLL_S, MOST_POLLS = 0.002, 2_000


class Hedger:
    """Hedges calls under one policy: owns the budget, the statistics and the record. Shared by all tasks of its clients;
    not for several threads at once.

    places: where calls may go; 0 is the caller's own endpoint, the others are backup targets in order of preference. origin:
    what events say of the hedger itself.
    """

    def __init__(
        self,
        policy: Policy,
        places: tuple[Place, ...],
        *,
        clock: Clock | None = None,
        store: Store | None = None,
        state: str | os.PathLike[str] | None = None,
        books: Books | None = None,
        random: Random | None = None,
        origin: Origin = CLIENT,
    ) -> None:
        self.policy, self.places = policy, places
        self.clock = clock or SystemClock()
        self._store = MemoryStore() if store is None else store
        self.pilot = Pilot(policy, places)
        self._state = None if state is None else StateFile(state, self.clock)
        if self._state is not None and not self._state.load(self.pilot):
            self.pilot = Pilot(policy, places)
        self.recorder = Recorder(self._store)
        self.counts: Counter[str] = Counter()
        self.plans: Counter[str] = Counter()
        self._origin = replace(origin, source=origin.source or f"{socket.gethostname()}:{os.getpid()}")
        self._open: set[RaceSeen] = set()
        # Who answered 400 to a stream that was not asked for, and whose streams could not be read how often. Models are the
        # callers' to name.
        self._never_streamed: dict[tuple[str, str | None], bool] = {}
        self._unreadable: dict[tuple[str, str | None], int] = {}
        self.books = books or Books((), {})
        self._filing = Filing(self, self.books, self.recorder)
        self._random = random or Random()
        self._closed = False

    async def send(
        self,
        request: WireRequest,
        call: Call,
        *,
        sdk_retry: int = 0,
        retried_above: Repeats | bool = False,
        ledger: Ledger | None = None,
        obstacle: str | None = None,
        places: tuple[Place, ...] | None = None,
        facts: RequestFacts | None = None,
    ) -> Delivery:
        """Send one request, hedged if its plan allows; the response returned must be read to its end or closed.

        sdk_retry: how often the SDK has tried it before; retried_above: it will again, after which failures (True = as OpenAI's
        and Anthropic's do); ledger: what those tries have cost. obstacle: why it cannot be sent twice, None if it can. places:
        where this one may go, None = as the others. facts: what its dialect read in it, if somebody has asked already. Raises
        what the call itself would raise without hedging.
        """
        elapsed_s = self._since_first_try(ledger)
        if self.policy.timeout_s is not None and elapsed_s >= self.policy.timeout_s:
            raise call.deadline_error(f"timeout_s = {self.policy.timeout_s:g} s is over, tries of the SDK included")
        dialect = dialect_for(request)
        facts = facts or dialect.facts(request)
        whole = _whole_of(dialect, request, facts) if self.policy.upstream_stream else None
        if whole is not None and (facts.dialect, facts.model) in self._never_streamed:
            whole = None
        order = Order(dialect=dialect, facts=facts, as_stream=whole)
        repeats = (Repeats() if retried_above else None) if isinstance(retried_above, bool) else retried_above
        caller = self._caller(sdk_retry, obstacle, ledger, elapsed_s, repeats)
        race = self._race(call, order, caller, places)
        delivery = await self._entered(race, ledger, facts)
        if whole is None or not self._refused(race, delivery):
            return delivery
        put_bounded(self._never_streamed, (facts.dialect, facts.model), True, MOST_MODELS)
        return await self._entered(self._race(call, replace(order, as_stream=None), caller, places), ledger, facts)

    @property
    def events(self) -> Iterable[Event]:
        """The store, with everything written that is over. The events of a call are otherwise written one turn of the loop
        after its answer, since no answer should wait for them."""
        self._filing.write()
        return self._store

    def subscribe(self, hook: Hook) -> Callable[[], None]:
        """Call `hook` with the Event of every request once it is over and closed; the function returned ends that."""
        return self.recorder.subscribe(hook)

    def stats(self) -> dict[str, object]:
        """Counters since the start, live quantiles per key (seconds), and the budget. JSON-ready; a copy."""
        bucket, steer = self.pilot.gate.bucket, self.pilot.controller
        return {
            "requests": self.counts["requests"],
            "in_flight": len(self._open),
            "outcomes": {name: self.counts[name] for name in ("answered", "failed", "caller_left", "deadline")},
            "plans": dict(self.plans),
            "refusals": dict(self.pilot.gate.refusals),
            "backups": self.counts["backups"],
            "backup_wins": self.counts["backup_wins"],
            "requests_with_backup": self.counts["requests_with_backup"],
            "requests_with_cancelled_loser": self.counts["requests_with_cancelled_loser"],
            "losers_open": self.losers_open,
            "budget": None
            if bucket is None
            else {
                "share": bucket.share,
                "requests": bucket.requests,
                "bucket": bucket.level,
                "losing_backups": bucket.losing,
            },
            "steering": {
                "d_per_b": steer.d_per_b,
                "inflation": steer.inflation,
                "win_rate": steer.win_rate,
                "wanted_share": steer.wanted_share,
            },
            "keys": [
                {
                    **{name: getattr(key, name) for name in key.__slots__},
                    "n": known.requests,
                    "first_token": known.first_tokens.summary(),
                    "full_response": known.responses.summary(),
                }
                for key, known in self.pilot.statistics
            ],
        }

    @property
    def losers_open(self) -> int:
        """Cancelled attempts whose connection is not closed yet."""
        attempts = [attempt for race in self._open for attempt in race.attempts]
        return sum(attempt.cancelled_s is not None and attempt.closed_s is None for attempt in attempts)

    def take_over(self, before: "Hedger") -> None:
        """Go on with what a hedger under other settings has learnt, and with its state file, which that no longer writes."""
        now_s = self.clock.now()
        remember(self.pilot, snapshot_of(before.pilot, now_s, clean=not before._open), now_s)
        self._state, before._state = before._state, None

    def close(self) -> None:
        """From now on calls go through unhedged; hooks end and the store is closed. Idempotent."""
        self._filing.write()
        if self._state is not None and not self._closed:
            self._state.save(self.pilot, clean=not self._open)
        self._closed = True
        self.recorder.close()

    async def aclose(self) -> None:
        """Wait until every loser is closed and recorded, at most some seconds, then close()."""
        for _ in range(MOST_POLLS):
            if not self.losers_open:
                break
            await asyncio.sleep(POLL_S)
        self.close()

    def _since_first_try(self, ledger: Ledger | None) -> float:
        """Seconds since the SDK first tried this request; 0 at that try."""
        if ledger is None:
            return 0.0
        now_s = self.clock.now()
        if ledger.began_s is None:
            ledger.began_s = now_s
        return now_s - ledger.began_s

    def _caller(
        self, sdk_retry: int, obstacle: str | None, ledger: Ledger | None, elapsed_s: float, repeats: Repeats | None
    ) -> Caller:
        said = current_context()
        return Caller(
            at=self.clock.utc() if self.policy.hours else None,
            segment=said.segment,
            client_key=said.client_key,
            deadline_s=said.deadline_s,
            hedge=said.hedge,
            sdk_retry=sdk_retry,
            retried_above=repeats,
            spent=None if ledger is None else ledger.backups,
            elapsed_s=elapsed_s,
            obstacle="closed" if self._closed else obstacle,
            control=self._random.random() < parse_share(self.policy.control_share),
        )

    def _race(self, call: Call, order: Order, caller: Caller, places: tuple[Place, ...] | None) -> Race:
        """Plan a race and count it. What may not be hedged anyway goes as the caller wrote it."""
        streamed, now_s = order.as_stream is not None, self.clock.now()
        flight = self.pilot.prepare(order.facts, caller, places=places, streamed=streamed, now_s=now_s)
        if streamed and not flight.plan.counted:
            order = replace(order, as_stream=None)
            flight = self.pilot.prepare(order.facts, caller, places=places, now_s=now_s)
        at = self.clock.utc()
        self._price(flight, at)
        seen = Circumstances(
            at=at,
            origin=self._origin,
            flight=flight,
            said=current_context(),
            sdk_retry=caller.sdk_retry,
        )
        umpire = Umpire(self.pilot, flight, self.clock, self._random, lambda race: self._file_away(race, seen))
        race = Race(call, flight.plan.rules, order, clock=self.clock, referee=umpire)
        self._begin(race, flight)
        return race

    def _price(self, flight: Flight, at: datetime) -> None:
        """Prices in input tokens of the primary: what the controller needs are ratios."""
        books, places, model = self.books, flight.places, flight.facts.model
        home = places[0].name
        flight.price_in, flight.price_out = 1.0, books.output_ratio(home, model, at)
        if len(places) > 1:
            flight.price_at = lambda target: books.prices_at(places[target].name, home, model, at)

    async def _entered(self, race: Race, ledger: Ledger | None, facts: RequestFacts) -> Delivery:
        """Runs a race, enters what it took in the request's ledger, and notes whose streams cannot be read."""
        try:
            return await race.run()
        finally:
            if ledger is not None:
                ledger.attempts += len(race.attempts)
                ledger.backups += max(0, len(race.attempts) - 1)
            if race.order.as_stream is not None and any(attempt.broken == UNREADABLE for attempt in race.attempts):
                asked = (facts.dialect, facts.model)
                put_bounded(self._unreadable, asked, self._unreadable.get(asked, 0) + 1, MOST_MODELS)
                if self._unreadable[asked] >= MOST_UNREADABLE:
                    put_bounded(self._never_streamed, asked, True, MOST_MODELS)

    def _refused(self, race: Race, delivery: Delivery) -> bool:
        """Did the provider object to the stream that we asked for in the caller's stead? Then nobody hears of this race."""
        dialect, failed = race.order.dialect, race.outcome == "failed"
        if not failed or delivery.status not in REFUSED_STREAM or not isinstance(dialect, StreamingDialect):
            return False
        body = b"".join(race.attempts[race.chosen or 0].chunks)
        if not dialect.refuses_streaming(delivery.status, body):
            return False
        self._filing.forget(race)
        self.counts.subtract(("requests", "failed"))
        return True

    def _begin(self, race: Race, flight: Flight) -> None:
        try:
            asyncio.current_task()
        except RuntimeError:
            message = "hedgerow runs on asyncio; this call comes from another event loop (trio?): use asyncio here"
            raise UnsupportedError(message) from None
        self.counts["requests"] += 1
        verdict = flight.plan.verdict
        if verdict not in self.plans and len(self.plans) >= MOST_PLANS:
            verdict = verdict.partition(":")[0]  # field names are the callers'
        self.plans[verdict] += 1
        self._open.add(race)
        self.pilot.began(flight)

    def _save_sometimes(self) -> None:
        if self._state is not None and not self._closed:
            self._state.save_sometimes(self.pilot)

    def _file_away(self, race: RaceSeen, seen: Circumstances) -> None:
        """The last word: count it, let go of it, and have it written down soon."""
        self._filing.add(race, seen, self._save_sometimes)
        self._open.discard(race)
        backups = len(race.attempts) - 1
        won = race.outcome == "answered" and bool(race.chosen)
        self.counts[race.outcome or "failed"] += 1
        self.counts["backups"] += backups
        self.counts["backup_wins"] += won
        self.counts["requests_with_backup"] += backups > 0
        self.counts["requests_with_cancelled_loser"] += any(
            entrant.fate is Fate.LOST for entrant in race.state.entrants
        )


def _whole_of(dialect: Dialect, request: WireRequest, facts: RequestFacts) -> StreamedRequest | None:
    """What asks for a whole answer as a stream; None if the caller streams, or it cannot be asked for so."""
    if facts.stream or request.body is None or not isinstance(dialect, StreamingDialect):
        return None
    streamed = dialect.streamed(request)
    return StreamedRequest(body=streamed) if isinstance(streamed, bytes) else streamed
