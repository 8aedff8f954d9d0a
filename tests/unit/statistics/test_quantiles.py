import pytest

from hedgerow.statistics.quantile import quantile
from hedgerow.statistics.quantiles import Quantiles


def test_a_quantile_lies_on_the_line_between_its_neighbours():
    assert quantile([0.0, 10.0, 20.0, 30.0], 0.5) == 15.0
    assert quantile([0.0, 10.0, 20.0, 30.0], 0.9) == pytest.approx(27.0)


def test_the_ends_are_the_smallest_and_the_largest_value():
    assert quantile([3.0, 5.0, 9.0], 0.0) == 3.0
    assert quantile([3.0, 5.0, 9.0], 1.0) == 9.0
    assert quantile([4.0], 0.99) == 4.0


def test_a_quantile_object_sorts_what_it_is_given():
    found = Quantiles.of([float(value) for value in reversed(range(101))])
    assert found.as_dict() == pytest.approx(
        {"p50": 50.0, "p90": 90.0, "p95": 95.0, "p99": 99.0, "p999": 99.9, "n": 101}
    )


def test_of_nothing_no_quantile_is_defined():
    assert Quantiles.of([]).as_dict() == {"p50": None, "p90": None, "p95": None, "p99": None, "p999": None, "n": 0}
