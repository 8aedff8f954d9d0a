"""Public bug reports about money (cases 25 to 28), as far as bounds and sums can get them right."""

import pytest
from tests.unit.cost.records import MICRO, attempt, bill, lost, won

from hedgerow.cost.bounds import Kind
from hedgerow.cost.ledger import TargetBilling
from hedgerow.cost.prices import PriceBook, PriceRule


def test_case_25_a_loser_that_delivered_nothing_costs_a_range_and_not_its_full_answer():
    loser = bill(won(), lost(tokens_seen=0)).attempts[1]
    assert (loser.low_usd, loser.high_usd) == pytest.approx((1000 * MICRO, 6000 * MICRO))
    assert loser.kind is Kind.ESTIMATED
    free = bill(won(), lost(tokens_seen=0), home=TargetBilling(cancel_billing="none"))
    assert (free.attempts[1].low_usd, free.headline_usd) == (0, pytest.approx(3000 * MICRO))


def test_case_26_a_total_with_an_unpriced_or_estimated_call_is_never_called_exact():
    book = PriceBook([PriceRule(model="round", input=1.0, output=10.0)])
    unpriced = bill(won(), lost(target="away", tokens_seen=40), book=book, away=TargetBilling(model="mystery"))
    assert unpriced.total is None
    dropped = bill(won(), lost(tokens_seen=40))
    assert dropped.total.kind is Kind.ESTIMATED
    assert dropped.total.low_usd > dropped.winner.low_usd


def test_case_27_a_caller_that_left_before_the_usage_came_pays_for_the_tokens_seen():
    left = attempt(0, outcome="caller_left", status=200, headers_s=0.4, first_token_s=0.5, tokens_seen=120)
    got = bill(left, outcome="caller_left")
    assert got.total.low_usd == pytest.approx((900 + 10 * (120 + 15)) * MICRO)
    assert got.total.high_usd == pytest.approx((900 + 10 * 500) * MICRO)
    assert got.total.kind is Kind.ESTIMATED


def test_case_28_a_copy_at_another_target_loses_the_prompt_cache():
    cached = won(cached_tokens=900)
    at_home = bill(cached, lost()).attempts[1]
    elsewhere = bill(cached, lost(target="away")).attempts[1]
    assert at_home.low_usd == pytest.approx((100 + 0.1 * 900) * MICRO)
    assert elsewhere.low_usd == pytest.approx(1000 * MICRO)
    assert at_home.high_usd == elsewhere.high_usd  # a twin at home may miss it as well
