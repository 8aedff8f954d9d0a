"""Who is in trouble, by hand: b = 0.5 s, τ = 0.01 s, f·D = 1 s, a pause of 0.15 s, an answer of 100 tokens."""

from math import inf

import pytest

from hedgerow.policy.trouble import NOTHING_LATE, Outlook, Progress, trouble_from, will_end_late
from hedgerow.values.race import Trigger

USUAL = Outlook(
    limit_s=1.0,
    b_s=0.5,
    tau_s=0.01,
    idle_s=0.15,
    slow_pace_s=0.015,
    expected_output=lambda seen: max(100.0, 1.1 * seen),
)
AGE = Outlook(limit_s=2.0)


def spoken(tokens: float, last_chunk_s: float, *, attempt: int = 0, pace_s: float | None = None) -> Progress:
    return Progress(attempt, 0.0, 0.4, last_chunk_s, tokens, pace_s)


def test_before_the_first_token_trouble_is_b_plus_limit_after_the_connection() -> None:
    assert trouble_from(Trigger.LAG, Progress(0, 10.0), USUAL, 10.0) == pytest.approx(11.5)


def test_what_was_due_before_is_due_now() -> None:
    assert trouble_from(Trigger.LAG, Progress(0, 10.0), USUAL, 14.0) == 14.0


def test_a_backup_is_judged_by_its_own_clock_with_four_times_the_limit() -> None:
    assert trouble_from(Trigger.LAG, Progress(1, 10.0), USUAL, 10.0) == pytest.approx(14.5)


def test_an_attempt_that_waits_for_a_connection_is_never_late_yet() -> None:
    assert trouble_from(Trigger.LAG, Progress(0, None), USUAL, 7.0) == pytest.approx(8.5)


def test_a_stall_after_the_first_token_is_trouble_a_fifth_later_than_one_before() -> None:
    assert trouble_from(Trigger.LAG, spoken(1, 0.6), USUAL, 0.6) == pytest.approx(0.5 + 1.2)


def test_the_time_of_what_is_written_puts_trouble_off_only_beyond_twice_b() -> None:
    # 20 tokens take 0.2 s and 100 take 1 s = 2·b, which a copy must do again; of 250 tokens 1.5 s count
    for tokens, from_s in ((20, 1.7), (100, 1.7), (250, 3.2)):
        assert trouble_from(Trigger.LAG, spoken(tokens, 0.6), USUAL, 0.6) == pytest.approx(from_s)


def test_a_stream_that_is_late_but_speaks_is_not_in_trouble_before_it_pauses() -> None:
    # late since 1.7 s, last chunk at 3 s: a silence of a quarter of the limit makes it trouble
    assert trouble_from(Trigger.LAG, spoken(20, 3.0), USUAL, 3.0) == pytest.approx(3.25)


@pytest.mark.parametrize(
    ("limit_s", "pause_s", "silent_s"),
    [
        (0.4, 0.0, 0.15),  # a quarter of the limit is no longer than an ordinary gap
        (4.0, 0.0, 1.0),
        (1.0, 0.6, 0.6),  # usual streams fall silent for so long
        (1.0, 9.0, 1.0),  # so many stalls are no reason to wait for longer than the limit
        (0.1, 9.0, 0.15),
    ],
)
def test_a_pause_is_a_stall_only_if_usual_streams_have_none_so_long(
    limit_s: float, pause_s: float, silent_s: float
) -> None:
    outlook = USUAL._replace(limit_s=limit_s, pause_s=pause_s)
    assert trouble_from(Trigger.LAG, spoken(20, 9.0), outlook, 9.0) == pytest.approx(9.0 + silent_s)


@pytest.mark.parametrize(
    ("tokens", "last_s", "pace_s", "late"),
    [
        # lag = 1.4 - 0.5 - 0.2 = 0.7; left 80: 0.7 + 80·0.04 = 3.9 ≥ 2; 80·0.05 = 4.0 > 0.5 + 1.0
        (20, 1.4, 0.05, True),
        # as slow as the bar, which is not above it
        (20, 1.4, 0.015, False),
        # 0.7 + 80·0.01 = 1.5 < 2: it will not end late enough
        (20, 1.4, 0.02, False),
        # lag = 4.5 - 0.5 - 0.9 = 3.1, but the last 10 tokens take 0.5 s: a copy needs 1.5 s
        (90, 4.5, 0.05, False),
        # beyond the usual length N(j) = 1.1·j = 220: 20 tokens left at 0.1 s = 2 s, a copy needs 0.5 + 2.2 = 2.7 s
        (200, 20.0, 0.1, False),
        (20, 1.4, None, False),
    ],
)
def test_a_slow_stream_is_known_before_it_is_late(
    tokens: float, last_s: float, pace_s: float | None, late: bool
) -> None:
    progress = spoken(tokens, last_s, pace_s=pace_s)
    assert will_end_late(progress, USUAL) is late
    if late:
        assert trouble_from(Trigger.LAG, progress, USUAL, last_s) == last_s


def test_a_slow_backup_has_four_times_as_long() -> None:
    # 0.7 + 80·0.04 = 3.9: beyond 2·1 s, within 2·4 s
    assert not will_end_late(spoken(20, 1.4, attempt=1, pace_s=0.05), USUAL)
    assert will_end_late(spoken(20, 1.4, attempt=1, pace_s=0.11), USUAL)


def test_nothing_is_late_while_nothing_is_known_or_the_trigger_is_off() -> None:
    waiting = Progress(0, 0.0)
    assert trouble_from(Trigger.LAG, waiting, NOTHING_LATE, 99.0) == inf
    assert trouble_from(Trigger.OFF, waiting, USUAL, 99.0) == inf
    assert not will_end_late(spoken(20, 1.4, pace_s=9.0), USUAL._replace(limit_s=None))


def test_a_first_token_trigger_is_content_once_content_has_come() -> None:
    assert trouble_from(Trigger.FIRST_TOKEN, Progress(0, 0.0), AGE, 0.0) == 2.0
    assert trouble_from(Trigger.FIRST_TOKEN, spoken(1, 0.4), AGE, 0.4) == inf


def test_a_response_trigger_does_not_look_at_tokens() -> None:
    assert trouble_from(Trigger.RESPONSE, spoken(50, 1.9), AGE, 1.9) == 2.0
