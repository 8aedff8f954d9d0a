"""The policies by age, their delays and their costs, on calls written by hand."""

import numpy as np
import pytest

from hedgerow.analysis.calls import Column
from hedgerow.analysis.whatif.delays import rolling_quantile
from hedgerow.analysis.whatif.figures import Judge
from hedgerow.analysis.whatif.lag import by_lag, sents_of
from hedgerow.analysis.whatif.parts import Parts
from hedgerow.analysis.whatif.raced import Field, Prices, by_age, once, resent
from hedgerow.analysis.whatif.resample import Resamples
from hedgerow.settings import Policy
from hedgerow.units import Window


def parts(first_s: list[float], pace_s: list[float], tokens: list[float]) -> Parts:
    n = len(first_s)
    return Parts(
        first_token_s=np.array(first_s),
        pace_s=np.array(pace_s),
        excess_s=np.zeros(n),
        output_tokens=np.array(tokens),
        usual_first_s=np.full(n, 0.5),
        usual_pace_s=np.full(n, 0.01),
        first_token_known=True,
        whole_known=True,
        length_known=True,
    )


def field(own: Parts, copy: Parts, other: Parts | None = None) -> Field:
    n = len(own.first_token_s)
    return Field(
        t_start=np.arange(n, dtype=float),
        input_tokens=np.full(n, 100.0),
        own=own,
        copies=(copy, other or copy),
        prices=Prices(1.0, 4.0),
    )


ONE = field(parts([9.0], [0.01], [100.0]), parts([0.5], [0.01], [100.0]))


def test_a_backup_leaves_at_the_delay_and_the_first_whole_answer_counts() -> None:
    raced = by_age(ONE, np.array([2.0]))
    assert raced.full_response_s.tolist() == [2.0 + 1.5]
    assert raced.first_token_s.tolist() == [2.5]
    assert raced.backups.tolist() == [1.0]


def test_a_call_that_is_done_by_the_delay_has_no_backup() -> None:
    raced = by_age(ONE, np.array([10.0]))
    assert raced.full_response_s.tolist() == [10.0]
    assert (raced.backups.tolist(), raced.cost_high.tolist()) == ([0.0], [0.0])


def test_a_losing_primary_that_never_began_costs_its_input_at_least_and_its_answer_at_most() -> None:
    raced = by_age(ONE, np.array([2.0]))
    assert raced.cost_low.tolist() == [100.0]
    assert raced.cost_high.tolist() == [100.0 + 4 * 100.0]


def test_a_losing_backup_costs_the_tokens_it_had_sent_and_those_in_flight() -> None:
    lost = field(parts([0.5], [0.02], [100.0]), parts([1.0], [0.05], [100.0]))
    raced = by_age(lost, np.array([1.0]))
    assert raced.full_response_s.tolist() == [2.5]
    # closed 1.5 s after its start: tokens from 1.0 s on, every 0.05 s, until 0.15 s later.
    assert raced.cost_low[0] == pytest.approx(100 + 4 * (0.65 / 0.05 + 1))


def test_sent_twice_everything_has_a_backup_at_once() -> None:
    raced = by_age(ONE, np.array([0.0]))
    assert raced.full_response_s.tolist() == [1.5]


def test_a_resend_gives_up_the_first_copy() -> None:
    both = field(parts([2.5, 0.5], [0.01, 0.01], [100.0, 100.0]), parts([9.0, 0.5], [0.01, 0.01], [100.0, 100.0]))
    raced = resent(both, np.array([2.0, 2.0]))
    assert raced.full_response_s.tolist() == [12.0, 1.5]


def test_a_backup_that_fails_changes_nothing_and_costs_nothing() -> None:
    failing = field(parts([3.0], [0.01], [100.0]), parts([np.inf], [0.0], [100.0]))
    raced = by_age(failing, np.array([1.0]))
    assert raced.full_response_s.tolist() == [4.0]
    assert (raced.cost_low.tolist(), raced.cost_high.tolist()) == ([0.0], [0.0])


def test_a_delay_by_quantile_knows_only_the_calls_before() -> None:
    values = np.arange(1.0, 101.0)
    found = rolling_quantile(values, 0.5, Window(requests=50), values)
    assert np.isinf(found[:20]).all()
    assert found[20] == np.median(values[:20])
    assert found[99] == np.median(values[49:99])


def test_a_delay_by_quantile_can_look_back_a_time() -> None:
    start = np.arange(100.0) * 60
    found = rolling_quantile(np.arange(1.0, 101.0), 0.5, Window(requests=100_000, seconds=1800.0), start)
    assert found[99] == np.median(np.arange(70.0, 100.0))


@pytest.mark.parametrize("stream", [False, True])
def test_the_race_machine_runs_the_same_calls_and_copies(stream: bool) -> None:
    n = 400
    rng = np.random.default_rng(1)
    stalled = rng.random(n) < 0.05
    first = np.where(stalled, 20.0, 0.5)
    plain = parts([0.5] * n, [0.01] * n, [100.0] * n)
    calls = field(parts(first.tolist(), [0.01] * n, [100.0] * n), plain)
    raced = by_lag(sents_of(calls, None), Policy(budget=0.1, upstream_stream=True), stream=stream)
    late = np.flatnonzero(stalled & (np.arange(n) > 100))
    assert (raced.full_response_s[late] < 21).mean() > 0.8
    assert raced.full_response_s[~stalled] == pytest.approx(1.5)
    assert np.isnan(raced.first_token_s).all() == (not stream)
    assert raced.backups.sum() <= 2 + 0.1 * n + stalled.sum()


def test_stalls_as_silences_end_when_the_log_says() -> None:
    n = 50
    own = parts([0.5] * n, [0.01] * n, [100.0] * n)
    late = Parts(**{**{name: getattr(own, name) for name in Parts.__slots__}, "excess_s": np.full(n, 5.0)})
    for gaps in (None, np.random.default_rng(1)):
        sents = sents_of(field(late, own), gaps)
        assert [sent.rows[0].ends_s for sent in sents] == pytest.approx([6.5] * n)


def judged(slow: Column, copies: Column) -> tuple[float | None, tuple[float, float] | None]:
    n = len(slow)
    own, copy = (parts(column.tolist(), [0.01] * n, [100.0] * n) for column in (slow, copies))
    calls = field(own, copy)
    judge = Judge(calls, [once(calls)], [by_age(calls, np.zeros(n))], np.random.default_rng(1))
    found = judge.figures("fixed", [by_age(calls, np.full(n, 2.0))])
    return found.gain_share_p99, found.interval


def test_where_sending_twice_gains_nothing_there_is_no_share() -> None:
    slow = np.where(np.arange(2000) % 50 == 0, 9.0, 0.5)
    assert judged(slow, slow) == (None, None)


def test_the_share_of_the_gain_lies_in_its_interval() -> None:
    slow = np.where(np.random.default_rng(2).random(4000) < 0.03, 9.0, 0.5)
    share, found = judged(slow, np.full(4000, 0.5))
    assert share == pytest.approx((10 - 3.5) / (10 - 1.5), rel=0.01)
    assert found is not None
    assert found[0] <= share <= found[1]


def test_resampled_blocks_spread_as_much_as_the_slow_calls_clump() -> None:
    rng = np.random.default_rng(3)
    alone = 1 + (rng.random(5000) < 0.02) * rng.exponential(5, 5000)
    clumped = alone.copy()
    clumped.sort()
    tail, body = clumped[-100:], rng.permutation(clumped[:-100])
    clumped = np.concatenate([body[:2000], tail, body[2000:]])
    widths = []
    for column in (alone, clumped):
        resamples = Resamples.of(column, np.random.default_rng(4))
        found = resamples.interval(resamples.quantile([column], 0.99))
        assert found is not None
        widths.append(found[1] - found[0])
    assert widths[1] > 2 * widths[0]
