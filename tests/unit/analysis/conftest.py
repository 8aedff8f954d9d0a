"""Attempts written by hand."""

from collections.abc import Callable

import pytest

from hedgerow.analysis.attempts import Row, Sent

Send = Callable[..., Sent]


@pytest.fixture
def send() -> Send:
    """A request at a time, with one attempt for each dict of what differs from an ordinary one (0.5 s, 50 · 0.01 s)."""

    def sent(start_s: float, *attempts: dict[str, float], input_tokens: int = 100) -> Sent:
        usual: dict[str, float] = {
            "ttft_s": 0.5,
            "token_s": 0.01,
            "output_tokens": 50,
            "stall_after": 1,
            "stall_s": 0.0,
            "status": 200,
        }
        rows = tuple(Row(**{**usual, **attempt}) for attempt in attempts or ({}, {}, {}))  # type: ignore[arg-type]
        return Sent(start_s, input_tokens, 1.0, 4.0, None, None, rows)

    return sent
