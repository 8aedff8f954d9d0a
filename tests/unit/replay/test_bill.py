import pytest

from hedgerow.errors import HedgerowError
from hedgerow.replay.bill import Attempt, Cost, cases_of, cost_of
from hedgerow.sandbox.profiles import Prices

ONE_AND_FOUR = Prices(input_usd_per_million=1.0, output_usd_per_million=4.0, priority_ratio=2.0)


def attempt(outcome, *, tokens, planned=50, tier="default"):
    return Attempt(outcome=outcome, input_tokens=100, tokens=tokens, planned_tokens=planned, service_tier=tier)


def micro_usd(*attempts):
    cost = cost_of(attempts, ONE_AND_FOUR)
    return pytest.approx(cost.low_usd * 1e6), pytest.approx(cost.high_usd * 1e6)


def test_an_answer_costs_its_input_and_its_output():
    assert micro_usd(attempt("completed", tokens=50)) == (300, 300)


def test_a_closed_loser_costs_between_what_was_sent_and_its_whole_answer():
    assert micro_usd(attempt("completed", tokens=50), attempt("disconnected", tokens=3)) == (300 + 112, 300 + 300)


def test_a_loser_that_is_still_running_has_the_bounds_of_a_closed_one():
    assert micro_usd(attempt(None, tokens=0)) == (100, 300)


def test_a_loser_that_was_complete_before_it_could_be_closed_is_paid_in_full():
    assert micro_usd(attempt("completed", tokens=50), attempt("completed", tokens=50)) == (600, 600)


def test_a_failure_before_any_token_costs_nothing_and_one_after_some_what_was_sent():
    assert micro_usd(attempt("failed", tokens=0)) == (0, 0)
    assert micro_usd(attempt("failed", tokens=10)) == (140, 140)


def test_the_service_tier_that_was_answered_sets_the_price():
    assert micro_usd(attempt("completed", tokens=50, tier="priority")) == (600, 600)


def test_a_request_that_never_arrived_costs_nothing():
    assert cost_of((), ONE_AND_FOUR) == Cost()


def test_attempts_are_read_from_the_books_as_the_sandbox_writes_them():
    entry = {"arrived_s": 0.0, "ended_s": 1.0, "outcome": "disconnected", "tokens": 3, "bytes": 9, "input_tokens": 100}
    entry |= {"planned_tokens": 50, "service_tier": "default", "billed_usd": 0.1}
    assert cases_of({"cases": {"twice/0": [entry]}}) == {"twice/0": (attempt("disconnected", tokens=3),)}


@pytest.mark.parametrize("stats", [{}, {"cases": []}, {"cases": {"a/0": [{"outcome": None}]}}])
def test_books_of_something_else_are_refused(stats):
    with pytest.raises(HedgerowError, match="stats lack what the bill needs"):
        cases_of(stats)
