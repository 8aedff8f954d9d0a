"""What a race asks of its surroundings: the values of this moment, leave to start an attempt, and someone to tell."""

from typing import TYPE_CHECKING, Protocol

from hedgerow.policy.gate import Permit
from hedgerow.policy.trouble import Outlook
from hedgerow.race.signals import Ask
from hedgerow.race.state import Entrant
from hedgerow.values.failure import Failure

if TYPE_CHECKING:
    from hedgerow.race.driver import Race

__all__ = ["Referee"]


class Referee(Protocol):
    """One per race. Its methods are called on the event loop, must not block and must not raise."""

    def outlook(self) -> Outlook:
        """What is normal for this request now."""
        ...

    def chars_per_token(self) -> float:
        """How many characters of text make a token for this kind of request."""
        ...

    def ask(self, race: "Race", ask: Ask) -> Permit:
        """May the next attempt start, and where?"""
        ...

    def failed(self, entrant: Entrant, failure: Failure) -> None:
        """An attempt failed; told before anything is asked because of it."""

    def decided(self, race: "Race") -> None:
        """The race has its winner, or will never have one. Once."""

    def over(self, race: "Race") -> None:
        """The answer has been delivered, has failed, or nobody wants it any more; `race.outcome` says which. Once."""

    def finished(self, race: "Race") -> None:
        """Nothing runs any more and every connection is closed. Once, the last word."""
