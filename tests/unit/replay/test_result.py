import pytest

from hedgerow.replay.bill import Attempt
from hedgerow.replay.calls import Measured
from hedgerow.replay.result import Backups, compare
from hedgerow.sandbox.profiles import Prices

PRICES = Prices(input_usd_per_million=1.0, output_usd_per_million=1.0)
LENGTH = 60


def answered(full_s, first_s=0.5):
    return Measured(first_token_s=first_s, full_response_s=full_s, answers=1)


def attempt(outcome="completed", tokens=LENGTH):
    return Attempt(outcome=outcome, input_tokens=40, tokens=tokens, planned_tokens=LENGTH, service_tier="default")


FAILED = Measured(first_token_s=None, full_response_s=None, answers=0, error="APIConnectionError")


def comparison(twice=None, cases=None):
    if cases is None:
        loser = attempt("disconnected", tokens=0)
        cases = {f"single/{n}": (attempt(),) for n in range(2)} | {f"twice/{n}": (attempt(), loser) for n in range(2)}
    calls = {"single": (answered(1.0), answered(11.0)), "twice": twice or (answered(1.0), answered(2.0))}
    backups = {"single": Backups(sent=0, won=0), "twice": Backups(sent=2, won=1)}
    return compare(calls, cases, backups, PRICES, against="single", seed=1).as_dict()


def test_an_arm_has_its_percentiles_backups_and_costs():
    single, twice = comparison()["arms"]
    assert twice["arm"] == "twice"
    assert (twice["n"], twice["errors"], twice["backups"], twice["backup_wins"]) == (2, 0, 2, 1)
    assert twice["full_response"]["p50"] == pytest.approx(1.5)
    assert twice["first_token"]["n"] == 2
    assert single["cost_usd"] == pytest.approx({"low": 200e-6, "high": 200e-6})
    assert twice["cost_usd"] == pytest.approx({"low": 280e-6, "high": 400e-6})
    assert twice["cost_per_call_usd"] == pytest.approx({"mean": 200e-6, "p50": 200e-6, "p95": 200e-6})


def test_seconds_saved_are_divided_by_the_high_extra_cost():
    single, twice = comparison()["arms"]
    assert single["p99_seconds_saved_per_usd"] is None
    assert twice["p99_seconds_saved_per_usd"] == pytest.approx((10.9 - 1.99) / 200e-6)


def test_without_extra_cost_nothing_is_divided():
    cases = {f"{arm}/{n}": (attempt(),) for arm in ("single", "twice") for n in range(2)}
    assert comparison(cases=cases)["arms"][1]["p99_seconds_saved_per_usd"] is None


def test_a_failed_request_is_an_error_and_in_no_quantile():
    twice = comparison(twice=(answered(1.0), FAILED))["arms"][1]
    assert (twice["n"], twice["errors"], twice["full_response"]["n"], twice["first_token"]["n"]) == (2, 1, 1, 1)


def test_an_arm_that_only_failed_has_undefined_quantiles():
    found = comparison(twice=(FAILED, FAILED))
    assert found["arms"][1]["full_response"]["p99"] is None
    assert found["paired"][0]["p99_difference_s"] is None


def test_the_proof_counts_answers_and_closed_losers_of_all_arms():
    assert comparison()["proof"] == {"answers_per_request": 1.0, "losers_closed": 2, "losers_open": 0}


def test_an_answer_the_sandbox_did_not_complete_is_no_proof():
    cases = {"single/0": (attempt(),), "single/1": (attempt("disconnected"),), "twice/0": (attempt(), attempt(None))}
    assert comparison(cases=cases)["proof"] == {"answers_per_request": 0.5, "losers_closed": 1, "losers_open": 1}


def test_a_failed_request_lowers_the_answers_per_request():
    assert comparison(twice=(answered(1.0), FAILED))["proof"]["answers_per_request"] == 0.75
