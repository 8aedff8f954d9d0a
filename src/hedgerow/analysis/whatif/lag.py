"""The lag rule over a log: the production race machine runs the calls and their copies in virtual time.

A log has no token times. `even` decoding spreads a stall over the answer; `gaps` takes the other extreme, each stall as one
silence at a random place.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from hedgerow.analysis.attempts import Row, Sent
from hedgerow.analysis.calls import Column
from hedgerow.analysis.foreseen import Outcome
from hedgerow.analysis.simulate import simulate
from hedgerow.analysis.whatif.parts import Parts
from hedgerow.analysis.whatif.raced import IN_FLIGHT_S, Field, Raced
from hedgerow.settings import Policy

__all__ = ["by_lag", "sents_of"]

FAILURE = 500


def by_lag(sents: Sequence[Sent], policy: Policy, *, stream: bool) -> Raced:
    """The calls under a policy. stream: also as streaming callers see it; else first tokens are NaN."""
    whole = simulate(sents, policy)
    first = simulate(sents, policy, stream=True) if stream else []
    costs = np.array([_extra_cost(outcome) for outcome in whole])
    return Raced(
        first_token_s=_seconds(outcome.first_token_s for outcome in first) if first else np.full(len(sents), np.nan),
        full_response_s=_seconds(outcome.response_s for outcome in whole),
        backups=np.array([len(outcome.launched_s) - 1.0 for outcome in whole]),
        cost_low=costs[:, 0],
        cost_high=costs[:, 1],
    )


def sents_of(field: Field, gaps: np.random.Generator | None, models: Sequence[str] | None = None) -> list[Sent]:
    """The calls as attempt-level data, each with itself as the primary and its copies as backups. gaps: draws where stalls
    fall, None = even decoding. models: whose statistics each call is judged by, None = all alike."""
    start = field.t_start - field.t_start[0]
    inputs = np.where(np.isnan(field.input_tokens), 0, field.input_tokens).astype(int)
    rows = zip(*(_rows(parts, gaps) for parts in (field.own, *field.copies)), strict=True)
    names = [None] * len(field) if models is None else models
    return [
        Sent(at_s, tokens, field.prices.input, field.prices.output, model, None, attempts)
        for at_s, tokens, model, attempts in zip(start.tolist(), inputs.tolist(), names, rows, strict=True)
    ]


def _rows(parts: Parts, gaps: np.random.Generator | None) -> list[Row]:
    n, answered = len(parts.first_token_s), parts.answered
    outputs = np.maximum(1, np.round(parts.output_tokens)).astype(int)
    if gaps is None:
        token, after, stall = parts.pace_s + parts.excess_s / outputs, np.ones(n, dtype=int), np.zeros(n)
    else:
        token, after, stall = parts.pace_s, (gaps.random(n) * outputs).astype(int) + 1, parts.excess_s
    first = np.where(answered, parts.first_token_s, parts.usual_first_s)  # a failure comes as late as a first token
    columns: Iterable[NDArray[np.generic]] = (first, token, outputs, after, stall, np.where(answered, 200, FAILURE))
    return [Row(*values) for values in zip(*(column.tolist() for column in columns), strict=True)]


def _extra_cost(outcome: Outcome) -> tuple[float, float]:
    """What this request cost beyond its primary's own answer, at least and at most."""
    low = high = 0.0
    if len(outcome.launched_s) == 1:
        return low, high
    sent = outcome.sent
    for attempt, launched_s in enumerate(outcome.launched_s):
        row = sent.rows[attempt]
        if row.status != 200:
            continue
        whole, stopped_s = sent.cost(row.output_tokens), outcome.stopped_s.get(attempt)
        high += whole
        low += whole if stopped_s is None else sent.cost(row.tokens_by(stopped_s - launched_s + IN_FLIGHT_S))
    alone = sent.cost(sent.rows[0].output_tokens)
    return low - alone, high - alone


def _seconds(values: Iterable[float | None]) -> Column:
    return np.array([np.inf if value is None else value for value in values])
