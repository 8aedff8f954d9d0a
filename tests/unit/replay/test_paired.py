from collections import Counter
from random import Random

import pytest

from hedgerow.replay.paired import p99_differences
from hedgerow.statistics.quantile import quantile

PAIRS = 200
TRUE_SHIFT_S = -0.5


def resampled_p99(times, picks):
    """The slow way: write the resample out and sort it."""
    return quantile(sorted(times[pick] for pick in picks if times[pick] is not None), 0.99)


def test_the_difference_is_that_of_the_two_p99():
    single, twice = [float(value) for value in range(200)], [value / 2 for value in range(200)]
    (difference,) = p99_differences({"single": single, "twice": twice}, "single", seed=1)
    assert (difference.arm, difference.against) == ("twice", "single")
    assert difference.p99_difference_s == pytest.approx(quantile(twice, 0.99) - quantile(single, 0.99))


@pytest.mark.parametrize("failed", [[], [0, 7, 39]])
def test_the_interval_is_that_of_resamples_written_out_and_sorted(failed):
    luck = Random(4)
    single = [luck.expovariate(1) for _ in range(40)]
    hedged = [None if request in failed else luck.expovariate(2) for request in range(40)]
    (found,) = p99_differences({"single": single, "hedged": hedged}, "single", seed=9, resamples=1000)
    again, spread = Random(9), []
    for _ in range(1000):
        picks = list(Counter(again.choices(range(40), k=40)).elements())
        spread.append(resampled_p99(hedged, picks) - resampled_p99(single, picks))
    expected = [quantile(sorted(spread), share) for share in (0.025, 0.975)]
    assert list(found.interval) == pytest.approx(expected)


def test_arms_that_are_equal_request_by_request_differ_by_exactly_nothing():
    times = [Random(2).expovariate(1) for _ in range(100)]
    (difference,) = p99_differences({"single": times, "copy": list(times)}, "single", seed=1)
    assert difference.p99_difference_s == 0
    assert difference.interval == (0, 0)


def test_a_constant_gain_is_known_without_doubt_however_the_times_scatter():
    luck = Random(3)
    single = [luck.lognormvariate(0, 1) for _ in range(PAIRS)]
    (difference,) = p99_differences({"single": single, "b": [time - 0.5 for time in single]}, "single", seed=1)
    assert difference.interval == pytest.approx((TRUE_SHIFT_S, TRUE_SHIFT_S))


def test_the_interval_covers_the_truth_in_about_ninety_five_of_a_hundred_experiments():
    luck, covered, experiments = Random(11), 0, 80
    for experiment in range(experiments):
        body = [luck.gauss(10, 1) for _ in range(PAIRS)]
        single = [value + luck.gauss(0, 0.3) for value in body]
        hedged = [value + TRUE_SHIFT_S + luck.gauss(0, 0.3) for value in body]
        (difference,) = p99_differences({"single": single, "hedged": hedged}, "single", seed=experiment, resamples=300)
        low_s, high_s = difference.interval
        covered += low_s <= TRUE_SHIFT_S <= high_s
    # A bootstrap of an extreme quantile is only roughly right, and the share of 80 experiments scatters by 0.025.
    assert 0.86 * experiments <= covered <= experiments


def test_the_same_seed_gives_the_same_interval_and_another_seed_another():
    luck = Random(5)
    times = {arm: [luck.expovariate(1) for _ in range(150)] for arm in ("single", "hedged")}
    first, again, other = (p99_differences(times, "single", seed=seed)[0].interval for seed in (1, 1, 2))
    assert first == again != other


def test_without_an_answer_in_both_arms_nothing_is_claimed():
    (difference,) = p99_differences({"single": [1.0, 2.0], "hedged": [None, None]}, "single", seed=1)
    assert difference.as_dict() == {"arm": "hedged", "against": "single", "p99_difference_s": None, "interval": None}


def test_one_answer_is_its_own_p99():
    (difference,) = p99_differences({"single": [1.0, None], "hedged": [4.0, 4.0]}, "single", seed=1)
    assert difference.p99_difference_s == 3.0
