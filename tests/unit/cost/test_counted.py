"""What a call counts against a client key's day: what happened · what the record says · what is counted."""

from datetime import UTC, datetime
from typing import Any

import pytest

from hedgerow.cost.counted import counted_usd
from hedgerow.values.event import AttemptEvent, Event
from hedgerow.values.set_aside import NO_COST, SetAside

ASIDE = SetAside(usd=3.0, attempt_usd=1.0, output_tokens=100_000)
BACKGROUND = SetAside(usd=3.0, attempt_usd=1.0, output_tokens=100_000, runs_on=True)
TOLD = {"status": 200, "outcome": "won", "input_tokens": 10, "output_tokens": 10}
UNTOLD = {"status": 200, "outcome": "won", "first_token_s": 100.0}  # thought for 50,000 tokens
LEFT = {"status": 200, "outcome": "cancelled", "ended_s": 40.0}
LOST = {"status": 200, "outcome": "lost", "ended_s": 90.0}
REFUSED = {"status": 429, "outcome": "failed"}
UNSENT = {"status": None, "outcome": "failed", "error": "ConnectError"}


def event(*attempts: dict[str, Any], high_usd: float | None, outcome: str = "answered", stream: bool = True) -> Event:
    records = tuple(
        AttemptEvent(attempt=number, target="t", started_s=0.0, reason="primary", **attempt)
        for number, attempt in enumerate(attempts)
    )
    winner = next((record.attempt for record in records if record.outcome == "won"), None)
    return Event(
        id="e",
        at=datetime(2026, 12, 1, tzinfo=UTC),
        dialect="openai_chat",
        model="m",
        stream=stream,
        outcome=outcome,
        winner=winner,
        cost_high_usd=high_usd,
        attempts=records,
    )


@pytest.mark.parametrize(
    ("seen", "aside", "usd"),
    [
        (event(TOLD, high_usd=0.2), ASIDE, 0.2),
        (event(TOLD, LOST, high_usd=0.4), ASIDE, 0.4),
        (event(UNTOLD, high_usd=0.2), ASIDE, 0.2 + 0.5),
        (event(UNTOLD | {"first_token_s": 9_999.0}, high_usd=0.2), ASIDE, 1.0),
        (event(UNTOLD | {"first_token_s": 0.4}, high_usd=0.2), ASIDE, 0.2 + 0.002),
        (event(UNTOLD, high_usd=None), ASIDE, 1.0),
        (event(UNTOLD, LOST, high_usd=None), ASIDE, 2.0),
        (event(UNTOLD, LOST, LOST, LOST, high_usd=None), ASIDE, 3.0),
        (event(UNTOLD, high_usd=9.0), ASIDE, 9.0),  # what is known counts, though it is more than was set aside
        (event(LEFT, high_usd=0.1, outcome="caller_left"), ASIDE, 0.1 + 0.2),
        (event(LEFT, high_usd=0.1, outcome="caller_left"), BACKGROUND, 1.0),
        (event(LEFT, high_usd=0.1, outcome="caller_left", stream=False), ASIDE, 1.0),
        (event(LEFT, high_usd=0.0, outcome="caller_left", stream=False), ASIDE, 0.0),  # never sent
        (event(LEFT, high_usd=0.1, outcome="failed"), ASIDE, 0.1),  # the provider broke it off
        (event(REFUSED, high_usd=None, outcome="failed"), ASIDE, 0.0),
        (event(REFUSED, high_usd=0.01, outcome="failed"), ASIDE, 0.01),
        (event(UNSENT, high_usd=0.0, outcome="failed"), ASIDE, 0.0),
        (event(high_usd=None, outcome="failed"), ASIDE, 0.0),
        (event(UNTOLD, high_usd=None), NO_COST, 0.0),
    ],
)
def test_what_is_counted(seen: Event, aside: SetAside, usd: float) -> None:
    assert counted_usd(seen, aside) == pytest.approx(usd)
