"""Signs that a log does not measure single calls."""

import numpy as np
from tests.calls_by_hand import calls_of

from hedgerow.analysis.describe.cautions import cautions_about

RNG = np.random.default_rng(1)
ORDINARY = RNG.lognormal(0, 0.5, 2000)


def said(cautions: list[str], word: str) -> bool:
    return any(word in caution for caution in cautions)


def test_an_ordinary_log_with_some_failures_needs_no_caution() -> None:
    start = np.cumsum(RNG.exponential(0.5, 2000))
    assert cautions_about(calls_of(ORDINARY, t_start=start), errors=12) == []


def test_milliseconds_taken_for_seconds() -> None:
    assert said(cautions_about(calls_of(ORDINARY * 1000), 1), "milliseconds")


def test_a_log_without_a_single_failure_may_have_lost_them() -> None:
    assert said(cautions_about(calls_of(ORDINARY), 0), "none of 2,000 calls failed")


def test_calls_that_end_just_after_a_round_time_out_hold_a_retry() -> None:
    total = ORDINARY.copy()
    total[:5] = 60.2
    assert said(cautions_about(calls_of(total), 1), "60 s and a little more")


def test_a_narrow_pile_beyond_the_median_is_a_back_off() -> None:
    total = ORDINARY.copy()
    total[:60] = 4.6 + 0.01 * RNG.random(60)
    assert said(cautions_about(calls_of(total), 1), "within 1 %")


def test_whole_seconds_are_pointed_out() -> None:
    start = np.round(np.cumsum(RNG.exponential(5, 2000)))
    assert said(cautions_about(calls_of(ORDINARY, t_start=start), 1), "whole seconds")


def test_moments_that_are_ends_are_recognised() -> None:
    ends = np.cumsum(ORDINARY + 0.05)
    assert said(cautions_about(calls_of(ORDINARY, t_start=ends), 1), "ends of calls")
    assert not said(cautions_about(calls_of(ORDINARY, t_start=ends - ORDINARY), 1), "ends of calls")
