"""The nouns of a race: its rules, its entrants, how far it has come. Immutable; only race/machine.py makes new states.

Entrants and states are named tuples: a race makes several, and a frozen dataclass takes three times as long to make.
"""

from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import NamedTuple

from hedgerow.values.failure import Failure, Repeats

__all__ = ["Ask", "AtHome", "CommitOn", "Entrant", "Fate", "RaceRules", "RaceState", "Stage", "Trigger"]


class Trigger(StrEnum):
    """What makes an attempt late."""

    LAG = "lag"
    FIRST_TOKEN = "first_token"
    RESPONSE = "response"
    OFF = "off"


class AtHome(Enum):
    """May an attempt that failed be replaced where it failed? Another key or base URL may always be asked."""

    NOW = "now"
    LATER = "later"  # after a pause: what failed at once would meet the same
    NEVER = "never"  # the client above will try again, with its own spacing


class CommitOn(Enum):
    """What ties the answer to one attempt."""

    COMPLETE = "complete"  # a buffered caller: the first complete valid answer
    CONTENT = "content"  # a streaming caller: the first content token
    HEADERS = "headers"  # an answer that no dialect can read: the response itself


class Stage(Enum):
    """RACING until the commit, DELIVERING while a committed stream runs on, OVER when nothing more can happen."""

    RACING = "racing"
    DELIVERING = "delivering"
    OVER = "over"


class Fate(StrEnum):
    """What became of an entrant. KEPT: a complete answer that is not valid, delivered only when nothing else is left; with a
    failure, one that could not be read."""

    LIVE = "live"
    KEPT = "kept"
    FAILED = "failed"
    LOST = "lost"
    WON = "won"
    CALLER_LEFT = "caller_left"
    DEADLINE = "deadline"


@dataclass(frozen=True, slots=True, kw_only=True)
class RaceRules:
    """What holds for this request from its start to its end; times in seconds, None = no limit.

    `stall_s`: a stream that has begun and then says nothing for so long has failed.

    `retried_above`: after which failures of this try the client above sends the request again, with its own spacing; None = after
    none. After the others an attempt that failed at once is replaced where it failed after a pause.

    `may_trigger`: a late attempt may be backed up. `may_rerun`: a failed attempt may be replaced. Both are False for what
    is not safe to run twice.
    """

    commit_on: CommitOn
    trigger: Trigger
    may_trigger: bool
    may_rerun: bool
    max_backups: int = 2
    resend: bool = False
    timeout_s: float | None = None
    attempt_timeout_s: float | None = None
    first_token_timeout_s: float | None = None
    stall_s: float | None = None
    retried_above: Repeats | None = None


class Entrant(NamedTuple):
    """One attempt as the race sees it. `started_s` is on the race's clock."""

    number: int
    target: int
    reason: str
    started_s: float
    fate: Fate = Fate.LIVE
    failure: Failure | None = None


class RaceState(NamedTuple):
    """A moment of a race. `trigger_spent`: a late attempt asked for a backup and was refused; it does not ask again.

    `wants` is the reason of a request for a backup that has not been answered yet. `retry_at_s`: when the failed attempt
    `retry_of` is to be replaced.
    """

    rules: RaceRules
    began_s: float
    stage: Stage = Stage.RACING
    entrants: tuple[Entrant, ...] = ()
    trigger_spent: bool = False
    wants: str | None = None
    retry_at_s: float | None = None
    retry_of: int | None = None

    @property
    def live(self) -> tuple[Entrant, ...]:
        """Entrants that still run."""
        return tuple(entrant for entrant in self.entrants if entrant.fate is Fate.LIVE)

    @property
    def room(self) -> bool:
        """May one more attempt enter, as far as `max_backups` goes?"""
        return len(self.entrants) <= self.rules.max_backups


@dataclass(frozen=True, slots=True)
class Ask:
    """May another attempt start? The answer is Granted, Refused or Postponed. `failed` is the attempt whose failure asks, if any;
    `at_home`: whether it may be replaced where it failed."""

    reason: str
    failed: int | None = None
    at_home: AtHome = AtHome.NOW
