"""What stands for a copy of a call, and how a call's time is taken apart."""

import numpy as np
import pytest
from tests.calls_by_hand import calls_of

from hedgerow.analysis.lengths import expected_total_s, slowdowns
from hedgerow.analysis.whatif.copies import elsewhere, neighbours, second_target
from hedgerow.analysis.whatif.parts import parts_of

RNG = np.random.default_rng(1)


def test_the_copies_of_a_call_are_its_two_neighbours_in_time() -> None:
    places = neighbours(1000, np.random.default_rng(2))
    here = np.arange(1, 999)
    inner = places[:, 1:-1]
    assert (np.sort(inner, axis=0) == np.stack([here - 1, here + 1])).all()
    assert 0.4 < (inner[0] < here).mean() < 0.6


def test_no_call_is_its_own_copy_not_even_at_the_ends() -> None:
    for n in (3, 4, 10):
        places = neighbours(n, np.random.default_rng(3))
        assert (places != np.arange(n)).all()
        assert (places[0] != places[1]).all()


def test_elsewhere_takes_the_nearest_calls_of_other_groups() -> None:
    start = np.array([0.0, 1.0, 2.0, 3.0, 10.0])
    groups = np.array([0, 0, 1, 0, 1])
    places = elsewhere(start, groups, same=False)
    assert places[:, 1].tolist() == [2, 4]
    assert places[0].tolist()[:1] == [2]


def test_elsewhere_can_stay_within_the_group_and_leaves_the_call_itself_out() -> None:
    start = np.array([0.0, 1.0, 2.0, 3.0, 10.0])
    groups = np.array([0, 0, 1, 0, 1])
    places = elsewhere(start, groups, same=True)
    assert sorted(places[:, 1].tolist()) == [0, 3]
    assert places[0, 2] == 4


def test_a_second_targets_nearest_calls_in_time_are_found() -> None:
    places = second_target(np.array([0.0, 5.1, 99.0]), np.array([4.0, 5.0, 6.0, 7.0]))
    assert places.tolist() == [[0, 1, 3], [1, 2, 2]]


def test_parts_add_up_to_the_call() -> None:
    tokens = np.round(RNG.lognormal(4, 0.5, 500)) + 1
    first = RNG.lognormal(-0.5, 0.2, 500)
    total = first + tokens * 0.01 * RNG.lognormal(0, 0.2, 500) + np.where(RNG.random(500) < 0.05, 8.0, 0)
    parts = parts_of(calls_of(total, ttft_s=first, output_tokens=tokens))
    np.testing.assert_allclose(parts.total_s, total)
    assert parts.first_token_known
    assert parts.length_known


def test_a_copy_has_the_stall_of_its_source_and_the_length_of_its_own_answer() -> None:
    tokens = np.array([100.0] * 8 + [10.0, 100.0])
    total = 0.5 + 0.01 * tokens
    total[9] += 6.0
    parts = parts_of(calls_of(total, ttft_s=np.full(10, 0.5), output_tokens=tokens))
    copy = parts.copies_of(np.array([8]), np.array([9]))
    # 10 tokens at the usual pace of 0.01 s; what the source took beyond that for its own 100 is a stall.
    assert copy.total_s[0] == pytest.approx(0.5 + 10 * 0.01 + 6.0)


def test_a_source_of_another_key_counts_with_its_lateness_in_the_calls_own_pace() -> None:
    from hedgerow.analysis.whatif.parts import joined

    quick = parts_of(calls_of([1.0] * 9, ttft_s=[0.2] * 9, output_tokens=[80.0] * 9))
    slow = parts_of(calls_of([8.0] * 8 + [8.4], ttft_s=[0.4] * 8 + [0.8], output_tokens=[80.0] * 9))
    both = joined([quick, slow], np.arange(18))
    copy = both.copies_of(np.array([0]), np.array([17]))
    assert copy.first_token_s[0] == pytest.approx(0.4)  # twice the usual, as the source
    assert copy.total_s[0] == pytest.approx(0.4 + 0.8)


def test_a_failed_call_as_a_copy_never_answers() -> None:
    parts = parts_of(calls_of([1.0] * 5, ok=[True, True, False, True, True]))
    assert np.isinf(parts.copies_of(np.array([0]), np.array([2])).total_s[0])
    assert parts.answered.tolist() == [True, True, False, True, True]


def test_a_call_without_first_token_times_is_slow_from_its_start_to_its_end() -> None:
    tokens = np.tile([50.0, 100.0, 150.0], 40)
    total = 1.0 + 0.02 * tokens
    total[0] *= 1.4
    parts = parts_of(calls_of(total, output_tokens=tokens))
    assert not parts.first_token_known
    assert parts.first_token_s[0] == pytest.approx(1.4 * parts.first_token_s[1], rel=0.01)
    np.testing.assert_allclose(parts.total_s, total)


def test_the_usual_time_of_a_length_is_not_moved_by_stalls() -> None:
    tokens = np.round(RNG.uniform(20, 200, 900))
    total = 0.7 + 0.012 * tokens
    stalled = total + np.where(RNG.random(900) < 0.1, 30.0, 0)
    expected, start = expected_total_s(stalled, tokens, np.ones(900, dtype=bool))
    np.testing.assert_allclose(expected, total, rtol=0.1)
    assert start == pytest.approx(0.7, rel=0.2)


def test_a_slowdown_is_one_for_a_call_as_long_as_usual() -> None:
    tokens = np.tile([50.0, 100.0, 200.0], 30)
    total = 1.0 + 0.01 * tokens
    total[5] *= 3
    found = slowdowns(total, tokens, np.ones(90, dtype=bool))
    assert found[5] == pytest.approx(3.0, rel=0.05)
    assert np.median(found) == pytest.approx(1.0, rel=0.02)
