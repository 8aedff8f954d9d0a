"""What a finished attempt can be billed for, read off its record alone: nothing, its own usage, or what there is to guess from.

Statuses: Azure's price page says that it may charge for a 400 (content filter) or 408, and not for 401 and 429.
"""

from enum import Enum, auto

from hedgerow.cost.bounds import Cut
from hedgerow.values.answer import Usage
from hedgerow.values.event import AttemptEvent, Event

__all__ = ["Billed", "billed", "cut_of", "usage_of", "winner_of"]

# Turned away before anything was made. 400, 408, 409, 500, 502 and 504 may come when the work has been done.
TURNED_AWAY = frozenset({401, 402, 403, 404, 405, 413, 415, 421, 422, 425, 429, 431, 498, 501, 503, 505, 529})

# The request never left: there was no connection for it to leave by.
NEVER_SENT = frozenset({"ConnectError", "ConnectTimeout", "PoolTimeout", "ProxyError", "UnsupportedProtocol"})

# These tell a count so far with every part of an answer; the others tell the whole count, at its end.
COUNTS_SO_FAR = frozenset({"anthropic", "gemini"})

# Nobody charges for these calls, whatever becomes of them.
FREE_DIALECTS = frozenset({"token_counts"})

NO_EFFORT = frozenset({"none", "off"})
HIDDEN_IF_ASKED, HIDDEN_UNASKED = (
    2.0,
    6.0,
)  # billed per seen token: English is 1, Chinese text seen by its length up to 4
FEW_TOKENS = 50


class Billed(Enum):
    """What kind of bill an attempt has."""

    NOTHING = auto()  # certainly not billed
    USAGE = auto()  # for the usage it has told
    ANSWER = auto()  # for a whole answer whose usage was never told
    REFUSAL = auto()  # an error that may have come after the work: nothing, or all of it
    CUT = auto()  # an answer that was cut short, by us or by the provider


def billed(attempt: AttemptEvent, event: Event) -> Billed:
    """Which of them it is."""
    if event.dialect in FREE_DIALECTS or _never_sent(attempt, event):
        return Billed.NOTHING
    if attempt.status in TURNED_AWAY and not attempt.tokens_seen:
        return Billed.NOTHING
    if attempt.input_tokens is not None and attempt.output_tokens is not None and _is_final(attempt, event):
        return Billed.USAGE
    if attempt.outcome == "won":
        return Billed.ANSWER
    if attempt.outcome == "failed" and (attempt.status or 0) >= 400 and not attempt.tokens_seen:
        return Billed.REFUSAL
    return Billed.CUT


def winner_of(event: Event) -> AttemptEvent | None:
    """The attempt that was delivered whole."""
    return next((each for each in event.attempts if each.attempt == event.winner), None)


def usage_of(attempt: AttemptEvent, event: Event) -> Usage:
    """The tokens the provider told; where it did not, the input by its length and the output as it was seen."""
    output_tokens = attempt.tokens_seen if attempt.output_tokens is None else attempt.output_tokens
    told = attempt.input_tokens
    if told is None:
        return Usage(input_tokens=cut_of(attempt, event).input_tokens, cached_tokens=0, output_tokens=output_tokens)
    return Usage(input_tokens=told, cached_tokens=attempt.cached_tokens or 0, output_tokens=output_tokens)


def cut_of(attempt: AttemptEvent, event: Event) -> Cut:
    """What there is to guess from: the attempt's own input or the winner's (same prompt), and what was seen of its output."""
    winner = winner_of(event)
    known = next((each for each in (attempt, winner) if each is not None and each.input_tokens is not None), None)
    input_tokens, cached_tokens = event.input_tokens_estimate, 0
    if known is not None and known.input_tokens is not None:
        input_tokens = known.input_tokens
        # A prompt cache belongs to its target: a copy sent elsewhere pays for all of its input.
        cached_tokens = (known.cached_tokens or 0) if known.target == attempt.target else 0
    return Cut(
        input_tokens=input_tokens,
        cached_tokens=cached_tokens,
        input_measured=known is attempt,
        tokens_seen=max(attempt.tokens_seen, attempt.output_tokens or 0),
        max_output_tokens=event.max_output_tokens,
        hidden_reasoning=_reasons_unseen(event, winner),
    )


def _never_sent(attempt: AttemptEvent, event: Event) -> bool:
    """It failed to connect; or others of the request are known to have had a connection, and this one had none."""
    if attempt.headers_s is not None or attempt.tokens_seen:
        return False
    recorded = any(each.connection is not None for each in event.attempts)
    return attempt.error in NEVER_SENT or (recorded and attempt.connection is None)


def _is_final(attempt: AttemptEvent, event: Event) -> bool:
    return attempt.outcome == "won" or event.dialect not in COUNTS_SO_FAR


def _reasons_unseen(event: Event, winner: AttemptEvent | None) -> bool:
    """Is the model likely to have been billed for reasoning that it did not show? By the winner's own bill, if it is known."""
    asked = event.effort is not None and event.effort not in NO_EFFORT
    if winner is None or winner.output_tokens is None:
        return asked
    factor = HIDDEN_IF_ASKED if asked else HIDDEN_UNASKED
    return winner.output_tokens > factor * winner.tokens_seen + FEW_TOKENS
