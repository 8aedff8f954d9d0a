"""Who is in trouble, and from when on. Pure: the same functions run live, in simulations and in property tests.

first_token: no content by the delay; response: no complete answer by the delay. A backup is judged by its own clock with
three times the delay (policy.md: a second backup hardly moves p99 but cuts p99.9, so it waits for real trouble).
"""

from dataclasses import dataclass
from enum import StrEnum
from math import inf

__all__ = ["NOTHING_LATE", "Outlook", "Progress", "Trigger", "trouble_from"]

BACKUP_PATIENCE = 3.0


class Trigger(StrEnum):
    """What makes an attempt late."""

    FIRST_TOKEN = "first_token"
    RESPONSE = "response"
    OFF = "off"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What is normal at this moment. `delay_s`: how long an attempt may take before it is late; None = nothing is late."""

    delay_s: float | None = None


NOTHING_LATE = Outlook()


@dataclass(frozen=True, slots=True)
class Progress:
    """How far one live attempt has come, times on the race's clock.

    `connected_s`: when it got its connection (None: it still waits for one, which says nothing about the provider).
    `first_token_s`: when its first content came; `tokens` visible so far; `last_chunk_s` when the last chunk came.
    """

    attempt: int
    connected_s: float | None
    first_token_s: float | None = None
    last_chunk_s: float | None = None
    tokens: float = 0.0


def trouble_from(trigger: Trigger, progress: Progress, outlook: Outlook, now_s: float) -> float:
    """The first moment, `now_s` or later, at which this attempt is in trouble if nothing more comes; inf = never.

    An attempt that waits for a connection is looked at again a whole delay from now: it cannot be late before.
    """
    if outlook.delay_s is None or trigger is Trigger.OFF:
        return inf
    if trigger is Trigger.FIRST_TOKEN and progress.first_token_s is not None:
        return inf
    patience_s = outlook.delay_s * (1.0 if progress.attempt == 0 else BACKUP_PATIENCE)
    if progress.connected_s is None:
        return now_s + max(patience_s, 1e-3)
    return max(now_s, progress.connected_s + patience_s)
