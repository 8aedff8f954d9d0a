"""The production race machine and Pilot in virtual time, over attempt-level data.

Events are handled in order of time; at equal times ends come before checks. Statistics know only what had ended by then.
"""

import gc
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from heapq import heappop, heappush
from math import inf
from random import Random
from typing import Any

from hedgerow.analysis.attempts import NO_TIME_S, Sent
from hedgerow.analysis.foreseen import Outcome, SimulatedRace
from hedgerow.dialects.failures import failure_of_status
from hedgerow.policy.gate import Permit, Place
from hedgerow.policy.pilot import NOBODY, Answer, Pilot
from hedgerow.policy.plan import Caller
from hedgerow.race import signals as s
from hedgerow.race.machine import advance, start
from hedgerow.settings import Policy
from hedgerow.units import parse_share
from hedgerow.values.race import Fate, Stage
from hedgerow.values.request import RequestFacts

__all__ = ["Outcome", "simulate"]

ENDS, ANSWER_ENDS, CHECK = 0, 1, 2
PROGRESS_EVERY = 1_000
HOME = Place(name="home")
NONE_LEFT = Permit(None)  # the data have no further attempt of this request


def simulate(
    sents: Sequence[Sent],
    policy: Policy,
    *,
    stream: bool = False,
    seed: int = 1,
    progress: Callable[[int], object] | None = None,
) -> list[Outcome]:
    """Run the requests (in order of arrival) under a policy; their outcomes in the same order.

    stream: the caller commits at the first token; else it waits for the whole answer, streamed upstream as with
    `upstream_stream`. seed: of the draw for `control_share`. progress: told now and then how many more requests have come.
    The data know neither segments nor the time of day: `segments` and `hours` of the policy are not looked at.
    """
    with _without_collector():
        return _Run(sents, replace(policy, segments=(), hours=()), stream, Random(seed)).go(progress)


@contextmanager
def _without_collector() -> Generator[None]:
    """The run makes no cycles, but so many objects that looking for some costs a tenth of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class _Run:
    def __init__(self, sents: Sequence[Sent], policy: Policy, stream: bool, dice: Random) -> None:
        self.pilot, self.stream = Pilot(policy, (HOME,)), stream
        self.dice, self.control = dice, parse_share(policy.control_share)
        # Only these triggers ask for the callers' times, and only with these limits does a timer mean anything but trouble.
        self.by_age = policy.trigger in ("first_token", "response")
        self.timed = any((policy.timeout_s, policy.attempt_timeout_s, policy.first_token_timeout_s, policy.stall_s))
        self.facts: dict[tuple[str | None, int], RequestFacts] = {}
        self.sents, self.outcomes = sents, list[Outcome]()
        self.open: dict[int, SimulatedRace] = {}
        self.events: list[tuple[float, int, int, int]] = []

    def go(self, progress: Callable[[int], object] | None) -> list[Outcome]:
        for number, sent in enumerate(self.sents):
            self.pass_time(sent.start_s)
            self.arrive(number, sent)
            if progress is not None and ((number + 1) % PROGRESS_EVERY == 0 or number + 1 == len(self.sents)):
                progress(number % PROGRESS_EVERY + 1)
        self.pass_time(inf)
        return self.outcomes

    def pass_time(self, until_s: float) -> None:
        """Whatever happens before this moment."""
        events = self.events
        while events and events[0][0] < until_s:
            now_s, kind, number, attempt = heappop(events)
            race = self.open.get(number)
            if race is None:
                continue
            if kind == CHECK:
                if attempt == race.check:
                    self.tell(number, race, s.Tick(now_s, self.view(race, now_s)), now_s)
            elif kind == ANSWER_ENDS:
                self.complete(number, race, attempt, now_s)
            elif race.state.stage is Stage.RACING and race.state.entrants[attempt].fate is Fate.LIVE:
                self.end(number, race, attempt, now_s)

    def arrive(self, number: int, sent: Sent) -> None:
        pilot, now_s = self.pilot, sent.start_s
        race = self.open[number] = SimulatedRace(sent)
        self.outcomes.append(race.outcome)
        facts = self.facts_of(sent.model, sent.input_tokens)
        caller = Caller(control=True) if self.control and self.dice.random() < self.control else NOBODY
        race.flight = flight = pilot.prepare(facts, caller, streamed=True, now_s=now_s)
        flight.price_in, flight.price_out = sent.price_in, sent.price_out
        race.outcome.counted = flight.plan.counted
        race.state = start(flight.plan.rules, now_s)
        pilot.began(flight)
        race.outlook = pilot.outlook(flight, now_s)
        self.tell(number, race, s.Begin(now_s, race.outlook), now_s)

    def facts_of(self, model: str | None, input_tokens: int) -> RequestFacts:
        facts = self.facts.get((model, input_tokens))
        if facts is None:
            facts = self.facts[(model, input_tokens)] = RequestFacts(
                dialect="attempts",
                model=model,
                stream=self.stream,
                input_tokens_estimate=input_tokens,
                answer_known=True,
            )
        return facts

    def tell(self, number: int, race: SimulatedRace, signal: s.Signal, now_s: float) -> None:
        race.state, actions = advance(race.state, signal)
        for action in actions:
            OBEY[type(action)](self, number, race, action, now_s)

    def launch(self, number: int, race: SimulatedRace, action: s.Launch, now_s: float) -> None:
        row = race.sent.rows[action.attempt]
        due_s = now_s + (row.ttft_s if self.stream else row.ends_s)  # when it is committed to, or fails
        race.outcome.launched_s.append(now_s)
        race.due_s.append(due_s)
        heappush(self.events, (due_s, ENDS, number, action.attempt))

    def wake(self, number: int, race: SimulatedRace, action: s.Wake, now_s: float) -> None:
        """Set the timer for `at_s`, the machine's own reckoning as if nothing more came, or for what will come of it."""
        race.check += 1
        at_s = action.at_s
        if at_s is None:
            return
        if race.state.stage is Stage.RACING and race.state.retry_at_s is None:
            decided_by_s, may_be_slow = self.expects(race)
            if at_s >= decided_by_s and not may_be_slow:
                return  # tokens only put trouble off, unless they come slowly: three of four races end here
            check_s = race.trouble_at(now_s)
            if self.timed:
                check_s = min(check_s, at_s)
            if check_s >= decided_by_s:
                return
            # The machine has just looked, and said not yet: where rounding says now, time must pass all the same.
            at_s = max(check_s, min(at_s, now_s + NO_TIME_S))
        heappush(self.events, (at_s, CHECK, number, race.check))

    def expects(self, race: SimulatedRace) -> tuple[float, bool]:
        """By when nothing that runs now runs undecided, and whether an attempt may be in trouble by its pace until then."""
        decided_by_s, may_be_slow = -inf, False
        for entrant in race.state.entrants:
            if entrant.fate is Fate.LIVE:
                due_s = race.due_s[entrant.number]
                decided_by_s = due_s if due_s > decided_by_s else decided_by_s
                slow = not self.stream and race.sent.rows[entrant.number].token_s > race.outlook.slow_pace_s
                may_be_slow = may_be_slow or slow
        return decided_by_s, may_be_slow

    def ask(self, number: int, race: SimulatedRace, ask: s.Ask, now_s: float) -> None:
        race.outcome.wanted |= ask.failed is None
        entrants = race.state.entrants
        permit = NONE_LEFT
        if len(entrants) < len(race.sent.rows):
            permit = self.pilot.ask(race.flight, ask, entrants, now_s)
        self.tell(number, race, s.reply(ask, permit, now_s, self.view(race, now_s)), now_s)

    def end(self, number: int, race: SimulatedRace, attempt: int, now_s: float) -> None:
        row = race.sent.rows[attempt]
        if row.status != 200:
            failure = failure_of_status(row.status)
            self.pilot.failed(race.flight, race.state.entrants[attempt], failure, now_s)
            self.tell(number, race, s.Failed(now_s, attempt, failure, self.view(race, now_s)), now_s)
        elif self.stream:
            self.tell(number, race, s.Content(now_s, attempt), now_s)
        else:
            self.tell(number, race, s.Answered(now_s, attempt, True), now_s)
            self.complete(number, race, attempt, now_s)

    def commit(self, number: int, race: SimulatedRace, action: s.Commit, now_s: float) -> None:
        outcome, primary, winner = race.outcome, race.sent.rows[0], action.attempt
        outcome.winner, outcome.decided_s = winner, now_s
        age_s = now_s - race.sent.start_s
        first_s = min(primary.ttft_s, age_s) if primary.status == 200 else age_s
        caller_s = outcome.first_token_s if self.by_age else None
        self.pilot.decided(race.flight, race.state, first_s=first_s, caller_s=caller_s, now_s=now_s)
        if self.stream:
            ends_s = outcome.launched_s[winner] + race.sent.rows[winner].ends_s
            heappush(self.events, (ends_s, ANSWER_ENDS, number, winner))

    def complete(self, number: int, race: SimulatedRace, winner: int, now_s: float) -> None:
        """The winner's answer is there to its last token."""
        outcome = race.outcome
        row = race.sent.rows[winner]
        losers: tuple[int, ...] = ()
        if len(outcome.launched_s) > 1:
            entrants, rows = race.state.entrants, race.sent.rows
            losers = tuple([e.target for e in entrants if e.number != winner and rows[e.number].status == 200])
        pace_s = (row.ends_s - row.ttft_s) / row.output_tokens
        answer = Answer(output_tokens=row.output_tokens, pace_s=pace_s, pause_s=row.pause_s, billed_losers=losers)
        caller_s = now_s - race.sent.start_s if self.by_age else None
        self.pilot.answered(race.flight, answer, caller_s=caller_s, now_s=now_s)
        self.pilot.over(race.flight, race.state, answered=True)
        del self.open[number]

    def cancel(self, _number: int, race: SimulatedRace, action: s.Cancel, now_s: float) -> None:
        race.outcome.stopped_s[action.attempt] = now_s

    def give_up(self, _number: int, _race: SimulatedRace, _action: s.GiveUp, _now_s: float) -> None:
        """Which failure the caller gets makes no difference here."""

    def finish(self, number: int, race: SimulatedRace, action: s.Finish, now_s: float) -> None:
        """The end; where no answer will come (all failed, time ran out, the stream being delivered fell silent) the race
        is over, else when its answer is complete."""
        if action.outcome == "answered":
            return
        outcome = race.outcome
        if outcome.decided_s is None:
            self.pilot.decided(race.flight, race.state, first_s=None, caller_s=None, now_s=now_s)
            outcome.decided_s = now_s
        outcome.winner = None
        self.pilot.over(race.flight, race.state, answered=False)
        del self.open[number]

    def view(self, race: SimulatedRace, now_s: float) -> s.View:
        race.outlook = self.pilot.outlook(race.flight, now_s)
        return s.View(tuple(race.progress(entrant.number, now_s) for entrant in race.running), race.outlook)


# What is done about each action of the machine: (run, number of the request, its race, the action, now).
OBEY: Mapping[type[s.Action], Callable[[_Run, int, SimulatedRace, Any, float], None]] = {
    s.Wake: _Run.wake,
    s.Launch: _Run.launch,
    s.Commit: _Run.commit,
    s.Finish: _Run.finish,
    s.Ask: _Run.ask,
    s.Cancel: _Run.cancel,
    s.GiveUp: _Run.give_up,
}
