"""The three figures of a cancelled copy, sums and their kind: worked out by hand, and as properties."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.cost.records import MICRO

from hedgerow.cost.bounds import NOTHING, Bounds, Cut, Kind, Usual, loser_bounds, total, winner_cost
from hedgerow.cost.price import Price
from hedgerow.values.answer import Usage

# In millionths of a dollar: 1 per token of input, 0.1 if cached, 10 per token of output.
PRICE = Price(input_usd=1 * MICRO, cached_usd=0.1 * MICRO, output_usd=10 * MICRO, source="user")
USUAL = Usual(mean_output_tokens=150.0, q90_output_tokens=500.0, token_s=0.01)


def figures(cut: Cut, usual: Usual = USUAL, winner_tokens: int | None = None, price: Price = PRICE):
    cost = loser_bounds(price, cut, usual, winner_tokens=winner_tokens)
    return tuple(None if usd is None else usd / MICRO for usd in (cost.low_usd, cost.expected_usd, cost.high_usd))


def measured(usd: float) -> Bounds:
    return Bounds(low_usd=usd, high_usd=usd, kind=Kind.MEASURED)


def test_a_winner_costs_its_usage_with_the_cached_part_at_its_own_price():
    cost = winner_cost(PRICE, Usage(input_tokens=1000, cached_tokens=400, output_tokens=50, reasoning_tokens=20))
    assert cost.low_usd == cost.high_usd == pytest.approx((600 + 40 + 500) * MICRO)
    assert cost.kind is Kind.MEASURED


def test_a_price_per_call_is_added_once():
    price = Price(input_usd=0.0, cached_usd=0.0, output_usd=0.0, call_usd=0.005, source="user")
    assert winner_cost(price, Usage(input_tokens=9, output_tokens=9)).low_usd == 0.005


def test_a_loser_costs_from_what_it_sent_to_a_long_answer():
    # 40 seen + 0.15 s at 0.01 s a token = 55; the winner's 200; Q90 500.
    assert figures(Cut(input_tokens=1000, tokens_seen=40), winner_tokens=200) == pytest.approx((1550, 3000, 6000))


def test_before_the_winner_ends_the_keys_mean_is_expected():
    assert figures(Cut(input_tokens=1000)) == pytest.approx((1000, 2500, 6000))


def test_a_winner_longer_than_q90_sets_the_upper_bound():
    assert figures(Cut(input_tokens=1000), winner_tokens=700) == pytest.approx((1000, 8000, 8000))


def test_the_requests_own_limit_caps_the_upper_bound_and_the_mean():
    cut = Cut(input_tokens=1000, tokens_seen=95, max_output_tokens=100)
    assert figures(cut, winner_tokens=80) == pytest.approx((2000, 2000, 2000))
    assert figures(Cut(input_tokens=1000, max_output_tokens=100)) == pytest.approx((1000, 2000, 2000))


def test_nothing_is_on_its_way_before_the_first_token():
    assert figures(Cut(input_tokens=1000, tokens_seen=0), winner_tokens=200)[0] == pytest.approx(1000)


def test_a_cached_prompt_is_cheap_at_best_and_not_at_worst():
    assert figures(Cut(input_tokens=1000, cached_tokens=900), winner_tokens=200) == pytest.approx((190, 2190, 6000))
    told = Cut(input_tokens=1000, cached_tokens=900, input_measured=True)
    assert figures(told, winner_tokens=200) == pytest.approx((190, 2190, 5190))


def test_without_any_length_to_go_by_there_is_a_lower_bound_only():
    assert figures(Cut(input_tokens=1000, tokens_seen=40), Usual()) == (pytest.approx(1400), None, None)
    capped = Cut(input_tokens=1000, tokens_seen=40, max_output_tokens=100)
    assert figures(capped, Usual()) == (pytest.approx(1400), None, pytest.approx(2000))


@pytest.mark.parametrize(("billing", "headline"), [("so_far", 1550), ("full", 6000), ("unknown", 6000), ("none", 0)])
def test_what_the_target_bills_for_cancelled_calls_picks_the_headline(billing, headline):
    cost = loser_bounds(PRICE, Cut(input_tokens=1000, tokens_seen=40), USUAL, winner_tokens=200)
    assert cost.headline_usd(billing) == pytest.approx(headline * MICRO)


def test_a_sum_with_an_estimate_in_it_is_an_estimate():
    loser = loser_bounds(PRICE, Cut(input_tokens=1000, hidden_reasoning=True), USUAL).bounds
    both = measured(1.0) + loser
    assert (both.kind, both.hidden_reasoning) == (Kind.ESTIMATED, True)
    assert (measured(1.0) + measured(2.0)) == measured(3.0)
    assert total([]) == NOTHING


def test_an_unknown_part_makes_the_sum_unknown_and_an_unknown_upper_bound_only_that():
    open_ended = Bounds(low_usd=1.0, high_usd=None, kind=Kind.ESTIMATED)
    assert total([measured(1.0), None, measured(2.0)]) is None
    assert total([measured(1.0), open_ended]) == Bounds(low_usd=2.0, high_usd=None, kind=Kind.ESTIMATED)


usd = st.floats(0, 100)
bounds = st.builds(
    lambda low, more, kind: Bounds(low_usd=low, high_usd=low + more, kind=kind), usd, usd, st.sampled_from(list(Kind))
)


@given(st.lists(st.one_of(st.none(), bounds), max_size=6))
def test_bounds_add_up_and_none_is_contagious(parts):
    whole = total(parts)
    if None in parts:
        assert whole is None
        return
    assert whole.low_usd == pytest.approx(sum(part.low_usd for part in parts))
    assert whole.high_usd == pytest.approx(sum(part.high_usd for part in parts))
    assert whole.low_usd <= whole.high_usd
    assert (whole.kind is Kind.MEASURED) == all(part.kind is Kind.MEASURED for part in parts)


tokens = st.integers(0, 200_000)
per_token = st.floats(0, 1e-3)


@given(
    price=st.builds(
        lambda i, c, o: Price(input_usd=i, cached_usd=c, output_usd=o, source="user"), per_token, per_token, per_token
    ),
    cut=st.builds(
        Cut,
        input_tokens=tokens,
        cached_tokens=tokens,
        input_measured=st.booleans(),
        tokens_seen=tokens,
        max_output_tokens=st.none() | st.integers(1, 200_000),
    ),
    usual=st.builds(
        Usual,
        mean_output_tokens=st.none() | st.floats(0, 1e5),
        q90_output_tokens=st.none() | st.floats(0, 1e5),
        token_s=st.none() | st.floats(1e-4, 1),
    ),
    winner_tokens=st.none() | tokens,
)
def test_low_expected_and_high_are_in_order_whatever_is_known(price, cut, usual, winner_tokens):
    cost = loser_bounds(price, cut, usual, winner_tokens=winner_tokens)
    known = [usd for usd in (cost.low_usd, cost.expected_usd, cost.high_usd) if usd is not None]
    assert all(one <= next_one * (1 + 1e-12) for one, next_one in pairwise(known))
    assert cost.low_usd >= 0
    if winner_tokens is not None:
        assert len(known) == 3
