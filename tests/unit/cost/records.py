"""Records of requests to put prices on: whole numbers, so that every expected cost can be worked out by hand."""

from datetime import UTC, datetime
from typing import Any

from hedgerow.cost.bounds import Usual
from hedgerow.cost.ledger import Bill, TargetBilling, bill_of
from hedgerow.cost.prices import PriceBook, PriceRule
from hedgerow.values.event import AttemptEvent, Event

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
OPENAI = "https://api.openai.com/v1"

# 1 USD per million of input, 0.1 if cached, 10 of output: with these, millionths of a dollar are easy to count.
ROUND = PriceBook([PriceRule(model="round", input=1.0, cached=0.1, output=10.0)])
MICRO = 1e-6


def attempt(number: int = 0, **fields: Any) -> AttemptEvent:
    return AttemptEvent(**{"attempt": number, "target": "home", "ended_s": 2.0, **fields})


def won(number: int = 0, **fields: Any) -> AttemptEvent:
    told = {"input_tokens": 1000, "cached_tokens": 0, "output_tokens": 200, "tokens_seen": 190}
    return attempt(
        number, **{"outcome": "won", "status": 200, "headers_s": 0.4, "first_token_s": 0.5, **told, **fields}
    )


def lost(number: int = 1, **fields: Any) -> AttemptEvent:
    return attempt(number, **{"outcome": "lost", "reason": "lag", **fields})


def event(*attempts: AttemptEvent, **fields: Any) -> Event:
    given = {
        "id": "e",
        "at": NOON,
        "dialect": "openai_chat",
        "model": "round",
        "stream": True,
        "outcome": "answered",
        "winner": next((each.attempt for each in attempts if each.outcome == "won"), None),
        "input_tokens_estimate": 900,
        "tau_s": 0.01,
        "attempts": attempts,
    }
    return Event(**{**given, **fields})


def bill(*attempts: AttemptEvent, book: PriceBook = ROUND, home: TargetBilling | None = None, **fields: Any) -> Bill:
    usual = fields.pop("usual", Usual(mean_output_tokens=150.0, q90_output_tokens=500.0))
    targets = {"home": home or TargetBilling(), "away": fields.pop("away", TargetBilling())}
    return bill_of(event(*attempts, **fields), book, targets=targets, usual=usual)
