"""The production race machine and Pilot in virtual time, over attempt-level data.

Events are handled in order of time; at equal times ends come before checks. Statistics know only what had ended by then.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import inf

from hedgerow.analysis.attempts import Row, Sent
from hedgerow.policy.gate import Place
from hedgerow.policy.pilot import Answer, Flight, Pilot
from hedgerow.policy.trouble import TOKENS_FOR_PACE, Outlook, Progress, Trigger, trouble_from
from hedgerow.race import signals as s
from hedgerow.race.machine import advance, start
from hedgerow.race.state import CommitOn, RaceState, Stage
from hedgerow.settings import Policy
from hedgerow.values.failure import Failure, FailureKind
from hedgerow.values.request import RequestFacts

__all__ = ["Outcome", "simulate"]

ENDS, ANSWER_ENDS, CHECK = 0, 1, 2
HOME = Place(name="home")
KINDS = {429: FailureKind.RATE_LIMITED, 503: FailureKind.OVERLOADED, 529: FailureKind.OVERLOADED}
TRANSIENT = frozenset({408, 409, 500, 502, 504})


@dataclass(slots=True)
class Outcome:
    """What became of one request. Times on the data's clock; `winner` None = it failed."""

    sent: Sent
    launched_s: list[float] = field(default_factory=list[float])
    decided_s: float | None = None
    winner: int | None = None
    wanted: bool = False

    @property
    def response_s(self) -> float | None:
        """From the request to the end of its answer."""
        return None if self.winner is None else self.launched_s[self.winner] + self._row.ends_s - self.sent.start_s

    @property
    def first_token_s(self) -> float | None:
        """From the request to the winner's first token."""
        return None if self.winner is None else self.launched_s[self.winner] + self._row.ttft_s - self.sent.start_s

    @property
    def _row(self) -> Row:
        return self.sent.rows[self.winner or 0]


def simulate(sents: list[Sent], policy: Policy, *, stream: bool = False) -> list[Outcome]:
    """Run the requests (in order of arrival) under a policy. stream: the caller commits at the first token; else it waits for
    the whole answer, streamed upstream, as with upstream_stream."""
    return _Run(sents, policy, stream).go()


class _Run:
    def __init__(self, sents: list[Sent], policy: Policy, stream: bool) -> None:
        self.pilot, self.stream = Pilot(policy, (HOME,)), stream
        self.by_age = policy.trigger in ("first_token", "response")  # only then does anyone ask for the callers' times
        self.races = [_Race(sent) for sent in sents]
        self.events: list[tuple[float, int, int, int]] = []
        self.commit_on = CommitOn.CONTENT if stream else CommitOn.COMPLETE

    def go(self) -> list[Outcome]:
        arriving, races, events = 0, self.races, self.events
        while arriving < len(races) or events:
            if arriving < len(races) and (not events or races[arriving].sent.start_s <= events[0][0]):
                self.arrive(arriving)
                arriving += 1
                continue
            now_s, kind, number, attempt = heappop(events)
            race = races[number]
            if kind == ANSWER_ENDS:
                self.complete(race, now_s)
            elif race.state.stage is Stage.RACING:
                if kind == ENDS:
                    self.end(number, race, attempt, now_s)
                elif attempt == race.check:
                    self.tell(number, race, s.Tick(now_s, self.view(race, now_s)), now_s)
        return [race.outcome for race in races]

    def arrive(self, number: int) -> None:
        race, pilot = self.races[number], self.pilot
        sent, now_s = race.sent, race.sent.start_s
        facts = RequestFacts(
            dialect="attempts",
            model=sent.model,
            stream=self.stream,
            input_tokens_estimate=sent.input_tokens,
            answer_known=True,
        )
        race.flight = flight = pilot.prepare(facts, now_s=now_s)
        flight.price_in, flight.price_out = sent.price_in, sent.price_out
        race.state = start(flight.plan.rules, now_s)
        pilot.began(flight)
        race.outlook = pilot.outlook(flight, now_s)
        self.tell(number, race, s.Begin(now_s, race.outlook), now_s)

    def tell(self, number: int, race: "_Race", signal: s.Signal, now_s: float) -> None:
        race.state, actions = advance(race.state, signal)
        for action in actions:
            match action:
                case s.Launch():
                    self.launch(number, race, action.attempt, now_s)
                case s.Wake():
                    self.wake(number, race, action.at_s)
                case s.Ask():
                    race.outcome.wanted |= action.failed is None
                    self.ask(number, race, action, now_s)
                case s.Commit():
                    self.commit(number, race, action.attempt, now_s)
                case s.GiveUp():
                    self.pilot.decided(race.flight, race.state, first_s=None, caller_s=None, now_s=now_s)
                    self.pilot.over(race.flight, race.state, answered=False)
                    race.outcome.decided_s = now_s
                case _:
                    pass

    def launch(self, number: int, race: "_Race", attempt: int, now_s: float) -> None:
        row = race.sent.rows[attempt]
        race.outcome.launched_s.append(now_s)
        takes_s = row.ttft_s if self.stream else row.ends_s
        heappush(self.events, (now_s + takes_s, ENDS, number, attempt))

    def wake(self, number: int, race: "_Race", at_s: float | None) -> None:
        """Set the timer. Live, it is set to when the attempt will be in trouble if nothing more comes, again and again; here
        what will come is known, so the timer is set to when it will be in trouble."""
        race.check += 1
        if at_s is None or race.state.stage is not Stage.RACING:
            return
        at_s = race.trouble_at(at_s)
        if at_s < max(race.outcome.launched_s[e.number] + race.sent.rows[e.number].ends_s for e in race.state.live):
            heappush(self.events, (at_s, CHECK, number, race.check))

    def ask(self, number: int, race: "_Race", ask: s.Ask, now_s: float) -> None:
        entrants = race.state.entrants
        target = None
        if len(entrants) < len(race.sent.rows):
            target = self.pilot.ask(race.flight, ask, entrants, now_s).target
        view = self.view(race, now_s)
        self.tell(number, race, s.Refused(now_s, view) if target is None else s.Granted(now_s, target, view), now_s)

    def end(self, number: int, race: "_Race", attempt: int, now_s: float) -> None:
        row = race.sent.rows[attempt]
        if row.status != 200:
            self.tell(number, race, s.Failed(now_s, attempt, _failure(row.status), self.view(race, now_s)), now_s)
        elif self.stream:
            self.tell(number, race, s.Content(now_s, attempt), now_s)
        else:
            self.tell(number, race, s.Answered(now_s, attempt, True), now_s)

    def commit(self, number: int, race: "_Race", winner: int, now_s: float) -> None:
        outcome, primary = race.outcome, race.sent.rows[0]
        outcome.winner, outcome.decided_s = winner, now_s
        age_s = now_s - race.sent.start_s
        first_s = min(primary.ttft_s, age_s) if primary.status == 200 else age_s
        caller_s = outcome.first_token_s if self.by_age else None
        self.pilot.decided(race.flight, race.state, first_s=first_s, caller_s=caller_s, now_s=now_s)
        heappush(self.events, (outcome.launched_s[winner] + race.sent.rows[winner].ends_s, ANSWER_ENDS, number, winner))

    def complete(self, race: "_Race", now_s: float) -> None:
        outcome = race.outcome
        winner = outcome.winner or 0
        row = race.sent.rows[winner]
        losers = sum(k != winner and race.sent.rows[k].status == 200 for k in range(len(outcome.launched_s)))
        pace_s = (row.ends_s - row.ttft_s) / row.output_tokens
        answer = Answer(output_tokens=row.output_tokens, pace_s=pace_s, billed_losers=losers)
        caller_s = now_s - race.sent.start_s if self.by_age else None
        self.pilot.answered(race.flight, answer, caller_s=caller_s, now_s=now_s)
        self.pilot.over(race.flight, race.state, answered=True)

    def view(self, race: "_Race", now_s: float) -> s.View:
        race.outlook = self.pilot.outlook(race.flight, now_s)
        return s.View(tuple(race.progress(e.number, now_s) for e in race.state.live), race.outlook)


class _Race:
    __slots__ = ("check", "flight", "outcome", "outlook", "sent", "state")

    flight: Flight
    state: RaceState
    outlook: Outlook

    def __init__(self, sent: Sent) -> None:
        self.sent, self.outcome, self.check = sent, Outcome(sent), 0

    def progress(self, attempt: int, now_s: float) -> Progress:
        """What is to be seen of an attempt at this moment."""
        row, began_s = self.sent.rows[attempt], self.outcome.launched_s[attempt]
        tokens = row.tokens_by(now_s - began_s)
        if not tokens:
            return Progress(attempt, began_s)
        pace_s = row.token_s if tokens >= TOKENS_FOR_PACE else None
        return Progress(attempt, began_s, began_s + row.ttft_s, began_s + row.arrival_s(tokens), tokens, pace_s)

    def trouble_at(self, from_s: float) -> float:
        """The first moment, `from_s` or later, at which every live attempt is in trouble; inf = never."""
        at_s = from_s
        while True:
            latest_s = max(self._trouble_of(entrant.number, at_s) for entrant in self.state.live)
            if latest_s <= at_s or latest_s == inf:
                return latest_s
            at_s = latest_s

    def _trouble_of(self, attempt: int, from_s: float) -> float:
        """The same for one attempt, given all that it will send."""
        row, began_s, trigger = self.sent.rows[attempt], self.outcome.launched_s[attempt], self.state.rules.trigger
        if from_s < began_s + row.ttft_s or trigger is not Trigger.LAG:
            at_s = trouble_from(trigger, self.progress(attempt, from_s), self.outlook, from_s)
            if at_s < began_s + row.ttft_s or trigger is not Trigger.LAG:
                return at_s
        if row.status != 200:
            return inf
        for token in self._telling_tokens(row, max(1, row.tokens_by(from_s - began_s))):
            last_s, next_s = began_s + row.arrival_s(token), began_s + row.arrival_s(token + 1)
            pace_s = row.token_s if token >= TOKENS_FOR_PACE else None
            seen = Progress(attempt, began_s, began_s + row.ttft_s, last_s, token, pace_s)
            at_s = trouble_from(trigger, seen, self.outlook, max(from_s, last_s))
            if at_s < next_s:
                return at_s
        return inf

    def _telling_tokens(self, row: Row, first: int) -> Iterable[int]:
        """The tokens, from `first` on, after which an attempt can be in trouble: the one before its stall; all of them if its
        ordinary gaps are pauses or its pace is slow."""
        if row.token_s >= self.outlook.idle_s or row.token_s > self.outlook.slow_pace_s:
            return range(first, row.output_tokens + 1)
        return (row.stall_after,) if row.stall_after >= first else ()


def _failure(status: int) -> Failure:
    kind = KINDS.get(status) or (FailureKind.TRANSIENT if status in TRANSIENT else FailureKind.FATAL)
    return Failure(kind=kind, status=status, error=str(status))
