"""What the tail is made of, when it comes, and how often a user meets it."""

import numpy as np
import pytest
from tests.calls_by_hand import calls_of

from hedgerow.analysis.describe.hours import hours_of
from hedgerow.analysis.describe.odds import stalls_of
from hedgerow.analysis.describe.tail import tail_of
from hedgerow.analysis.p99 import p99_interval
from hedgerow.analysis.quantiles import quantiles_of


def test_a_tail_of_long_answers_goes_away_when_lengths_are_compared() -> None:
    rng = np.random.default_rng(1)
    tokens = np.round(np.exp(rng.normal(5, 1, 4000))) + 1
    found = tail_of(calls_of(0.5 + 0.01 * tokens, output_tokens=tokens))
    assert found.from_length is not None
    assert found.from_length > 0.95
    assert found.slowdown_p99 == pytest.approx(1.0, abs=0.05)


def test_a_tail_of_stalls_stays_when_lengths_are_compared() -> None:
    rng = np.random.default_rng(2)
    stalled = rng.random(4000) < 0.03
    found = tail_of(calls_of(1.0 + 10 * stalled + 0.1 * rng.random(4000), output_tokens=np.full(4000, 60.0)))
    assert found.from_length == pytest.approx(0.0, abs=0.01)
    assert found.slowdown_p99 == pytest.approx(10.4, rel=0.1)


def test_without_output_tokens_nobody_says_how_much_is_length() -> None:
    assert tail_of(calls_of(np.random.default_rng(3).lognormal(0, 1, 500))).from_length is None


def test_calls_that_are_slow_one_after_the_other_have_a_lift_and_independent_ones_have_none() -> None:
    rng = np.random.default_rng(4)
    alone = 1 + rng.random(20_000)
    together = alone.copy()
    for first in range(0, 20_000, 400):
        together[first : first + 20] += 5
    independent, clustered = tail_of(calls_of(alone)).lift, tail_of(calls_of(together)).lift
    assert independent is not None
    assert independent == pytest.approx(1.0, abs=0.3)
    assert clustered is not None
    assert clustered > 15


def test_stalls_are_counted_per_day_and_their_odds_in_a_row_and_at_once() -> None:
    total = np.ones(1000)
    total[::100] = 30.0
    found = stalls_of(calls_of(total, t_start=np.linspace(0, 2 * 86_400, 1000)), turns=25, parallel=16, stall_s=None)
    assert found is not None
    assert (found.n, found.threshold_s, found.slowest_s) == (10, 5.0, 30.0)
    assert found.per_day == pytest.approx(5.0)
    assert found.turns.chance == pytest.approx(1 - 0.99**25)
    assert found.turns.observed == pytest.approx(10 / 40)
    assert found.parallel.chance == pytest.approx(1 - 0.99**16)


def test_a_threshold_of_the_users_own_is_used() -> None:
    found = stalls_of(calls_of([1.0, 2.0, 3.0, 4.0]), turns=2, parallel=2, stall_s=2.5)
    assert found is not None
    assert (found.n, found.threshold_s, found.per_day) == (2, 2.5, None)


def test_stalls_count_answered_calls_only() -> None:
    found = stalls_of(calls_of([1.0, 1.0, 1.0, 99.0], ok=[True, True, True, False]), turns=2, parallel=2, stall_s=None)
    assert found is not None
    assert found.n == 0


def test_tail_hours_are_found_in_the_time_zone_asked_for() -> None:
    rng = np.random.default_rng(5)
    start = np.sort(rng.uniform(0, 10 * 86_400, 12_000))
    hour_utc = (start // 3600) % 24
    slow = rng.random(12_000) < np.where(hour_utc == 13, 0.5, 0.03)
    calls = calls_of(1 + 0.1 * rng.random(12_000) + 5 * slow, t_start=start)
    assert [hour.hour for hour in hours_of(calls, "UTC") or [] if hour.tail] == [13]
    assert [hour.hour for hour in hours_of(calls, "Asia/Tokyo") or [] if hour.tail] == [22]


def test_a_log_without_times_has_no_hours() -> None:
    assert hours_of(calls_of(np.ones(1000)), "UTC") is None


def test_quantiles_interpolate_and_leave_failed_calls_out() -> None:
    found = quantiles_of(np.array([1.0, 2.0, 3.0, 4.0, np.nan, np.inf]))
    assert (found.p50, found.n) == (2.5, 4)
    assert quantiles_of(np.array([np.nan])).as_dict() == {
        "p50": None, "p90": None, "p95": None, "p99": None, "p999": None, "n": 0
    }  # fmt: skip


@pytest.mark.parametrize("together", [1, 20])
def test_the_interval_of_a_p99_covers_it_also_where_slow_calls_come_in_runs(together: int) -> None:
    true_p99, n, covered, logs = 10.0, 10_000, 0, 200
    for seed in range(logs):
        rng = np.random.default_rng(seed)
        slow = np.repeat(rng.random(n // together) < 0.02, together)
        # A slow call takes 5 s and more, exponentially: half of the 2 % lie beyond 10 s.
        seconds = np.where(slow, 5 + rng.exponential(5 / np.log(2), n), 1 + rng.random(n))
        found = p99_interval(seconds)
        assert found is not None
        covered += found.low <= true_p99 <= found.high
        assert found.together == (together > 1) or not found.covers_less
    assert covered / logs >= 0.9


def test_too_few_calls_have_no_interval() -> None:
    assert p99_interval(np.ones(19)) is None
