"""`analyze` and `whatif` on real latencies, against figures computed here by other means (pandas)."""

import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pandas as pd
import pytest

Shared = Callable[[str], Path]


def hedgerow(*arguments: object) -> Any:
    """What a command prints with --json."""
    command = [sys.executable, "-c", "from hedgerow.cli import main; main()", *map(str, arguments), "--json"]
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return orjson.loads(done.stdout)


@cache
def known(command: str, path: Path, *options: str) -> Any:
    """What a command says of a file that stays as it is: each takes seconds, and several tests look at it."""
    return hedgerow(command, path, *options)


def key(document: Any, provider: str, model: str) -> Any:
    return next(each for each in document["keys"] if (each["provider"], each["model"]) == (provider, model))


def policy(found: Any, name: str) -> Any:
    return next(each for each in found["policies"] if each["policy"] == name)


def test_percentiles_of_every_key_are_those_of_pandas(shared_data: Shared) -> None:
    path = shared_data("real_calls.csv")
    analysis, frame = known("analyze", path), pd.read_csv(path)
    assert analysis["rows_read"] == len(frame)
    groups = frame.groupby(["provider", "model"])
    assert len(analysis["keys"]) == len(groups)
    for (provider, model), rows in groups:
        found = key(analysis, provider, model)
        good = rows[rows.status == "ok"]
        assert (found["n"], found["errors"]) == (len(rows), len(rows) - len(good))
        for name, column in (("first_token", good.ttft_s), ("full_response", good.total_s)):
            if column.notna().sum() == 0:
                assert found[name] is None
                continue
            for quantile, share in (("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p999", 0.999)):
                assert found[name][quantile] == pytest.approx(column.quantile(share), abs=1e-9)
            low, high = found[name]["p99_interval"] or (0, np.inf)
            assert low <= found[name]["p99"] <= high


def test_flags_and_ratios_follow_from_the_percentiles(shared_data: Shared) -> None:
    for found in known("analyze", shared_data("llmperf_leaderboard.parquet"))["keys"]:
        ratios = [found[name]["p99"] / found[name]["p50"] for name in ("first_token", "full_response") if found[name]]
        assert found["tail_ratio"] == pytest.approx(max(ratios))
        assert found["flagged"] is (max(ratios) >= 5)


def test_an_endpoint_whose_calls_hang_is_worth_hedging(shared_data: Shared) -> None:
    found = key(known("whatif", shared_data("llmperf_leaderboard.parquet")), "together", "llama-2-13b-chat")
    assert found["worth_hedging"] is True
    assert "hung" in found["reason"]
    assert found["recommended"]["policy"].startswith("lag:")


def test_an_endpoint_that_queues_on_itself_is_refused(shared_data: Shared) -> None:
    path = shared_data("llmperf_leaderboard.parquet")
    queueing = [each["provider"] for each in known("analyze", path)["keys"] if each["self_queueing"]]
    assert set(queueing) == {"replicate"}
    for found in known("whatif", path)["keys"]:
        if found["provider"] == "replicate":
            assert found["worth_hedging"] is False
            assert "queues on itself" in found["reason"]
            assert found["recommended"] is None


def test_of_a_shuffled_copy_self_queueing_is_unknown(shared_data: Shared, tmp_path: Path) -> None:
    frame = pd.read_parquet(shared_data("llmperf_leaderboard.parquet")).drop(columns="seq")
    for seed in range(3):
        frame.sample(frac=1, random_state=seed).to_parquet(tmp_path / "shuffled.parquet")
        assert {each["self_queueing"] for each in hedgerow("analyze", tmp_path / "shuffled.parquet")["keys"]} == {None}


# How much of the p99 of pooled calls goes away at 10 % of extra calls, as design notes found it by other means.
CUTS = [(("--pool",), 0.27), (("--pool", "--within-provider"), 0.15)]


@pytest.mark.parametrize(("options", "cut"), CUTS)
def test_pooled_calls_gain_what_is_known_of_them(shared_data: Shared, options: tuple[str, ...], cut: float) -> None:
    (found,) = known("whatif", shared_data("thefastest_ai.parquet"), *options)["keys"]
    for name in ("p90", "lag:0.10"):
        low, high = policy(found, name)["p99_cut_interval"]
        assert low <= cut <= high, (name, low, high)


def test_backups_at_other_providers_gain_more_than_at_the_same_one(shared_data: Shared) -> None:
    across, within = (
        policy(known("whatif", shared_data("thefastest_ai.parquet"), *options)["keys"][0], "p90")["p99_cut"]
        for options, _ in CUTS
    )
    assert across > within


def test_what_twice_gains_on_one_key_is_what_its_neighbours_say(shared_data: Shared) -> None:
    """Independently: each call against the mean of both its neighbours in time, for answers of one length."""
    path = shared_data("llmperf_leaderboard.parquet")
    frame = pd.read_parquet(path)
    rows = frame[(frame.provider == "fireworks") & (frame.model == "llama-2-7b-chat")].sort_values("seq")
    assert rows.output_tokens.nunique() < 12
    total = rows.total_s.to_numpy()
    before, after = np.r_[total[2], total[:-1]], np.r_[total[1:], total[-3]]
    expected = np.quantile(np.r_[np.minimum(total, before), np.minimum(total, after)], 0.99)
    found = policy(key(known("whatif", path), "fireworks", "llama-2-7b-chat"), "twice")
    assert found["full_response"]["p99"] == pytest.approx(expected, rel=0.05)
