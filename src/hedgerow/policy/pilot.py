"""The rule of policy.md in one place, for one policy: what is normal, who may be backed up, and what is learnt from it.

Live calls and the simulator fly the same Pilot; time, prices and chance come in as arguments. The order of each step is that
of policy.md, "Readings" 2.
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import attrgetter

from hedgerow.budget.controller import Controller
from hedgerow.policy.gate import Gate, Permit, Place, Seen
from hedgerow.policy.plan import Caller, Limits, Plan, make_plan
from hedgerow.policy.trouble import NOTHING_LATE, Outlook
from hedgerow.settings import Policy, Prior
from hedgerow.statistics.key import ENOUGH, KeyStatistics
from hedgerow.statistics.queueing import QueueWatch
from hedgerow.statistics.registry import Registry
from hedgerow.statistics.ring import Ring
from hedgerow.units import parse_delay, parse_window
from hedgerow.values.failure import Failure
from hedgerow.values.race import Ask, CommitOn, Entrant, Fate, RaceState
from hedgerow.values.request import Key, RequestFacts

__all__ = ["Answer", "Flight", "Pilot"]

MIN_IDLE_S, IDLE_GAPS = 0.15, 5.0
SLOW_PACE = 1.3
LARGE_CACHE_TOKENS = 4096
SHORTEST_STALL_S, STALL_GAPS = 10.0, 20.0
NOBODY = Caller()


@dataclass(slots=True, kw_only=True)
class Flight:
    """One request under way. price_in, price_out: USD per token, or any unit, the same for all requests of the policy;
    price_at: the same two at a backup target, None = as at the primary's. places: where it may go, the primary's own first.

    owner: the client key whose request it is, if it has one.

    `known` is where it is learnt into, `usual` what it is judged by: a warm sibling's while its own key is cold.
    `wish` holds what the rule used when a backup was first wanted, for the record.
    """

    facts: RequestFacts
    places: tuple[Place, ...]
    key: Key
    known: KeyStatistics
    usual: KeyStatistics
    plan: Plan
    price_in: float = 1.0
    price_out: float = 4.0
    price_at: Callable[[int], tuple[float, float]] | None = None
    warm: bool = False
    deadline_s: float | None = None
    began_s: float = 0.0
    in_flight: int = 0
    owner: str | None = None
    charged: float = 0.0
    refusal: str | None = None
    wish: "Wish | None" = None

    def plan_after(self, attempts: int) -> str:
        """What the plan came to, as the event says it: why there was no backup, if there was none and one was wanted."""
        return (self.refusal if attempts == 1 else None) or self.plan.verdict

    def key_at(self, target: int) -> Key:
        """Where an attempt at a target is learnt into."""
        return self.key if target == 0 else replace(self.key, target=self.places[target].name)

    def cost(self, output_tokens: float, target: int = 0) -> float:
        """What one attempt at a target costs that answers with so many tokens."""
        price_in, price_out = self.price_in, self.price_out
        if target and self.price_at is not None:
            price_in, price_out = self.price_at(target)
        return price_in * self.facts.input_tokens_estimate + price_out * output_tokens


@dataclass(frozen=True, slots=True)
class Wish:
    """What the rule used when a backup was first wanted."""

    limit_s: float | None
    b_s: float
    tau_s: float
    inflation: float
    win_rate: float
    bucket: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A complete answer. pace_s: seconds per token from the first token on; gap_s, pause_s: mean and longest time between
    chunks; None where nothing was seen of it. target: where it came from; billed_losers: where the losers ran that cost
    something."""

    output_tokens: float
    pace_s: float | None = None
    gap_s: float | None = None
    pause_s: float | None = None
    target: int = 0
    billed_losers: tuple[int, ...] = ()


class Pilot:
    """One policy's rule, with its statistics, controller and gate. Not for threads: one Hedger or one simulation owns it.

    places: where requests may go of which nothing else is said. One budget and one D hold for all requests of the policy,
    wherever they go.
    """

    def __init__(self, policy: Policy, places: tuple[Place, ...]) -> None:
        self.policy, self.places = policy, places
        self.statistics = Registry(parse_window(policy.window))
        self.controller = Controller(0.05 if policy.share is None else policy.share)
        self.gate = Gate(policy, self.controller)
        self._limits, self._queues = Limits(policy), defaultdict[str, QueueWatch](QueueWatch)
        self._flying: dict[str, int] = {}  # primaries under way, by place
        self._delay = None if policy.delay == "auto" else parse_delay(policy.delay)
        self._steered = self._delay is None and policy.share is not None and policy.trigger != "off"
        by_caller = self._delay is not None and policy.trigger != "lag"
        self._goes_by = "responses" if policy.trigger == "response" else "first_tokens" if by_caller else "firsts"
        self._ring: Callable[[KeyStatistics], Ring] = attrgetter(self._goes_by)

    def prepare(
        self,
        facts: RequestFacts,
        caller: Caller = NOBODY,
        *,
        places: tuple[Place, ...] | None = None,
        streamed: bool = False,
        now_s: float = 0.0,
    ) -> Flight:
        """Plan a request; nothing is counted yet. places: where it may go, None = as the policy's others. streamed: its answer
        will be streamed upstream though nobody asked."""
        places = places or self.places
        key, known = self.statistics.find(facts, places[0].name, streamed=streamed, owner=caller.client_key)
        usual = known
        if len(ring := self._ring(known)) < ENOUGH:
            # Only the steered rule leans on a sibling: a quantile of other calls would say nothing about these.
            usual = (self.statistics.warm_sibling(key) if self._delay is None else None) or known
        elif self._delay is None and self.controller.d_per_b is None:
            self.controller.start(self._b_of(known), ring.quantile(0.9) or 0.0)
        warm = self._is_warm(usual, now_s)
        plan = make_plan(facts, self.policy, self._limits, caller, warm=warm, stall_s=self._stall_s(usual))
        return Flight(
            facts=facts,
            places=places,
            key=key,
            known=known,
            usual=usual,
            plan=plan,
            warm=warm,
            deadline_s=caller.deadline_s,
            began_s=now_s,
            owner=caller.client_key,
        )

    def began(self, flight: Flight) -> None:
        """The primary is sent: n, in flight, bucket, then D."""
        if not flight.plan.counted:
            return
        self.gate.admit()
        home = flight.places[0].name
        flight.in_flight = self._flying[home] = self._flying.get(home, 0) + 1
        if self._steered and flight.warm:
            self.controller.on_request(self._b_of(flight.usual))

    def known_at(self, flight: Flight, target: int) -> KeyStatistics:
        """Where an attempt at a target is learnt into."""
        if target == 0:
            return flight.known
        return self.statistics.find(
            flight.facts, flight.places[target].name, streamed=flight.key.stream, owner=flight.owner
        )[1]

    def outlook(self, flight: Flight, now_s: float, target: int = 0) -> Outlook:
        """What is normal for this request now; at a backup target by that target's own key, if it is warm."""
        known = flight.usual if target == 0 else self._usual_at(flight, target, now_s)
        limit_s = self._limit_s(known, now_s) if flight.warm else None
        if limit_s is None:
            return NOTHING_LATE
        if self._by_prior(known):
            prior = self.policy.prior
            assert isinstance(prior, Prior)
            return Outlook(
                limit_s=limit_s, b_s=prior.first_token_s, tau_s=prior.token_s, slow_pace_s=SLOW_PACE * prior.token_s
            )
        if self._delay is not None and self.policy.trigger != "lag":
            return Outlook(limit_s=limit_s)
        if self.policy.trigger == "response":
            return Outlook(limit_s=limit_s, b_s=self._b_of(known))
        b_s = known.b_for(flight.facts.input_tokens_estimate)
        if target and len(known.paces) < ENOUGH:
            known = flight.usual  # backups there are often seen to begin, but seldom to the end
        tau_s = known.tau_s
        idle_s = max(MIN_IDLE_S, IDLE_GAPS * (known.gaps.quantile(0.5) or tau_s))
        slow_pace_s = max(SLOW_PACE * tau_s, known.paces.quantile(0.9) or 0.0)
        pause_s = known.pauses.quantile(0.9) or 0.0
        return Outlook(limit_s, b_s, tau_s, idle_s, slow_pace_s, known.expected_output, pause_s)

    def ask(self, flight: Flight, ask: Ask, entrants: tuple[Entrant, ...], now_s: float) -> Permit:
        """May the next attempt start, and where? Granted, it is paid for."""
        if flight.wish is None:
            outlook, bucket = self.outlook(flight, now_s), self.gate.bucket
            level = None if bucket is None else bucket.level
            steer = self.controller
            flight.wish = Wish(outlook.limit_s, outlook.b_s, outlook.tau_s, steer.inflation, steer.win_rate, level)
        if ask.failed is None and self._too_late(flight, now_s):
            permit = Permit(None, "deadline")
        else:
            self.gate.queueing = {place for place in flight.places if self._queues_on_itself(place.name)}
            seen = Seen(places=flight.places, key=flight.key, now_s=now_s, stay_home=self._has_cache(flight))
            permit = self.gate.ask(ask, entrants, seen)
        if permit.target is None and len(entrants) == 1 and permit.pause_s is None:
            flight.refusal = flight.refusal or permit.refusal
        if self._steered and flight.warm and (permit.target is not None or permit.refusal == "observe"):
            known, target = flight.usual, permit.meant if permit.target is None else permit.target
            expected = self.controller.in_means(flight.cost(known.mean_output, target))
            flight.charged += self.controller.on_backup(1.0 if expected is None else expected, self._b_of(known))
        return permit

    def failed(self, flight: Flight, entrant: Entrant, failure: Failure, now_s: float) -> bool:
        """An attempt failed. True: its target was shut out for the first time, which somebody should be told."""
        place = flight.places[entrant.target]
        return self.gate.note_failure(place, failure, flight.key, now_s, backup=entrant.target > 0)

    def decided(
        self, flight: Flight, state: RaceState, *, first_s: float | None, caller_s: float | None, now_s: float
    ) -> None:
        """The race is decided. first_s: the primary's first-token time, or its age if it was cancelled before (a failed one's
        age too); caller_s: the caller's, from the primary's start whoever won; both None if nothing can be learnt."""
        if flight.plan.counted:
            self.gate.decided()
            self._flying[flight.places[0].name] -= 1
        if first_s is None:
            return
        known = flight.known
        if any(entrant.fate is Fate.WON for entrant in state.entrants):
            self.statistics.keep(flight.key, known, flight.owner)
        known.learn_first(first_s, flight.facts.input_tokens_estimate, now_s)
        if flight.in_flight:
            self._queues[flight.places[0].name].add(flight.in_flight, first_s)
        if caller_s is not None:
            known.first_tokens.add(caller_s, now_s)
        if self._steered and flight.plan.counted and self.policy.mode == "act":
            backups = len(state.entrants) - 1
            won = backups > 0 and any(entrant.number and entrant.fate is Fate.WON for entrant in state.entrants)
            refused = flight.refusal is not None
            self.controller.on_decided(backups=backups, won=won, wanted=flight.wish is not None, refused=refused)

    def backed_up(
        self, flight: Flight, target: int, *, first_s: float | None, age_s: float, won: bool, now_s: float
    ) -> None:
        """A decided race had a backup at a target of its own, whose key learns from it. first_s: its first-token time, None if
        it was cancelled before; age_s: how long it ran. What was cut short counts with its age, as a primary does, but only
        above the usual time: a primary is never cut short sooner, and a shorter wait says nothing."""
        own, usual = self.known_at(flight, target), self._usual_at(flight, target, now_s)
        if own is flight.known:
            return
        self.statistics.keep(flight.key_at(target), own, flight.owner)
        if first_s is not None or age_s >= usual.b_s:
            own.learn_first(age_s if first_s is None else first_s, flight.facts.input_tokens_estimate, now_s)
        whole = self._goes_by == "responses" and flight.plan.rules.commit_on is CommitOn.COMPLETE
        if whole and (won or age_s >= self._b_of(usual)):
            own.responses.add(age_s, now_s)

    def answered(self, flight: Flight, answer: Answer, *, caller_s: float | None, now_s: float) -> None:
        """The winner's answer is complete: pace, length, mean cost, and what the race really cost beyond one call at home: its
        losers, each at its own price, and what the winner's own target charges more. caller_s: its whole time as the caller saw
        it."""
        known, tokens = self.known_at(flight, answer.target), answer.output_tokens
        if answer.target:
            self.statistics.keep(flight.key_at(answer.target), known, flight.owner)
        self.statistics.keep(flight.key, flight.known, flight.owner)
        known.learn_answer(
            output_tokens=tokens, pace_s=answer.pace_s, gap_s=answer.gap_s, pause_s=answer.pause_s, at_s=now_s
        )
        if caller_s is not None:
            flight.known.responses.add(caller_s, now_s)
        self.controller.on_answer(flight.cost(tokens))
        if self._steered and flight.charged and self.policy.mode == "act":
            losers = answer.billed_losers
            spent = sum(flight.cost(tokens, target) for target in (*losers, answer.target)) - flight.cost(tokens)
            real = self.controller.in_means(max(spent, 0.0))
            self.controller.settle(len(losers) if real is None else real, flight.charged, self._b_of(flight.usual))

    def over(self, flight: Flight, state: RaceState, *, answered: bool) -> None:
        """Nothing more will come of it: a winning backup's token comes back, if its answer arrived whole."""
        if flight.plan.counted:
            self.gate.settle(state, answered=answered, observed=flight.refusal == "observe")

    def _queues_on_itself(self, place: str) -> bool:
        watch = self._queues.get(place)
        return watch is not None and watch.queues

    def _usual_at(self, flight: Flight, target: int, now_s: float) -> KeyStatistics:
        """What an attempt at a backup target is judged by: its own key if that is warm, else what the primary is judged by,
        and always so where the caller's times are the measure."""
        if self._delay is not None and self.policy.trigger != "lag":
            return flight.usual
        own = self.known_at(flight, target)
        return own if len(self._ring(own)) >= ENOUGH and self._is_warm(own, now_s) else flight.usual

    def _is_warm(self, known: KeyStatistics, now_s: float) -> bool:
        """Is there a limit for this key?"""
        if self._delay is not None or self.policy.trigger == "off":
            return self._limit_s(known, now_s) is not None
        enough = len(self._ring(known)) >= ENOUGH
        return self.controller.d_per_b is not None if enough else self.policy.prior is not None

    def _limit_s(self, known: KeyStatistics, now_s: float) -> float | None:
        """How late is too late for a key; None while it is cold. A fixed delay needs no samples."""
        if self.policy.trigger == "off":
            return None
        ring, steer = self._ring(known), self.controller
        if self._delay is None:
            if len(ring) < ENOUGH:
                prior = self.policy.prior
                assert prior is None or isinstance(prior, Prior)
                return None if prior is None else prior.lag_s * steer.inflation
            return None if steer.d_per_b is None else steer.inflation * steer.delay_s(self._b_of(known))
        if self._delay.quantile is None:
            return self._delay.offset_s if self.policy.trigger != "lag" or known.warm else None
        usual_s = ring.quantile(self._delay.quantile, now_s)
        return None if usual_s is None or len(ring) < ENOUGH else usual_s + self._delay.offset_s

    def _stall_s(self, usual: KeyStatistics) -> float | None:
        """How long a stream may be silent before it has failed."""
        if self.policy.stall_s != "auto":
            return self.policy.stall_s if isinstance(self.policy.stall_s, float) else None
        return max(SHORTEST_STALL_S, STALL_GAPS * (usual.gaps.quantile(0.99) or 0.0))

    def _by_prior(self, known: KeyStatistics) -> bool:
        """Is a prior all there is to go by?"""
        return self.policy.prior is not None and self._delay is None and len(self._ring(known)) < ENOUGH

    def _too_late(self, flight: Flight, now_s: float) -> bool:
        """Would even a quick copy (its first quartile) miss the moment from which on the answer is useless?"""
        if flight.deadline_s is None:
            return False
        ring = flight.usual.firsts if flight.key.stream else flight.usual.responses
        return flight.deadline_s - (now_s - flight.began_s) < (ring.quantile(0.25) or 0.0)

    def _has_cache(self, flight: Flight) -> bool:
        """Is much of its input in the provider's prompt cache? A copy for another account would pay for all of it."""
        named = flight.facts.cached_context and flight.facts.input_tokens_estimate >= LARGE_CACHE_TOKENS
        return named or flight.usual.cached_tokens >= LARGE_CACHE_TOKENS

    def _b_of(self, known: KeyStatistics) -> float:
        """b without slope, by which D is scaled."""
        return (known.responses.quantile(0.5) or 0.0) if self.policy.trigger == "response" else known.b_s
