"""What a call counts against a client key's day: what it cost where that is known, and never less than its caller could hide.

A stream need not tell its usage, a model may have thought before its first word, and a caller may leave just before the bill. For
these the record's upper bound is a usual figure, which a caller can undercut on purpose.
"""

from hedgerow.cost.billable import winner_of
from hedgerow.values.event import Event
from hedgerow.values.set_aside import SetAside

__all__ = ["counted_usd"]

UNSEEN_TOKENS_PER_S = 500.0  # that nobody sees: a model that thinks is no faster; a short chat counts some 200 of them


def counted_usd(event: Event, set_aside: SetAside) -> float:
    """US dollars, for an event that has been priced."""
    high_usd = event.cost_high_usd
    if all(attempt.status is not None and attempt.status >= 400 for attempt in event.attempts):
        return high_usd or 0.0
    most_usd = min(set_aside.usd, set_aside.attempt_usd * len(event.attempts))
    if high_usd is None:
        return most_usd
    if not high_usd:
        return 0.0
    return max(high_usd, min(most_usd, high_usd + most_usd * _unseen(event, set_aside)))


def _unseen(event: Event, set_aside: SetAside) -> float:
    """The share of what was set aside that may have been used up unseen."""
    winner = winner_of(event)
    if winner is not None:
        if winner.output_tokens is not None:
            return 0.0
        seconds = winner.first_token_s or 0.0
    elif event.outcome != "caller_left":
        return 0.0
    elif set_aside.runs_on or not event.stream:
        return 1.0  # nobody stops half way with what is not sent in parts
    else:
        seconds = max((attempt.ended_s or 0.0 for attempt in event.attempts), default=0.0)
    return min(1.0, seconds * UNSEEN_TOKENS_PER_S / max(1, set_aside.output_tokens))
