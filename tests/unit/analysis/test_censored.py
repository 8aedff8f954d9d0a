"""Failed calls that ran long count as "at least": in percentiles, stalls, the verdict and what a backup would have done."""

from datetime import UTC, datetime

import numpy as np
import pytest
from tests.calls_by_hand import NAME, calls_of

from hedgerow.analysis.calls import Calls, KeyName
from hedgerow.analysis.censored import censored_quantiles, hung
from hedgerow.analysis.describe.analyze import KeyReport, Question, describe_key
from hedgerow.analysis.describe.cautions import cautions_about
from hedgerow.analysis.trace import KeyCount
from hedgerow.analysis.whatif.parts import parts_of
from hedgerow.analysis.whatif.raced import Prices, by_age
from hedgerow.analysis.whatif.recommend import policy_names
from hedgerow.analysis.whatif.run import field_of
from hedgerow.statistics.quantiles import SHARES

RNG = np.random.default_rng(4)
HANGS = RNG.random(1000) < 0.05
USUAL_S = RNG.lognormal(0.0, 0.2, 1000)


def timed_out(limit_s: float = 60.0) -> Calls:
    """1,000 calls of about a second, of which about 5 % failed after a time-out."""
    return calls_of(
        np.where(HANGS, np.nan, USUAL_S),
        ok=[bool(each) for each in ~HANGS],
        failed_s=np.where(HANGS, limit_s, np.nan),
        t_start=np.arange(1000) * 20.0,
        output_tokens=np.where(HANGS, np.nan, 100.0),
    )


def report_of(calls: Calls) -> KeyReport:
    count = KeyCount(NAME, len(calls), int((~calls.ok).sum()))
    return describe_key(calls, count, Question(at=datetime(2026, 12, 1, tzinfo=UTC)))[0]


@pytest.mark.parametrize("n", [1, 2, 7, 100, 1001])
def test_without_censored_calls_the_quantiles_are_those_of_linear_interpolation(n: int) -> None:
    full = RNG.gamma(2.0, size=n)
    found, at_least_s = censored_quantiles(full, np.empty(0), SHARES)
    assert found == pytest.approx(np.quantile(full, SHARES).tolist())
    assert at_least_s is None


def test_a_product_limit_by_hand() -> None:
    # Kaplan and Meier (1958): S falls to 3/4 at 1 s, to 3/8 at 3 s (two at risk), and to 0 at 4 s.
    found, at_least_s = censored_quantiles(np.array([1.0, 3.0, 4.0]), np.array([2.0]), (0.0, 0.25, 0.8))
    # The places of the full calls by interpolation: 0, (1/4)·4/3 = 1/3, and 1 for the last.
    assert found == pytest.approx([1.0, 1 + 2 * 0.75, 3 + (0.8 - 1 / 3) / (1 - 1 / 3)])
    assert at_least_s is None


def test_censoring_at_random_leaves_the_quantile_where_it_is() -> None:
    true, limit = RNG.exponential(1.0, 40_000), RNG.exponential(2.0, 40_000)
    seen = true <= limit
    found, _ = censored_quantiles(true[seen], limit[~seen], (0.5, 0.9))
    assert found == pytest.approx([np.log(2), np.log(10)], rel=0.04)
    assert np.quantile(true[seen], 0.9) < 0.8 * np.log(10)  # what leaving them out would say


def test_a_percentile_past_the_longest_answer_is_unknown_and_said_to_be_at_least() -> None:
    spread = report_of(timed_out()).full_response
    assert spread is not None
    shown = spread.as_dict()
    assert (shown["p99"], shown["p999"]) == (None, None)
    assert (shown["at_least"], shown["censored"]) == (60.0, int(HANGS.sum()))
    assert (spread.quantiles.p90 or 99.0) < 2


def test_calls_that_failed_at_once_change_nothing() -> None:
    calls = calls_of(USUAL_S, ok=[bool(each) for each in ~HANGS], failed_s=np.where(HANGS, 0.01, np.nan))
    shown = report_of(calls).full_response
    assert shown is not None
    assert "censored" not in shown.as_dict()
    assert not hung(calls, calls.total_s).any()
    assert not np.isfinite(parts_of(calls).first_token_s[HANGS]).any()


def test_they_are_stalls_and_make_the_key_a_flagged_one() -> None:
    report = report_of(timed_out())
    assert report.flagged
    assert report.stalls is not None
    assert (report.stalls.n, report.stalls.failed) == (HANGS.sum(), HANGS.sum())
    assert report.stalls.slowest_s == 60.0
    assert report.stalls.turns.chance == pytest.approx(1 - (1 - HANGS.mean()) ** 25)


def test_a_backup_rescues_them() -> None:
    field = field_of(timed_out(), Prices(1.0, 4.0), np.random.default_rng(1))
    assert len(field) == 1000
    raced = by_age(field, np.full(1000, 5.0))
    assert np.quantile(field.own.total_s, 0.99) == 60.0
    alone = HANGS & ~np.roll(HANGS, 1) & ~np.roll(HANGS, -1)  # their neighbours answered
    assert raced.full_response_s[alone].max() < 10.0


def test_a_log_of_cut_calls_is_told_so() -> None:
    (said,) = [caution for caution in cautions_about(timed_out(), 50) if "failed call" in caution]
    assert "60 s, as a time-out makes it" in said
    few = calls_of([1.0, 1.0, np.nan], ok=[True, True, False], failed_s=[np.nan, np.nan, 9.0])
    assert any("1 failed call ran for 9.0 s or longer" in caution for caution in cautions_about(few, 1))


def test_each_key_has_a_policy_name_of_its_own() -> None:
    names = policy_names(
        [
            KeyName(provider=provider, model=model)
            for provider, model in (("a", "b-c"), ("a-b", "c"), ("", "ü"), ("", ""))
        ]
    )
    assert names == ["a-b-c", "a-b-c-2", "recommended", "all-calls"]
