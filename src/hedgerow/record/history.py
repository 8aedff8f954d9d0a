"""Writes a race down as an Event. Pure."""

from dataclasses import dataclass
from datetime import datetime

from hedgerow.call_context import CallContext
from hedgerow.dialects.headers import Headers
from hedgerow.policy.pilot import Flight
from hedgerow.race.attempt import CHARS_PER_TOKEN, Attempt
from hedgerow.race.referee import RaceSeen
from hedgerow.record.ids import uuid7
from hedgerow.short_text import MOST_COUNTED, name_of
from hedgerow.values.answer import AnswerFacts
from hedgerow.values.event import AttemptEvent, Event
from hedgerow.values.race import Entrant, Fate

__all__ = ["CLIENT", "Circumstances", "Origin", "event_of"]

REQUEST_ID_HEADERS = frozenset({b"x-request-id", b"request-id", b"apim-request-id", b"x-generation-id"})
NOTHING_READ = AnswerFacts()


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """What all events of a hedger have in common. source: which process ("host:pid"); policy: its name."""

    policy: str = "default"
    measured_at: str = "client"
    source: str = ""


CLIENT = Origin()


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What an event tells beyond the race: when it began (UTC), where from, what its caller said, and what the pilot thought."""

    at: datetime
    origin: Origin
    flight: Flight
    said: CallContext
    sdk_retry: int = 0


def event_of(race: RaceSeen, seen: Circumstances) -> Event:
    """The record of a race that is over and closed."""
    facts, began_s, outcome = race.order.facts, race.state.began_s, race.outcome or "failed"
    chosen = race.attempts[race.chosen] if race.chosen is not None else None
    flight, wish = seen.flight, seen.flight.wish
    verdict = flight.plan.verdict
    committed = chosen is not None and race.state.entrants[chosen.number].failure is None
    return Event(
        id=seen.said.id or uuid7(seen.at),
        at=seen.at,
        measured_at=seen.origin.measured_at,
        source=seen.origin.source,
        route=seen.said.route,
        policy=seen.origin.policy,
        segment=seen.said.segment,
        client_key=seen.said.client_key,
        trace_id=seen.said.trace_id,
        mode="observe" if verdict == "observe" else "act",
        dialect=facts.dialect,
        model=facts.model,
        stream=facts.stream,
        upstream_stream=race.order.as_stream is not None,
        tools=facts.tools,
        effort=facts.effort,
        deadline_s=race.state.rules.timeout_s if flight.deadline_s is None else flight.deadline_s,
        input_tokens_estimate=facts.input_tokens_estimate,
        max_output_tokens=_count(facts.max_output_tokens),
        sdk_retry=min(seen.sdk_retry, MOST_COUNTED),
        plan=race.plan,
        d_s=wish.limit_s if wish else None,
        b_s=wish.b_s if wish else None,
        tau_s=wish.tau_s if wish else None,
        inflation=wish.inflation if wish else None,
        win_rate=wish.win_rate if wish else None,
        bucket=wish.bucket if wish else None,
        trigger_at_s=_since(began_s, race.trigger_at_s),
        outcome=outcome,
        error=_error_of(race, chosen) if outcome != "answered" else None,
        winner=chosen.number if chosen is not None and outcome == "answered" else None,
        first_token_s=_since(began_s, chosen.first_token_s) if chosen and committed else None,
        first_delivered_s=_since(began_s, race.delivered_s) if committed else None,
        full_response_s=_since(began_s, race.over_s) if outcome == "answered" else None,
        attempts=tuple(
            _attempt_event(attempt, entrant, race, flight.places[attempt.target].name)
            for attempt, entrant in zip(race.attempts, race.state.entrants, strict=True)
        ),
    )


def _attempt_event(attempt: Attempt, entrant: Entrant, race: RaceSeen, target: str) -> AttemptEvent:
    facts = attempt.reader.facts if attempt.reader is not None else NOTHING_READ
    headers = attempt.response.headers if attempt.response is not None else ()
    usage, failure = facts.usage, entrant.failure or attempt.failure
    status = attempt.response.status if attempt.response is not None else None
    return AttemptEvent(
        attempt=attempt.number,
        target=target,
        model=facts.model,
        service_tier=facts.service_tier,
        started_s=attempt.started_s - race.state.began_s,
        reason=attempt.reason,
        headers_s=_since(attempt.started_s, attempt.headers_s),
        first_token_s=_since(attempt.started_s, attempt.first_token_s),
        ended_s=_since(attempt.started_s, attempt.closed_s),
        outcome="abandoned" if attempt.runs_on else _outcome_of(entrant.fate),
        status=_count(failure.status if failure is not None and failure.status is not None else status),
        error=failure.error if failure is not None else None,
        upstream_request_id=_request_id(headers),
        tokens_seen=round((facts.visible_chars + facts.hidden_chars) / CHARS_PER_TOKEN),
        input_tokens=_count(usage.input_tokens) if usage else None,
        cached_tokens=_count(usage.cached_tokens) if usage else None,
        output_tokens=_count(usage.output_tokens) if usage else None,
        pool_wait_s=_since(attempt.started_s, attempt.connected_s),
        connection=None if attempt.reused is None else ("reused" if attempt.reused else "new"),
        close_s=_since(attempt.cancelled_s, attempt.closed_s),
    )


def _count(said: int | None) -> int | None:
    """What somebody else has counted, or a sum of it; None if that is no number that a call could have."""
    return said if said is not None and abs(said) <= MOST_COUNTED else None


def _request_id(headers: Headers) -> str | None:
    """The provider's own id of the call, whatever it calls it."""
    said = next((value for name, value in headers if name.lower() in REQUEST_ID_HEADERS), b"")
    return name_of(said.decode("latin-1"))


def _outcome_of(fate: Fate) -> str:
    """A kept answer that was not delivered lost; a live one at the end of a race cannot be."""
    return "lost" if fate in (Fate.KEPT, Fate.LIVE) else str(fate)


def _error_of(race: RaceSeen, chosen: Attempt | None) -> str | None:
    if race.outcome == "deadline":
        return "timeout_s"
    if chosen is None:
        return None
    failure = race.state.entrants[chosen.number].failure or chosen.failure
    return failure.error if failure is not None else None


def _since(start_s: float | None, end_s: float | None) -> float | None:
    return None if start_s is None or end_s is None else end_s - start_s
