"""The controller's steps, by hand. B = 0.05, b = 1 s."""

from math import exp

import pytest

from hedgerow.budget.controller import Controller

B, b_s = 0.05, 1.0


def started(d_s: float = 2.0) -> Controller:
    controller = Controller(B)
    controller.d_per_b = d_s / b_s
    return controller


@pytest.mark.parametrize(
    ("budget", "b_s", "q90_s", "d_s"),
    [
        (0.05, 1.0, 1.1, 1.5),  # 1.5·b·.05/B
        (0.02, 1.0, 1.1, 3.75),
        (0.10, 1.0, 3.0, 4.0),  # 2·(Q90 - b)
        (0.10, 0.01, 0.02, 0.2),  # never below .2 s
        (0.001, 1.0, 1.1, 60.0),  # never above 60 s
    ],
)
def test_the_first_delay(budget: float, b_s: float, q90_s: float, d_s: float) -> None:
    controller = Controller(budget)
    controller.start(b_s, q90_s)
    assert controller.delay_s(b_s) == pytest.approx(d_s)


def test_only_the_first_warm_key_sets_the_delay_and_others_scale_it_by_their_median() -> None:
    controller = Controller(B)
    controller.start(1.0, 1.1)
    controller.start(5.0, 50.0)
    assert controller.delay_s(1.0) == pytest.approx(1.5)
    assert controller.delay_s(4.0) == pytest.approx(6.0)


def test_a_request_lowers_the_delay_by_the_budget_and_a_backup_raises_it_by_its_cost() -> None:
    controller = started()
    controller.on_request(b_s)
    assert controller.delay_s(b_s) == pytest.approx(2.0 * exp(-0.04 * 0.05))
    assert controller.on_backup(1.5, b_s) == 1.5
    assert controller.delay_s(b_s) == pytest.approx(2.0 * exp(-0.04 * 0.05 + 0.04 * 1.5))


def test_what_losers_really_cost_corrects_what_was_charged() -> None:
    controller = started()
    controller.settle(0.5, 1.5, b_s)
    assert controller.delay_s(b_s) == pytest.approx(2.0 * exp(-0.04 * 1.0))
    controller.settle(7.0, 0.0, b_s)  # nothing was charged: nothing to correct
    assert controller.delay_s(b_s) == pytest.approx(2.0 * exp(-0.04 * 1.0))


def test_no_backup_counts_for_more_than_ten_requests() -> None:
    controller = started()
    assert controller.on_backup(500.0, b_s) == 10.0
    controller.settle(500.0, 10.0, b_s)
    assert controller.delay_s(b_s) == pytest.approx(2.0 * exp(0.04 * 10.0))


@pytest.mark.parametrize("answers", [0, 2000, 100_000])
def test_the_gain_stays_however_much_is_known(answers: int) -> None:
    controller = started()
    controller.answers = answers
    controller.on_backup(1.0, b_s)
    assert controller.delay_s(b_s) == pytest.approx(2.0 * exp(0.04))


def test_the_delay_does_not_fall_while_hardly_any_backup_wins() -> None:
    controller = started()
    controller.win_rate = 0.24
    controller.on_request(b_s)
    assert controller.delay_s(b_s) == 2.0


def test_the_delay_stays_between_a_tenth_of_b_and_a_minute() -> None:
    controller = started()
    for _ in range(100_000):
        controller.on_request(b_s)
    assert controller.delay_s(b_s) == pytest.approx(0.1)
    for _ in range(100):
        controller.on_backup(10.0, b_s)
    assert controller.delay_s(b_s) == 60.0


def test_inflation_grows_by_losses_and_shrinks_by_wins() -> None:
    controller = started()
    controller.on_decided(backups=1, won=False, wanted=True, refused=False)
    assert controller.inflation == pytest.approx(exp(0.2 * (1 - 0.1)))
    assert controller.win_rate == pytest.approx(0.475)
    controller.on_decided(backups=0, won=False, wanted=True, refused=True)  # L = 1 - w
    assert controller.inflation == pytest.approx(exp(0.2 * (0.9 + 0.525 - 0.1)))
    controller.on_decided(backups=1, won=True, wanted=True, refused=False)
    assert controller.inflation == pytest.approx(exp(0.2 * (0.9 + 0.525 - 0.2)))
    for _ in range(1000):
        controller.on_decided(backups=0, won=False, wanted=False, refused=False)
    assert controller.inflation == 1.0


def test_in_a_surge_the_delay_is_not_raised_for_5000_requests() -> None:
    controller = started()
    controller.win_rate, controller.wanted_share = 0.9, 0.9
    assert controller.surging
    assert controller.on_backup(1.0, b_s) == 0.0
    assert controller.delay_s(b_s) == 2.0
    controller.surge_length = 5001
    assert controller.on_backup(1.0, b_s) == 1.0


def test_a_surge_needs_many_who_want_and_backups_that_win() -> None:
    controller = started()
    controller.wanted_share, controller.win_rate = 0.21, 0.56
    assert controller.surging
    controller.win_rate = 0.55
    assert not controller.surging
    controller.win_rate, controller.wanted_share = 0.56, 0.20
    assert not controller.surging


def test_the_surge_count_falls_by_one_for_each_request_outside() -> None:
    controller = started()
    controller.surge_length = 2
    for left in (1, 0, 0):
        controller.on_decided(backups=0, won=False, wanted=False, refused=False)
        assert controller.surge_length == left


def test_costs_are_counted_in_mean_answers_of_the_whole_policy() -> None:
    controller = started()
    assert controller.in_means(5.0) is None
    for cost in (1.0, 3.0):
        controller.on_answer(cost)
    assert controller.in_means(5.0) == pytest.approx(2.5)
    controller.answers = 10_000
    controller.on_answer(102.0)  # then each answer weighs .01
    assert controller.mean_cost == pytest.approx(3.0)
