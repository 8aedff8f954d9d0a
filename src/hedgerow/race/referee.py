"""What a race asks of its surroundings: the values of this moment, leave to start an attempt, and someone to tell."""

from collections.abc import Sequence
from typing import Protocol

from hedgerow.policy.gate import Permit
from hedgerow.policy.trouble import Outlook
from hedgerow.race.attempt import Attempt
from hedgerow.race.order import Order
from hedgerow.values.failure import Failure
from hedgerow.values.race import Ask, Entrant, RaceState

__all__ = ["RaceSeen", "Referee"]


class RaceSeen(Protocol):
    """A race as those see it who do not drive it. `chosen`: the attempt whose answer or error the caller gets; `outcome`: how
    it ended, None while it runs. Times are on the race's clock: a backup was first wanted, the caller took the first bytes, all
    was over."""

    @property
    def state(self) -> RaceState: ...

    @property
    def order(self) -> Order: ...

    @property
    def attempts(self) -> Sequence[Attempt]: ...

    @property
    def chosen(self) -> int | None: ...

    @property
    def outcome(self) -> str | None: ...

    @property
    def trigger_at_s(self) -> float | None: ...

    @property
    def delivered_s(self) -> float | None: ...

    @property
    def over_s(self) -> float | None: ...

    @property
    def plan(self) -> str:
        """ "hedge", or why there was no backup ("cold", "budget"…), as the event says it."""
        ...


class Referee(Protocol):
    """One per race. Its methods are called on the event loop, must not block and must not raise."""

    def plan(self, race: RaceSeen) -> str:
        """What the request's plan came to, as the event says it."""
        ...

    def outlook(self, target: int = 0) -> Outlook:
        """What is normal for this request now, at a target."""
        ...

    def chars_per_token(self, target: int) -> float:
        """How many characters of text make a token for this kind of request, at a target."""
        ...

    def ask(self, race: RaceSeen, ask: Ask) -> Permit:
        """May the next attempt start, and where?"""
        ...

    def failed(self, entrant: Entrant, failure: Failure) -> None:
        """An attempt failed; told before anything is asked because of it."""

    def decided(self, race: RaceSeen) -> None:
        """The race has its winner, or will never have one. Once."""

    def over(self, race: RaceSeen) -> None:
        """The answer has been delivered, has failed, or nobody wants it any more; `race.outcome` says which. Once."""

    def finished(self, race: RaceSeen) -> None:
        """Nothing runs any more and every connection is closed. Once, the last word."""
