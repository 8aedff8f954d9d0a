"""One simulated request: what is to be seen of its attempts at a moment, and when they will be in trouble.

Live, the timer is set to when an attempt is in trouble if nothing more comes, and set again with each look; here what will
come is known, so it is set once to when the attempt will be in trouble.
"""

from bisect import bisect_left
from dataclasses import dataclass
from math import inf

from hedgerow.analysis.attempts import Row, Sent
from hedgerow.policy.pilot import Flight
from hedgerow.policy.trouble import TOKENS_FOR_PACE, Outlook, Progress, ends_beyond_limit, trouble_from, will_end_late
from hedgerow.values.race import Entrant, Fate, RaceState, Stage, Trigger

__all__ = ["Outcome", "SimulatedRace"]


@dataclass(slots=True)
class Outcome:
    """What became of one request. Times on the data's clock; `winner` None = it failed; `counted` = the policy may hedge it;
    `wanted` = a late attempt asked for a backup; `stopped_s`: when attempts were cancelled."""

    sent: Sent
    launched_s: list[float]
    stopped_s: dict[int, float]
    decided_s: float | None = None
    winner: int | None = None
    counted: bool = True
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


class SimulatedRace:
    """`check` numbers the timers: only the one set last counts. `due_s`: when each attempt is committed to, or fails."""

    __slots__ = ("check", "due_s", "flight", "outcome", "outlook", "sent", "state")

    flight: Flight
    state: RaceState
    outlook: Outlook

    def __init__(self, sent: Sent) -> None:
        self.sent, self.outcome, self.check = sent, Outcome(sent, [], {}), 0
        self.due_s: list[float] = []

    @property
    def running(self) -> list[Entrant]:
        """The attempts that are watched: the live ones, and a winner whose stream is being delivered."""
        return [entrant for entrant in self.state.entrants if entrant.fate in (Fate.LIVE, Fate.WON)]

    def progress(self, attempt: int, now_s: float) -> Progress:
        """What is to be seen of an attempt at this moment."""
        row, began_s = self.sent.rows[attempt], self.outcome.launched_s[attempt]
        tokens = row.tokens_by(now_s - began_s)
        return self._seen(attempt, tokens) if tokens else Progress(attempt, began_s)

    def trouble_at(self, now_s: float) -> float:
        """The first moment, now or later, at which every live attempt is in trouble and a backup can be asked for."""
        state = self.state
        if state.stage is not Stage.RACING or state.trigger_spent or not state.room or not state.rules.may_trigger:
            return inf
        at_s, live = now_s, state.live
        while live:
            latest_s = max(self._trouble_of(entrant.number, at_s) for entrant in live)
            if latest_s <= at_s or latest_s == inf:
                return latest_s
            at_s = latest_s
        return inf

    def _seen(self, attempt: int, tokens: int) -> Progress:
        row, began_s = self.sent.rows[attempt], self.outcome.launched_s[attempt]
        pace_s = row.token_s if tokens >= TOKENS_FOR_PACE else None
        return Progress(attempt, began_s, began_s + row.ttft_s, began_s + row.arrival_s(tokens), tokens, pace_s)

    def _trouble_of(self, attempt: int, from_s: float) -> float:
        """The same for one attempt, given all that it will send."""
        row, began_s, trigger = self.sent.rows[attempt], self.outcome.launched_s[attempt], self.state.rules.trigger
        first_s = began_s + row.ttft_s
        if trigger is not Trigger.LAG:
            return trouble_from(trigger, self.progress(attempt, from_s), self.outlook, from_s)
        if from_s < first_s:
            at_s = trouble_from(trigger, Progress(attempt, began_s), self.outlook, from_s)
            if at_s < first_s:
                return at_s
        if row.status != 200:
            return inf
        first = max(1, row.tokens_by(from_s - began_s))
        return min(self._silent_from(attempt, first, from_s), self._slow_from(attempt, first, from_s))

    def _silent_from(self, attempt: int, first: int, from_s: float) -> float:
        """When a pause after token `first` or a later one is trouble: only its stall can be one, unless every gap is."""
        row, began_s = self.sent.rows[attempt], self.outcome.launched_s[attempt]
        every_gap = row.token_s >= self.outlook.idle_s
        for token in range(first, row.output_tokens + 1) if every_gap else (row.stall_after,):
            if token < first or not (every_gap or row.stall_s > 0):
                continue
            seen, next_s = self._seen(attempt, token), began_s + row.arrival_s(token + 1)
            at_s = trouble_from(Trigger.LAG, seen, self.outlook, max(from_s, seen.last_chunk_s or 0.0))
            if at_s < next_s:
                return at_s
        return inf

    def _slow_from(self, attempt: int, first: int, from_s: float) -> float:
        """When its pace is trouble. The first half of that question only turns from no to yes, so it is searched by halves."""
        row = self.sent.rows[attempt]
        if row.token_s <= self.outlook.slow_pace_s:
            return inf
        tokens = range(max(first, TOKENS_FOR_PACE), row.output_tokens + 1)
        for token in tokens[
            bisect_left(tokens, True, key=lambda n: ends_beyond_limit(self._seen(attempt, n), self.outlook)) :
        ]:
            seen = self._seen(attempt, token)
            if will_end_late(seen, self.outlook):
                return max(from_s, seen.last_chunk_s or 0.0)
        return inf
