"""The figures of a simulation, by hand. A request costs 100 + 4 · tokens; an ordinary attempt takes 0.5 + 50 · 0.01 s."""

import pytest

from hedgerow.analysis.figures import figures_of
from hedgerow.analysis.foreseen import Outcome


def test_a_loser_costs_its_whole_answer_at_most_and_at_least_what_it_had_sent(send) -> None:
    sent = send(0.0, {"stall_after": 10, "stall_s": 20.0}, {"ttft_s": 0.2})
    outcome = Outcome(sent, [0.0, 2.0], {0: 2.7}, 2.7, 1)
    cost = figures_of([outcome], "x").extra_cost
    # the primary alone: 100 + 4·50 = 300; both: 300 + 300; by 2.7 + 0.15 s the loser had sent 10 tokens: 140
    assert (cost.low, cost.high) == pytest.approx((140 / 300, 1.0))


def test_what_was_in_flight_when_a_loser_was_closed_is_paid(send) -> None:
    sent = send(0.0, {"output_tokens": 100}, {"ttft_s": 0.1})
    outcome = Outcome(sent, [0.0, 0.1], {0: 0.7}, 0.7, 1)
    cost = figures_of([outcome], "x").extra_cost
    # primary alone 500; winner 300; the loser, closed at 0.7 s, is paid for until 0.85 s: 36 tokens, 244
    assert (cost.low, cost.high) == pytest.approx(((244 + 300 - 500) / 500, 300 / 500))


def test_a_failed_attempt_costs_nothing(send) -> None:
    sent = send(0.0, {"status": 500}, {})
    figures = figures_of([Outcome(sent, [0.0, 0.5], {}, 1.5, 1)], "x")
    assert (figures.extra_cost.low, figures.extra_cost.high) == (None, None)  # a share of nothing
    assert (figures.failed, figures.full_response.n, figures.baseline.none.n, figures.baseline.twice.n) == (0, 1, 0, 1)


def test_shares_are_of_what_sending_everything_twice_gains(send) -> None:
    slow, quick = {"ttft_s": 9.5}, {}
    outcomes = [
        Outcome(send(0.0, slow, quick), [0.0, 4.0], {0: 5.0}, 5.0, 1),  # 5 s of 10 and 1
        Outcome(send(0.0, slow, quick), [0.0, 4.0], {0: 5.0}, 5.0, 1),
    ]
    figures = figures_of(outcomes, "x")
    assert (figures.baseline.none.p99, figures.full_response.p99, figures.baseline.twice.p99) == pytest.approx(
        (10, 5, 1)
    )
    assert figures.gain_share.p99 == pytest.approx(5 / 9)
    assert figures.gain_share_first_token.p99 == pytest.approx(5 / 9)
    assert figures.win_rate == 1.0
    assert figures.losing_backup_rate == 0.0


def test_a_share_of_no_gain_is_undefined(send) -> None:
    figures = figures_of([Outcome(send(0.0, {}, {}), [0.0], {}, 1.0, 0)], "x")
    assert figures.gain_share.p99 is None
    assert figures.win_rate is None


def test_requests_that_may_not_be_hedged_are_not_in_the_backup_rate(send) -> None:
    outcomes = [
        Outcome(send(0.0), [0.0, 0.5], {1: 1.0}, 1.0, 0),
        Outcome(send(0.0), [0.0], {}, 1.0, 0),
        Outcome(send(0.0), [0.0], {}, 1.0, 0, counted=False),
    ]
    figures = figures_of(outcomes, "x")
    assert (figures.backup_rate, figures.backups_per_request) == pytest.approx((1 / 2, 1 / 3))


def test_the_slowest_percent_is_a_mean_and_failures_are_left_out(send) -> None:
    outcomes = [Outcome(send(0.0, {"ttft_s": 1.0 * n}), [0.0], {}, 1.0, 0) for n in range(200)]
    failed = Outcome(send(0.0, {"status": 500}), [0.0], {}, 1.0, None)
    figures = figures_of([*outcomes, failed], "x")
    assert (figures.n, figures.failed, figures.full_response.n) == (201, 1, 200)
    assert figures.full_response.cvar99 == pytest.approx((198.5 + 199.5) / 2)
    assert figures.full_response.p50 == pytest.approx(100.0)
