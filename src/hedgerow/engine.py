"""request → classify → plan → race → commit / cancel → record → tune: that sentence, in code."""

import asyncio
import logging
import os
import socket
from collections import Counter, deque
from collections.abc import Callable, Iterable
from datetime import datetime

from hedgerow.clock import Clock, SystemClock
from hedgerow.dialects.registry import dialect_for
from hedgerow.errors import UnsupportedError
from hedgerow.policy.gate import Gate, Permit, Place
from hedgerow.policy.plan import Plan, make_plan
from hedgerow.policy.trouble import Outlook
from hedgerow.race.driver import Race
from hedgerow.race.signals import Ask
from hedgerow.race.state import CommitOn, Entrant, Fate
from hedgerow.race.stream import Delivery
from hedgerow.race.upstream import Call
from hedgerow.record.history import Circumstances, event_of
from hedgerow.record.memory import MemoryStore
from hedgerow.record.recorder import Hook, Recorder, Store
from hedgerow.settings import Policy
from hedgerow.statistics.registry import ENOUGH, KeyStatistics, Registry
from hedgerow.units import parse_delay, parse_window
from hedgerow.values.event import Event
from hedgerow.values.failure import Failure
from hedgerow.values.request import Key, WireRequest

__all__ = ["Hedger"]

POLL_S, MOST_POLLS = 0.002, 2_000

log = logging.getLogger("hedgerow")


class Hedger:
    """Hedges calls under one policy: owns the budget, the statistics and the record. Shared by all tasks of its clients;
    not for several threads at once.

    places: where calls may go; 0 is the caller's own endpoint, the others are backup targets in order of preference.
    """

    def __init__(
        self, policy: Policy, places: tuple[Place, ...], *, clock: Clock | None = None, store: Store | None = None
    ) -> None:
        self.policy, self.places = policy, places
        self.clock = clock or SystemClock()
        self._store = MemoryStore() if store is None else store
        self.gate = Gate(policy, places)
        self.statistics = Registry(parse_window(policy.window))
        self.recorder = Recorder(self._store)
        self.counts: Counter[str] = Counter()
        self.plans: Counter[str] = Counter()
        self.source = f"{socket.gethostname()}:{os.getpid()}"
        self._delay = parse_delay(policy.delay)
        self._open: set[Race] = set()
        self._unwritten: deque[tuple[Race, Circumstances]] = deque()
        self._closed = False

    async def send(
        self, request: WireRequest, call: Call, *, sdk_retry: int = 0, obstacle: str | None = None
    ) -> Delivery:
        """Send one request, hedged if its plan allows; the response returned must be read to its end or closed.

        sdk_retry: how often the SDK has tried it before. obstacle: why it cannot be sent twice, None if it can. Raises what
        the call itself would raise without hedging.
        """
        dialect = dialect_for(request)
        facts = dialect.facts(request)
        key = Key.of(facts, self.places[0].name)
        known = self.statistics.of(key)
        warm = self.outlook(known).delay_s is not None
        obstacle = "closed" if self._closed else obstacle
        plan = make_plan(facts, self.policy, warm=warm, sdk_retry=sdk_retry, obstacle=obstacle)
        umpire = _Umpire(self, plan, key, known, sdk_retry)
        race = Race(call, plan.rules, dialect=dialect, facts=facts, clock=self.clock, referee=umpire)
        self._begin(race, plan)
        return await race.run()

    def outlook(self, known: KeyStatistics) -> Outlook:
        """What is late for a key at this moment. A fixed delay needs no samples; a quantile needs 20."""
        if self.policy.trigger == "off":
            return Outlook()
        if self._delay.quantile is None:
            return Outlook(delay_s=self._delay.offset_s)
        ring = known.first_tokens if self.policy.trigger == "first_token" else known.responses
        usual_s = ring.quantile(self._delay.quantile, self.clock.now())
        return Outlook(delay_s=None if usual_s is None or len(ring) < ENOUGH else usual_s + self._delay.offset_s)

    @property
    def events(self) -> Iterable[Event]:
        """The store, with everything written that is over. The events of a call are otherwise written one turn of the loop
        after its answer, since no answer should wait for them."""
        self._write()
        return self._store

    def subscribe(self, hook: Hook) -> Callable[[], None]:
        """Call `hook` with the Event of every request once it is over and closed; the function returned ends that."""
        return self.recorder.subscribe(hook)

    def stats(self) -> dict[str, object]:
        """Counters since the start, live quantiles per key (seconds), and the budget. JSON-ready; a copy."""
        bucket = self.gate.bucket
        return {
            "requests": self.counts["requests"],
            "in_flight": len(self._open),
            "outcomes": {name: self.counts[name] for name in ("answered", "failed", "caller_left", "deadline")},
            "plans": dict(self.plans),
            "refusals": dict(self.gate.refusals),
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
            "keys": [
                {
                    **{name: getattr(key, name) for name in key.__slots__},
                    "n": known.requests,
                    "first_token": known.first_tokens.summary(),
                    "full_response": known.responses.summary(),
                }
                for key, known in self.statistics
            ],
        }

    @property
    def losers_open(self) -> int:
        """Cancelled attempts whose connection is not closed yet."""
        attempts = [attempt for race in self._open for attempt in race.attempts]
        return sum(attempt.cancelled_s is not None and attempt.closed_s is None for attempt in attempts)

    def close(self) -> None:
        """From now on calls go through unhedged; hooks end and the store is closed. Idempotent."""
        self._closed = True
        self._write()
        self.recorder.close()

    async def aclose(self) -> None:
        """Wait until every loser is closed and recorded, at most some seconds, then close()."""
        for _ in range(MOST_POLLS):
            if not self.losers_open:
                break
            await asyncio.sleep(POLL_S)
        self.close()

    def _begin(self, race: Race, plan: Plan) -> None:
        try:
            asyncio.current_task()
        except RuntimeError:
            message = "hedgerow runs on asyncio; this call comes from another event loop (trio?): use asyncio here"
            raise UnsupportedError(message) from None
        self.counts["requests"] += 1
        self.plans[plan.verdict] += 1
        self._open.add(race)
        if plan.counted:
            self.gate.admit()

    def _write(self) -> None:
        while self._unwritten:
            self.recorder.record(event_of(*self._unwritten.popleft()))

    def file_away(self, race: Race, seen: Circumstances) -> None:
        """The umpire's last word: count it, let go of it, and have it written down soon."""
        if not self._unwritten:
            asyncio.get_running_loop().call_soon(self._write)
        self._unwritten.append((race, seen))
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


class _Umpire:
    """The referee of one race: asks the gate, feeds the statistics, writes the event."""

    def __init__(self, hedger: Hedger, plan: Plan, key: Key, known: KeyStatistics, sdk_retry: int) -> None:
        self._hedger, self._plan, self._key, self._known, self._sdk_retry = hedger, plan, key, known, sdk_retry
        self._at: datetime = hedger.clock.utc()
        self._refusal: str | None = None
        self._delay_s: float | None = None
        self._bucket: float | None = None

    def outlook(self) -> Outlook:
        return self._hedger.outlook(self._known)

    def ask(self, race: Race, ask: Ask) -> Permit:
        gate = self._hedger.gate
        if self._delay_s is None:
            self._delay_s = self.outlook().delay_s
            self._bucket = None if gate.bucket is None else gate.bucket.level
        permit = gate.ask(ask, race.state.entrants, self._key, self._hedger.clock.now())
        self._refusal = self._refusal or permit.refusal
        return permit

    def failed(self, entrant: Entrant, failure: Failure) -> None:
        if self._hedger.gate.note_failure(entrant, self._key, failure, self._hedger.clock.now()):
            name = self._hedger.places[entrant.target].name
            log.warning("backups to %s fail with %s (%s): check its settings", name, failure.status, failure.error)

    def decided(self, race: Race) -> None:
        if self._plan.counted:
            self._hedger.gate.decided()
        if race.chosen is None or race.state.rules.commit_on is CommitOn.HEADERS:
            return
        attempt = race.attempts[race.chosen]
        if attempt.reader is not None and attempt.reader.facts.failure is None and attempt.reader.facts.content:
            # From the primary's start, whoever won: dropping the losers' times would make the quantile drift.
            self._known.requests += 1
            self._known.first_tokens.add(self._age_of(race), self._hedger.clock.now())

    def over(self, race: Race) -> None:
        answered = race.outcome == "answered"
        if self._plan.counted:
            self._hedger.gate.settle(race.state, answered=answered, observed=self._refusal == "observe")
        if (
            answered
            and race.chosen is not None
            and (reader := race.attempts[race.chosen].reader)
            and reader.facts.valid
        ):
            self._known.responses.add(self._age_of(race), self._hedger.clock.now())

    def finished(self, race: Race) -> None:
        hedger = self._hedger
        seen = Circumstances(
            at=self._at,
            source=hedger.source,
            plan=self._plan,
            target_names=tuple(place.name for place in hedger.places),
            sdk_retry=self._sdk_retry,
            refusal=self._refusal if len(race.attempts) == 1 else None,
            delay_s=self._delay_s,
            bucket=self._bucket,
        )
        hedger.file_away(race, seen)

    def _age_of(self, race: Race) -> float:
        """Seconds since the primary got its connection: waiting for one says nothing about the provider."""
        connected_s = race.attempts[0].connected_s
        return self._hedger.clock.now() - (race.state.began_s if connected_s is None else connected_s)
