"""Who may act on trouble: the budget, the targets, and what a provider that pushes back has asked for.

Decisions only: time comes in as an argument, what it decides is carried out by the race.
"""

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass
from typing import TypeVar

from hedgerow.budget.bucket import SMALLEST_CAP, Bucket
from hedgerow.budget.controller import Controller
from hedgerow.settings import Policy
from hedgerow.statistics.shares import put_bounded
from hedgerow.values.failure import Failure, FailureKind
from hedgerow.values.race import Ask, AtHome, Entrant, Fate, RaceState
from hedgerow.values.request import Key

__all__ = ["Gate", "Permit", "Place", "Seen"]

HOLD_OFF_S = 30.0  # after a 429, 503 or 529
LONGEST_HOLD_OFF_S = 120.0  # however long a Retry-After asks for
GATED_S = 600.0  # a backup target that answered a request-fatal error is asked again after this
HARD_SHARE, HARD_REQUESTS, HARD_FROM = 0.45, 200, 20  # backups among the last 200 requests; a share of at least 20
PROBE_WIN_RATE, PROBE_EVERY = 0.15, 5  # when hardly any backup wins, every fifth that is wanted is sent, to see
ROOM_KEPT, ROOM_TOLD_S = 0.20, 60.0  # of the advertised rate limits; what was said is believed for so long
MOST_HELD = 1_000  # hold-offs that are remembered: clients may bring any number of keys and models
PAUSE_S = 0.5  # before an attempt that failed at once is replaced where it failed: the SDKs' first back-off
OBSERVED_REFUND = 0.5  # an observed wish has no outcome: half of them are taken to win


Held = TypeVar("Held")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A target as the gate sees it. `account`: the same for all places that share a key and base URL, hence their limits;
    `model`: what is asked there, None = what the request asks for."""

    name: str
    account: str = "home"
    model: str | None = None

    def limits(self, key: Key) -> tuple[str, str | None]:
        """Whose limits hold for a request there: a provider counts by account and model."""
        return self.account, self.model or key.model


@dataclass(frozen=True, slots=True)
class Permit:
    """The gate's answer: a `target` to send to, or the reason why not. `meant`: where it would have gone, if it was only
    observed. `pause_s`: only where an attempt has just failed, and after so many seconds."""

    target: int | None
    refusal: str | None = None
    meant: int = 0
    pause_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Which request asks, and when. places: where it may go, the primary's own first, then its backup targets in order of
    preference. stay_home: a late call's backup may only go to places of the primary's own account."""

    places: tuple[Place, ...]
    key: Key
    now_s: float
    stay_home: bool = False


class Gate:
    """One policy's guard. Owns the bucket and the hold-offs; not for threads: one Hedger owns it."""

    def __init__(self, policy: Policy, controller: Controller) -> None:
        self._policy, self._controller = policy, controller
        self.bucket = None if policy.share is None else Bucket(policy.share, policy.requests_share)
        self.in_flight = 0
        self.refusals: dict[str, int] = {}
        self.queueing: set[Place] = set()  # places that queue on themselves: a backup there joins the queue
        self._sent_at: deque[int] = deque()  # the number of requests at each backup of late
        self._probes = 0
        self._held_until_s: dict[tuple[str, str | None], float] = {}
        self._scarce_until_s: dict[tuple[str, str | None], float] = {}
        self._gated_until_s: dict[tuple[Place, Key], float] = {}

    def admit(self) -> None:
        """A request came that may be hedged."""
        self.in_flight += 1
        if self.bucket is not None:
            self.bucket.deposit(self.in_flight)

    def decided(self) -> None:
        """An admitted request's race is decided."""
        self.in_flight -= 1

    def settle(self, state: RaceState, *, answered: bool, observed: bool) -> None:
        """An admitted request is over: the token of a backup that won comes back, but only if its answer arrived whole."""
        if self.bucket is None:
            return
        if (
            answered
            and len(state.entrants) > 1
            and any(entrant.number and entrant.fate is Fate.WON for entrant in state.entrants)
        ):
            self.bucket.refund(self.in_flight)
        elif observed:
            self.bucket.fill(OBSERVED_REFUND, self.in_flight)

    def ask(self, ask: Ask, entrants: tuple[Entrant, ...], seen: Seen) -> Permit:
        """May the next attempt start, and where? A backup goes to the first listed, unused target that is not held off,
        else to the primary's own."""
        permit = self._place_for(ask, entrants, seen)
        if (
            permit.target is not None
            and self.bucket is not None
            and (refusal := self._limit(self.bucket, len(entrants)))
        ):
            permit = Permit(None, refusal)
        elif permit.pause_s is not None and self.bucket is not None and self.bucket.empty:
            permit = Permit(None, "budget")  # nobody is kept waiting for what cannot be paid
        if permit.target is not None and self._policy.mode == "observe":
            return Permit(None, "observe", permit.target)
        if permit.refusal is not None and permit.pause_s is None:
            self.refusals[permit.refusal] = self.refusals.get(permit.refusal, 0) + 1
        return permit

    def note_failure(self, place: Place, failure: Failure, key: Key, now_s: float, *, backup: bool) -> bool:
        """Remember what a failure says about the place it came from. True: a backup target was shut out for the first time,
        which somebody should be told: its configuration is wrong."""
        if failure.kind in (FailureKind.RATE_LIMITED, FailureKind.OVERLOADED):
            asked_s = failure.retry_after_s if failure.retry_after_s is not None else HOLD_OFF_S
            self._hold(place.limits(key), now_s + min(max(asked_s, 0.0), LONGEST_HOLD_OFF_S), now_s)
        if failure.kind is not FailureKind.FATAL or not backup:
            return False
        first_time = (place, key) not in self._gated_until_s
        _forget_past(self._gated_until_s, now_s - GATED_S)  # kept a while longer, to be reported once
        put_bounded(self._gated_until_s, (place, key), now_s + GATED_S, MOST_HELD)
        return first_time

    def note_room(self, place: Place, key: Key, room: float, now_s: float) -> None:
        """A provider said what share 0..1 of its rate limits is left for a model."""
        limits = place.limits(key)
        if room < ROOM_KEPT:
            _forget_past(self._scarce_until_s, now_s)
            put_bounded(self._scarce_until_s, limits, now_s + ROOM_TOLD_S, MOST_HELD)
        else:
            self._scarce_until_s.pop(limits, None)

    def _limit(self, bucket: Bucket, attempts: int) -> str | None:
        """The hard limits, then the bucket: why not, or None and the backup is paid for."""
        while self._sent_at and self._sent_at[0] <= bucket.requests - HARD_REQUESTS:
            self._sent_at.popleft()
        if len(self._sent_at) >= HARD_SHARE * min(max(bucket.requests, HARD_FROM), HARD_REQUESTS):
            return "hard_limit"
        if self._controller.win_rate < PROBE_WIN_RATE:
            self._probes += 1
            if self._probes % PROBE_EVERY != 1:
                return "losing"
        first = attempts == 1
        if not bucket.withdraw(1.0 if first else SMALLEST_CAP / 2, surge=first and self._controller.surging):
            return "budget"
        self._sent_at.append(bucket.requests)
        return None

    def _place_for(self, ask: Ask, entrants: tuple[Entrant, ...], seen: Seen) -> Permit:
        places, key, now_s = seen.places, seen.key, seen.now_s
        failed = entrants[ask.failed] if ask.failed is not None else None
        used = {entrant.target for entrant in entrants}
        kind = None if failed is None else _kind_of(failed)
        listed = [number for number in range(1, len(places)) if number not in used]
        if seen.stay_home and failed is None:
            listed = [number for number in listed if places[number].account == places[0].account]
        choices = [number for number in listed if not self._is_gated(places[number], key, now_s)] + [0]
        here = None if failed is None or ask.at_home is AtHome.NOW else places[failed.target].account
        for number in choices:
            if places[number].account == here:
                continue
            if kind is FailureKind.RATE_LIMITED and _was_told(places, number, entrants):
                continue
            if failed is None and places[number] in self.queueing and self.bucket is not None:
                continue
            if not self._is_held(places[number], key, now_s):
                return Permit(number)
        overloaded = kind is FailureKind.OVERLOADED and not self._replaced_before(entrants, failed)
        if overloaded and places[choices[0]].account != here:
            return Permit(choices[0])
        if here is not None and kind is not FailureKind.RATE_LIMITED:
            return Permit(None, "sdk_retry", pause_s=PAUSE_S if ask.at_home is AtHome.LATER else None)
        if failed is None and places[0] in self.queueing and not self._is_held(places[0], key, now_s):
            return Permit(None, "self_queueing")
        return Permit(None, f"rate_limited:{places[choices[-1]].name}")

    def _replaced_before(self, entrants: tuple[Entrant, ...], failed: Entrant | None) -> bool:
        """After 503 or 529 one replacement goes at once, though the target is held off: one, not a chain of them."""
        return any(_kind_of(entrant) is FailureKind.OVERLOADED and entrant is not failed for entrant in entrants)

    def _is_held(self, place: Place, key: Key, now_s: float) -> bool:
        limits = place.limits(key)
        until_s = max(self._held_until_s.get(limits, now_s), self._scarce_until_s.get(limits, now_s))
        return self.bucket is not None and until_s > now_s

    def _is_gated(self, place: Place, key: Key, now_s: float) -> bool:
        return self._gated_until_s.get((place, key), now_s) > now_s

    def _hold(self, limits: tuple[str, str | None], until_s: float, now_s: float) -> None:
        _forget_past(self._held_until_s, now_s)
        put_bounded(self._held_until_s, limits, max(until_s, self._held_until_s.get(limits, until_s)), MOST_HELD)


def _forget_past(until_s: dict[Held, float], now_s: float) -> None:
    """Callers of a gateway may bring any number of keys and models."""
    for past in [held for held, end_s in until_s.items() if end_s <= now_s]:
        del until_s[past]


def _was_told(places: tuple[Place, ...], number: int, entrants: Collection[Entrant]) -> bool:
    """Has an attempt of this race been told 429 under the limits that hold at this place?"""
    told = {places[e.target].account for e in entrants if _kind_of(e) is FailureKind.RATE_LIMITED}
    return places[number].account in told


def _kind_of(entrant: Entrant) -> FailureKind | None:
    return None if entrant.failure is None else entrant.failure.kind
