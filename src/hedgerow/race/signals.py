"""The words between driver and machine: signals tell what happened, actions say what to do about it.

`at_s` is always the race clock's now. A signal is sent for what changes the race, never per chunk: the chunks' progress
comes as a snapshot with each Tick.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from hedgerow.policy.gate import Permit
from hedgerow.policy.trouble import NOTHING_LATE, Outlook, Progress
from hedgerow.values.failure import Failure
from hedgerow.values.race import Ask

__all__ = [
    "Action",
    "Answered",
    "Ask",
    "Begin",
    "Cancel",
    "Commit",
    "Content",
    "Ended",
    "Failed",
    "Finish",
    "GiveUp",
    "Granted",
    "Launch",
    "Left",
    "Postponed",
    "Refused",
    "Signal",
    "Tick",
    "View",
    "Wake",
    "reply",
]


@dataclass(frozen=True, slots=True)
class View:
    """The moment as the driver sees it: one Progress per live attempt, and what is normal now. `elsewhere`: what is normal
    at the backup targets, where there are attempts."""

    progress: tuple[Progress, ...] = ()
    outlook: Outlook = NOTHING_LATE
    elsewhere: Mapping[int, Outlook] | None = None

    def outlook_at(self, target: int) -> Outlook:
        """What is normal at a target."""
        return self.outlook if self.elsewhere is None else self.elsewhere.get(target, self.outlook)


BLIND = View()


@dataclass(frozen=True, slots=True)
class Begin:
    """The request has come."""

    at_s: float
    outlook: Outlook = NOTHING_LATE


@dataclass(frozen=True, slots=True)
class Tick:
    """The timer fired."""

    at_s: float
    view: View = BLIND


@dataclass(frozen=True, slots=True)
class Content:
    """An attempt's first content has arrived (or its response, where no dialect can read the answer). `readable`: we could look
    into it; if not, these are bytes of which nobody knows whether content is among them, and each read is told."""

    at_s: float
    attempt: int
    readable: bool = True


@dataclass(frozen=True, slots=True)
class Answered:
    """An attempt's answer is complete; `valid` as errors.md defines it. `readable`: we could look into it. `aside`: a redirect,
    or another status that is neither an error nor an answer."""

    at_s: float
    attempt: int
    valid: bool
    readable: bool = True
    aside: bool = False


@dataclass(frozen=True, slots=True)
class Failed:
    """An attempt failed before it was committed to."""

    at_s: float
    attempt: int
    failure: Failure
    view: View = BLIND


@dataclass(frozen=True, slots=True)
class Granted:
    """The gate allows the attempt that was asked for, at this target."""

    at_s: float
    target: int
    view: View = BLIND


@dataclass(frozen=True, slots=True)
class Refused:
    """The gate does not allow it."""

    at_s: float
    view: View = BLIND


@dataclass(frozen=True, slots=True)
class Postponed:
    """The attempt `failed` may be replaced, but only where it failed, and not before `until_s`."""

    at_s: float
    failed: int
    until_s: float
    view: View = BLIND


@dataclass(frozen=True, slots=True)
class Ended:
    """The committed stream is over; `failure` if it was cut or ended in an error."""

    at_s: float
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class Left:
    """The caller has gone: cancelled, closed the response, or dropped it unread."""

    at_s: float


def reply(ask: Ask, permit: Permit, at_s: float, view: View) -> Granted | Refused | Postponed:
    """What an answer to an Ask is to the machine."""
    if permit.target is not None:
        return Granted(at_s, permit.target, view)
    if permit.pause_s is not None and ask.failed is not None:
        return Postponed(at_s, ask.failed, at_s + permit.pause_s, view)
    return Refused(at_s, view)


@dataclass(frozen=True, slots=True)
class Launch:
    """Start this attempt now."""

    attempt: int
    target: int
    reason: str


@dataclass(frozen=True, slots=True)
class Cancel:
    """Close this attempt; nobody waits for it."""

    attempt: int


@dataclass(frozen=True, slots=True)
class Wake:
    """Send a Tick at this moment; None = no timer. Replaces the one set before."""

    at_s: float | None


@dataclass(frozen=True, slots=True)
class Commit:
    """The caller gets this attempt's answer."""

    attempt: int


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The caller gets this attempt's failure."""

    attempt: int


@dataclass(frozen=True, slots=True)
class Finish:
    """Nothing more will happen. `outcome`: answered, failed, caller_left or deadline."""

    outcome: str


Signal = Begin | Tick | Content | Answered | Failed | Granted | Refused | Postponed | Ended | Left
Action = Launch | Cancel | Wake | Ask | Commit | GiveUp | Finish
