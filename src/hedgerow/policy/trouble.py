"""Who is in trouble, and from when on. Pure: the same functions run live, in simulations and in property tests.

    lag = age − (b + j·τ)        b median first-token time, τ median seconds per token, j tokens seen (policy.md)

An attempt is in trouble when its lag reaches the limit while nothing comes, or when it is so slow that a fresh copy would
overtake it. An age trigger is the same rule with b = τ = 0. A backup is judged by its own clock with four times the limit.
"""

from collections.abc import Callable
from math import inf
from typing import NamedTuple

from hedgerow.values.race import Trigger

__all__ = [
    "NOTHING_LATE",
    "TOKENS_FOR_PACE",
    "Outlook",
    "Progress",
    "ends_beyond_limit",
    "trouble_from",
    "will_end_late",
]

BACKUP_PATIENCE = 4.0  # a second backup hardly moves p99 but cuts p99.9: it waits for real trouble
STALL_LIMITS = 1.2  # a stall after the first token is more often the request's own, which a copy would share
HEAD_START_BS = 2.0  # a copy writes again what is there already: the later a stall, the sooner it must start
LEAST_PAUSE_LIMITS = 0.25
TOKENS_FOR_PACE = 9
PROJECTED_LIMITS = 2.0
WHILE_QUEUED_S = 1e-3


def _same(seen: float) -> float:
    return 1.1 * seen


class Outlook(NamedTuple):
    """What is normal at this moment, in seconds. limit_s: how late is too late; None = nothing is late.

    slow_pace_s: seconds per token above which an attempt counts as slow. idle_s: a pause this long is no ordinary gap.
    expected_output: N(j), the length to expect of an answer of which j tokens are there. pause_s: the longest pause of nine
    answers of ten.
    """

    limit_s: float | None = None
    b_s: float = 0.0
    tau_s: float = 0.0
    idle_s: float = 0.15
    slow_pace_s: float = inf
    expected_output: Callable[[float], float] = _same
    pause_s: float = 0.0


NOTHING_LATE = Outlook()


class Progress(NamedTuple):
    """How far one live attempt has come, times on the race's clock.

    `connected_s`: when it got its connection (None: it still waits for one, which says nothing about the provider).
    `first_token_s`: when its first content came; `last_chunk_s` its last; `tokens` visible so far; `pace_s` seconds per token
    lately, from the 9th token on. `ended`: the answer has said its end, only its connection is still open.
    """

    attempt: int
    connected_s: float | None
    first_token_s: float | None = None
    last_chunk_s: float | None = None
    tokens: float = 0.0
    pace_s: float | None = None
    ended: bool = False


def trouble_from(trigger: Trigger, progress: Progress, outlook: Outlook, now_s: float) -> float:
    """The first moment, `now_s` or later, at which this attempt is in trouble if nothing more comes; inf = never.

    An attempt that waits for a connection is looked at again as if it got one now: it cannot be late before.
    """
    if outlook.limit_s is None or trigger is Trigger.OFF or progress.ended:
        return inf
    limit_s = outlook.limit_s * (1.0 if progress.attempt == 0 else BACKUP_PATIENCE)
    allowed_s = outlook.b_s + limit_s
    if progress.connected_s is None:
        return now_s + max(allowed_s, WHILE_QUEUED_S)
    if progress.first_token_s is None or trigger is Trigger.RESPONSE:
        return max(now_s, progress.connected_s + allowed_s)
    if trigger is Trigger.FIRST_TOKEN or progress.last_chunk_s is None:
        return inf
    if will_end_late(progress, outlook):
        return now_s
    written_s = progress.tokens * outlook.tau_s
    head_start_s = min(written_s, HEAD_START_BS * outlook.b_s)
    late_at_s = progress.connected_s + outlook.b_s + written_s - head_start_s + STALL_LIMITS * limit_s
    return max(now_s, late_at_s, progress.last_chunk_s + _long_pause_s(outlook, limit_s))


def _long_pause_s(outlook: Outlook, limit_s: float) -> float:
    """The shortest silence that may be a stall: longer than those of usual streams, but as long as the limit in any case."""
    return max(outlook.idle_s, min(max(outlook.pause_s, LEAST_PAUSE_LIMITS * limit_s), limit_s))


def will_end_late(progress: Progress, outlook: Outlook) -> bool:
    """At its pace, would the answer end much too late, and later than a copy started now? As of its last chunk."""
    if progress.pace_s is None or not ends_beyond_limit(progress, outlook):
        return False
    expected = outlook.expected_output(progress.tokens)
    return (expected - progress.tokens) * progress.pace_s > outlook.b_s + expected * outlook.tau_s


def ends_beyond_limit(progress: Progress, outlook: Outlook) -> bool:
    """At its pace, which is slow, would the answer end much too late? At an even pace this never turns from yes to no."""
    pace_s, seen = progress.pace_s, progress.tokens
    if pace_s is None or pace_s <= outlook.slow_pace_s or outlook.limit_s is None:
        return False
    if progress.connected_s is None or progress.last_chunk_s is None:
        return False
    left = outlook.expected_output(seen) - seen
    limit_s = outlook.limit_s * (1.0 if progress.attempt == 0 else BACKUP_PATIENCE)
    lag_s = progress.last_chunk_s - progress.connected_s - outlook.b_s - seen * outlook.tau_s
    return lag_s + left * (pace_s - outlook.tau_s) >= PROJECTED_LIMITS * limit_s
