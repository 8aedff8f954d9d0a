"""What a request's record says of its cost: who is measured, who is estimated, who is free, and what stays unknown."""

import pytest
from tests.unit.cost.records import MICRO, OPENAI, ROUND, attempt, bill, event, lost, won

from hedgerow.cost.bounds import NOTHING, Bounds, Kind, Usual
from hedgerow.cost.ledger import ESTIMATED, HIDDEN_REASONING, TargetBilling, price_event
from hedgerow.cost.prices import PriceBook, PriceRule
from hedgerow.errors import SettingError


def micros(cost: Bounds | None) -> tuple[float, float | None]:
    assert cost is not None
    return cost.low_usd / MICRO, None if cost.high_usd is None else cost.high_usd / MICRO


def about(low: float, high: float):
    return pytest.approx((low, high))


def test_a_request_with_one_attempt_and_its_usage_is_measured():
    got = bill(won())
    assert micros(got.total) == micros(got.winner) == about(3000, 3000)
    assert got.total.kind is Kind.MEASURED
    assert (got.headline_usd, got.source) == (pytest.approx(3000 * MICRO), "user")


def test_a_loser_is_estimated_from_the_winners_prompt_and_answer():
    # Input 1000 as the winner's usage says, not 900 as estimated. low: 40 seen + 15 on their way; high: Q90 500.
    got = bill(won(1, reason="lag"), lost(0, tokens_seen=40))
    assert micros(got.attempts[1]) == about(1550, 6000)
    assert micros(got.total) == about(4550, 9000)
    assert got.total.kind is Kind.ESTIMATED
    assert got.source == f"user; {ESTIMATED}"


def test_a_loser_that_learnt_its_own_usage_is_measured():
    got = bill(won(), lost(input_tokens=1000, output_tokens=300, tokens_seen=280))
    assert micros(got.attempts[1]) == about(4000, 4000)
    assert got.total.kind is Kind.MEASURED


def test_usage_that_is_only_a_count_so_far_is_not_taken_for_the_whole():
    got = bill(won(), lost(input_tokens=1000, cached_tokens=900, output_tokens=60, tokens_seen=50), dialect="anthropic")
    # The input is exact: 100 + 900 cached. The output is at least 60 + 15.
    assert micros(got.attempts[1]) == about(190 + 750, 190 + 5000)
    assert got.attempts[1].kind is Kind.ESTIMATED


@pytest.mark.parametrize("status", [401, 402, 403, 404, 413, 422, 429, 503, 529])
def test_what_was_turned_away_was_not_billed(status):
    got = bill(attempt(0, outcome="failed", status=status, headers_s=0.1), won(1))
    assert got.attempts[0] == NOTHING
    assert got.total.kind is Kind.MEASURED


@pytest.mark.parametrize("error", ["ConnectError", "ConnectTimeout", "PoolTimeout"])
def test_what_was_never_sent_was_not_billed(error):
    assert bill(attempt(0, outcome="failed", error=error), won(1)).attempts[0] == NOTHING


def test_a_backup_that_never_got_a_connection_was_not_billed():
    waiting = lost(1)
    assert bill(won(connection="reused"), waiting).attempts[1] == NOTHING
    # Where connections are not recorded at all, their absence says nothing.
    assert bill(won(), waiting).attempts[1].high_usd > 0


@pytest.mark.parametrize("status", [400, 408, 500, 502, 504])
def test_an_error_that_may_have_come_after_the_work_costs_from_nothing_to_all_of_it(status):
    got = bill(attempt(0, outcome="failed", status=status, headers_s=1.0), won(1))
    assert micros(got.attempts[0]) == about(0, 6000)
    assert got.headline_usd == pytest.approx(3000 * MICRO)


@pytest.mark.parametrize(
    "fields", [{"status": 200, "error": "RemoteProtocolError"}, {"status": 529}, {"error": "ReadTimeout"}]
)
def test_a_stream_that_was_cut_counts_as_a_loser(fields):
    got = bill(attempt(0, outcome="failed", tokens_seen=40, headers_s=0.2, **fields), won(1))
    assert micros(got.attempts[0]) == about(1550, 6000)


def test_an_unknown_price_is_unknown_in_the_total_and_in_the_record():
    book = PriceBook([PriceRule(model="round", input=1.0, output=10.0)])
    got = bill(won(), lost(target="away"), book=book, away=TargetBilling(model="mystery"))
    assert (got.attempts[1], got.total, got.headline_usd) == (None, None, None)
    assert micros(got.winner) == about(3000, 3000)
    assert got.source == "user; price of 'mystery' unknown"
    nameless = bill(won(), model=None)
    assert (nameless.total, nameless.source) == (None, "model unknown")


def test_an_answer_that_could_not_be_read_has_no_cost_rather_than_none():
    unread = won(input_tokens=None, output_tokens=None, tokens_seen=0)
    assert bill(unread, dialect="generic").source == "tokens unknown"
    assert bill(unread, dialect="generic", input_tokens_estimate=0).total is None


def test_an_answer_without_usage_is_estimated_by_its_length():
    got = bill(won(input_tokens=None, cached_tokens=None, output_tokens=None, tokens_seen=190))
    assert micros(got.winner) == about(900 + 1900, 900 + 1900)
    assert got.source == f"user; {ESTIMATED}"


def test_embeddings_without_usage_cost_their_input():
    book = PriceBook([PriceRule(model="round", input=1.0, output=0.0)])
    got = bill(won(input_tokens=None, output_tokens=None, tokens_seen=0), book=book)
    assert micros(got.total) == about(900, 900)


@pytest.mark.parametrize(
    ("billing", "low", "high", "headline"),
    [("so_far", 1550, 6000, 1550), ("full", 1550, 6000, 6000), ("unknown", 1550, 6000, 6000), ("none", 0, 6000, 0)],
)
def test_what_the_target_bills_for_cancelled_calls_picks_the_headline(billing, low, high, headline):
    got = bill(won(), lost(tokens_seen=40), home=TargetBilling(cancel_billing=billing))
    assert micros(got.attempts[1]) == about(low, high)
    assert got.headline_usd == pytest.approx((3000 + headline) * MICRO)


def test_what_is_not_a_stream_is_not_billed_so_far():
    home = TargetBilling(cancel_billing="so_far")
    assert bill(won(), lost(), home=home, stream=False).headline_usd == pytest.approx(9000 * MICRO)
    assert bill(won(), lost(), home=home, stream=False, upstream_stream=True).headline_usd == pytest.approx(
        4000 * MICRO
    )


def test_a_copy_that_could_not_be_stopped_is_billed_in_full():
    got = bill(won(), lost(outcome="abandoned"), home=TargetBilling(cancel_billing="so_far"))
    assert got.headline_usd == pytest.approx(9000 * MICRO)


def test_an_unheard_of_way_of_billing_is_refused():
    with pytest.raises(SettingError, match=r"so_far \| full \| none \| unknown"):
        TargetBilling(cancel_billing="sometimes")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("effort", "output_tokens", "hidden"),
    [("high", 1500, True), ("high", 200, False), (None, 1500, True), (None, 500, False), ("none", 500, False)],
)
def test_reasoning_that_was_billed_and_not_shown_is_pointed_out(effort, output_tokens, hidden):
    got = bill(won(output_tokens=output_tokens), lost(tokens_seen=40), effort=effort)
    assert got.attempts[1].hidden_reasoning is hidden
    assert got.total.hidden_reasoning is hidden
    assert (HIDDEN_REASONING in got.source) is hidden


def test_without_a_winner_to_tell_the_effort_asked_for_does():
    left = attempt(0, outcome="caller_left", headers_s=0.3, tokens_seen=20)
    assert bill(left, effort="high", outcome="caller_left").total.hidden_reasoning
    assert not bill(left, outcome="caller_left").total.hidden_reasoning


def test_a_pace_learnt_from_an_answer_in_one_piece_is_not_believed():
    burst = won(first_token_s=1.9999, ended_s=2.0)
    assert micros(bill(burst, lost(tokens_seen=40), tau_s=None).attempts[1]) == about(1400, 6000)
    steady = won(first_token_s=0.0, ended_s=4.0)  # 4 s for 200 tokens: 7.5 of them in 0.15 s
    assert micros(bill(steady, lost(tokens_seen=40), tau_s=None).attempts[1]) == about(1475, 6000)


def test_a_key_without_history_has_no_upper_bound_unless_the_request_has_a_limit():
    left = attempt(0, outcome="caller_left", headers_s=0.3, tokens_seen=20)
    got = bill(left, outcome="caller_left", usual=Usual())
    assert micros(got.total) == (pytest.approx(900 + 350), None)
    assert got.headline_usd is None
    capped = bill(left, outcome="caller_left", usual=Usual(), max_output_tokens=100)
    assert micros(capped.total) == about(900 + 350, 900 + 1000)


def test_the_answers_own_tier_counts_and_its_twins_at_the_same_target():
    book, home = PriceBook(), TargetBilling(provider_url=OPENAI, service_tier="priority")
    standard = bill(won(service_tier="default"), model="gpt-5", book=book, home=home)
    priority = bill(won(), model="gpt-5", book=book, home=home)
    assert priority.total.low_usd == pytest.approx(2 * standard.total.low_usd)
    downgraded = bill(won(service_tier="default"), lost(), model="gpt-5", book=book, home=home)
    assert downgraded.attempts[1].low_usd == pytest.approx(1000 * 1.25e-6)


def test_a_targets_own_model_prices_its_attempts():
    book = PriceBook(
        [PriceRule(model="round", input=1.0, output=10.0), PriceRule(model="small", input=0.5, output=1.0)]
    )
    got = bill(won(), lost(), book=book, home=TargetBilling(model="small"))
    assert micros(got.attempts[1]) == about(500, 1000)


def test_a_request_that_was_never_sent_cost_nothing():
    got = bill(outcome="failed")
    assert (got.total, got.winner, got.source) == (NOTHING, None, None)


def test_a_priced_event_has_its_cost_fields_and_is_otherwise_the_same():
    bare, full = (event(won(1, reason="lag"), lost(0, tokens_seen=40)) for _ in range(2))
    usual = Usual(q90_output_tokens=500.0)
    price_event(full, ROUND, targets={"home": TargetBilling()}, usual=usual)
    figures = (full.cost_low_usd, full.cost_high_usd, full.winner_cost_usd)
    assert figures == pytest.approx((4550 * MICRO, 9000 * MICRO, 3000 * MICRO))
    assert [each.cost_high_usd for each in full.attempts] == pytest.approx([3000 * MICRO, 6000 * MICRO])
    assert full.price_source == "user; estimated"
    costs = {"cost_low_usd", "cost_high_usd", "winner_cost_usd", "price_source", "attempts"}
    assert {name for name, value in full.as_dict().items() if value != bare.as_dict()[name]} == costs
    once = full.as_dict()
    price_event(full, ROUND, targets={}, usual=usual)
    assert full.as_dict() == once


def test_an_event_that_cannot_be_priced_has_null_and_not_zero():
    full = event(won(), model="mystery")
    price_event(full, ROUND, targets={}, usual=Usual())
    assert (full.cost_low_usd, full.cost_high_usd, full.winner_cost_usd) == (None, None, None)
    assert full.attempts[0].cost_low_usd is None
    assert full.price_source == "price of 'mystery' unknown"
