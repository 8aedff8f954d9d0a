"""Rings: the last values and their quantiles; registries: bounded, per key."""

import random
import statistics

import pytest

from hedgerow.statistics.registry import MOST_KEYS, Registry
from hedgerow.statistics.ring import Ring
from hedgerow.units import Window
from hedgerow.values.request import Key, RequestFacts, size_class


def test_quantiles_are_those_of_the_last_values_by_linear_interpolation() -> None:
    rng, ring = random.Random(3), Ring(Window(requests=50))
    values = [rng.choice([rng.random(), 0.5]) for _ in range(300)]
    for number, value in enumerate(values):
        ring.add(value, float(number))
        kept = values[max(0, number - 49) : number + 1]
        assert len(ring) == len(kept)
        if len(kept) > 1:
            cuts = statistics.quantiles(kept, n=20, method="inclusive")
            assert ring.quantile(0.95) == pytest.approx(cuts[18])
            assert ring.quantile(0.5) == pytest.approx(statistics.median(kept))
    assert (ring.quantile(0.0), ring.quantile(1.0)) == (min(kept), max(kept))


def test_a_window_of_time_forgets_by_age() -> None:
    ring = Ring(Window(requests=1000, seconds=10.0))
    ring.add(9.0, 0.0)
    ring.add(1.0, 8.0)
    assert ring.quantile(1.0, 9.0) == 9.0
    assert ring.quantile(1.0, 11.0) == 1.0
    assert ring.quantile(1.0, 30.0) is None
    assert ring.summary() is None


def test_keys_that_are_not_used_go_first() -> None:
    registry = Registry(Window())
    keys = [Key.of(RequestFacts(dialect="d", model=str(n)), "t") for n in range(MOST_KEYS + 1)]
    registry.of(keys[0]).requests = 7
    for key in keys[1:]:
        registry.of(keys[0])
        registry.of(key)
    assert registry.of(keys[0]).requests == 7
    assert len(list(registry)) == MOST_KEYS


@pytest.mark.parametrize(("tokens", "size"), [(0, "1k"), (1000, "1k"), (1001, "8k"), (8001, "32k"), (32_001, "more")])
def test_size_classes(tokens: int, size: str) -> None:
    assert size_class(tokens) == size
