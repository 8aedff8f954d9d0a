"""How sure a p99 is: exact for independent calls, wider where slow ones come together, marked where that is not enough."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from hedgerow.analysis.p99 import few_blocks_widen, p99_interval, slow_together_for

BENCHMARK = Path(__file__).parents[3] / "benchmarks" / "intervals.py"


@pytest.mark.parametrize("n", [1000, 5000])
def test_of_independent_calls_95_of_100_intervals_hold_the_truth(n: int) -> None:
    truth, logs = float(np.exp(0.5 * 2.3263479)), 300
    found = [p99_interval(np.random.default_rng(seed).lognormal(0, 0.5, n)) for seed in range(logs)]
    held = sum(each is not None and each.low <= truth <= each.high for each in found)
    assert 0.915 <= held / logs <= 0.985  # 95 %, three standard errors either way


@pytest.mark.parametrize("lasts", [5, 20, 60])
def test_how_long_slow_calls_come_together_is_learnt(lasts: int) -> None:
    rng = np.random.default_rng(1)
    slow = np.repeat(rng.random(6000 // lasts + 1) < 0.03, lasts)[:6000]
    seconds = np.where(slow, 9 + rng.random(6000), rng.random(6000))
    assert lasts / 2 <= slow_together_for(seconds) <= 6000 // 6
    assert slow_together_for(rng.permutation(seconds)) == 1


def test_spells_that_fall_into_one_bin_of_a_long_log_are_seen() -> None:
    rng = np.random.default_rng(2)
    slow = np.repeat(rng.random(100_000) < 0.02, 3)
    found = p99_interval(np.where(slow, 9 + rng.random(300_000), rng.random(300_000)))
    assert found is not None
    assert found.together
    assert not found.covers_less


def test_few_calls_are_marked_and_many_are_not() -> None:
    rng = np.random.default_rng(3)
    few, many = p99_interval(rng.lognormal(size=500)), p99_interval(rng.lognormal(size=5000))
    assert few is not None
    assert many is not None
    assert (few.covers_less, many.covers_less) == (True, False)


def test_one_long_spell_is_too_little_to_be_certain() -> None:
    rng = np.random.default_rng(4)
    seconds = rng.gamma(4, 0.5, 3000)
    seconds[1000:1300] += np.where(rng.random(300) < 0.2, 20, 0)
    found = p99_interval(seconds)
    assert found is not None
    assert (found.together, found.covers_less) == (True, True)


def test_fewer_blocks_widen_more() -> None:
    assert few_blocks_widen(6) == few_blocks_widen(2) > few_blocks_widen(20) > few_blocks_widen(200) == 1


def test_the_benchmark_of_the_table_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    spec = importlib.util.spec_from_file_location("intervals_benchmark", BENCHMARK)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "KINDS", {"independently": module.independent})
    monkeypatch.setattr(sys, "argv", ["intervals.py", "--logs", "3", "--calls", "2000"])
    module.main()
    assert "| independently | 2,000 | " in capsys.readouterr().out
