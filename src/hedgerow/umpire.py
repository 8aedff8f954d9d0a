"""The referee of one race: asks the pilot, and passes on to it what the race tells."""

import logging
from collections.abc import Callable
from dataclasses import replace
from random import Random

from hedgerow.clock import Clock
from hedgerow.dialects.rate_limits import room_left
from hedgerow.policy.gate import Permit
from hedgerow.policy.pilot import Answer, Flight, Pilot
from hedgerow.policy.trouble import Outlook
from hedgerow.race.attempt import Attempt
from hedgerow.race.referee import RaceSeen
from hedgerow.values.failure import Failure
from hedgerow.values.race import Ask, CommitOn, Entrant, Fate

__all__ = ["Umpire"]

PAUSE_SPREAD = 0.25
log = logging.getLogger("hedgerow")


class Umpire:
    """Referee. on_finished: told last, when everything is closed."""

    def __init__(
        self, pilot: Pilot, flight: Flight, clock: Clock, random: Random, on_finished: Callable[[RaceSeen], None]
    ) -> None:
        self._pilot, self._flight, self._clock, self._on_finished = pilot, flight, clock, on_finished
        self._random = random

    def plan(self, race: RaceSeen) -> str:
        return self._flight.plan_after(len(race.attempts))

    def outlook(self, target: int = 0) -> Outlook:
        return self._pilot.outlook(self._flight, self._clock.now(), target)

    def chars_per_token(self, target: int) -> float:
        known = self._pilot.known_at(self._flight, target)
        return known.chars_per_token if target and known.answers else self._flight.usual.chars_per_token

    def ask(self, race: RaceSeen, ask: Ask) -> Permit:
        permit = self._pilot.ask(self._flight, ask, race.state.entrants, self._clock.now())
        if permit.pause_s is None:
            return permit
        # Without it all who met an outage would come back together.
        spread = self._random.uniform(1 - PAUSE_SPREAD, 1 + PAUSE_SPREAD)
        return replace(permit, pause_s=permit.pause_s * spread)

    def failed(self, entrant: Entrant, failure: Failure) -> None:
        if self._pilot.failed(self._flight, entrant, failure, self._clock.now()):
            name = self._flight.places[entrant.target].name
            log.warning("backups to %s fail with %s (%s): check its settings", name, failure.status, failure.error)

    def decided(self, race: RaceSeen) -> None:
        first_s = caller_s = None
        if _has_content(race):
            # From the primary's start, whoever won: dropping the losers' times would make the quantile drift.
            caller_s = self._age_of(race)
            primary = race.attempts[0]
            seen_s = primary.first_token_s
            first_s = caller_s if seen_s is None else seen_s - self._start_of(race)
        self._pilot.decided(self._flight, race.state, first_s=first_s, caller_s=caller_s, now_s=self._clock.now())
        if first_s is not None and len(race.attempts) > 1:
            self._learn_elsewhere(race)

    def over(self, race: RaceSeen) -> None:
        for attempt in race.attempts:
            if attempt.response is not None and (room := room_left(attempt.response.headers)) is not None:
                self._pilot.gate.note_room(
                    self._flight.places[attempt.target], self._flight.key, room, self._clock.now()
                )
        answered = race.outcome == "answered"
        if answered and _has_content(race) and race.chosen is not None:
            answer = self._answer(race, race.attempts[race.chosen])
            self._pilot.answered(self._flight, answer, caller_s=self._age_of(race), now_s=self._clock.now())
        self._pilot.over(self._flight, race.state, answered=answered)

    def finished(self, race: RaceSeen) -> None:
        self._on_finished(race)

    def _answer(self, race: RaceSeen, winner: Attempt) -> Answer:
        """What the winner's answer tells of lengths and pace; the latter only where the stream could be watched."""
        assert winner.reader is not None
        facts = winner.reader.facts
        tokens = facts.visible_chars / winner.chars_per_token
        if facts.usage is not None:
            known = self._pilot.known_at(self._flight, winner.target)
            known.learn_cached(facts.usage.cached_tokens)
            known.learn_chars(facts.visible_chars, facts.usage.output_tokens - facts.usage.reasoning_tokens)
        losers = tuple(
            e.target
            for e in race.state.entrants
            if e.fate is Fate.LOST or (e.number != winner.number and e.fate is Fate.FAILED)
        )
        if not winner.streamed or winner.first_token_s is None or winner.last_chunk_s is None or tokens < 1:
            return Answer(output_tokens=tokens, target=winner.target, billed_losers=losers)
        spoke_s = winner.last_chunk_s - winner.first_token_s
        return Answer(
            output_tokens=tokens,
            pace_s=spoke_s / tokens,
            gap_s=spoke_s / max(1, facts.chunks - 1),
            pause_s=winner.longest_pause_s,
            target=winner.target,
            billed_losers=losers,
        )

    def _learn_elsewhere(self, race: RaceSeen) -> None:
        """The times of backups that went to a target of their own and won or lost there."""
        now_s = self._clock.now()
        for attempt, entrant in zip(race.attempts, race.state.entrants, strict=True):
            start_s, won = attempt.connected_s, entrant.fate is Fate.WON
            if attempt.target == 0 or start_s is None or not (won or entrant.fate is Fate.LOST):
                continue
            first_s = None if attempt.first_token_s is None else attempt.first_token_s - start_s
            age_s = now_s - start_s
            self._pilot.backed_up(self._flight, attempt.target, first_s=first_s, age_s=age_s, won=won, now_s=now_s)

    def _age_of(self, race: RaceSeen) -> float:
        return self._clock.now() - self._start_of(race)

    def _start_of(self, race: RaceSeen) -> float:
        """When the primary got its connection: waiting for one says nothing about the provider."""
        connected_s = race.attempts[0].connected_s
        return race.state.began_s if connected_s is None else connected_s


def _has_content(race: RaceSeen) -> bool:
    """Has the race a winner that said something?"""
    if race.chosen is None or race.state.rules.commit_on is CommitOn.HEADERS:
        return False
    reader = race.attempts[race.chosen].reader
    return reader is not None and reader.facts.failure is None and reader.facts.content
