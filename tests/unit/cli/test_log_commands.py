"""`hedgerow analyze` and `hedgerow whatif`, run as commands."""

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

from hedgerow import Policy

COMMAND = [sys.executable, "-c", "from hedgerow.cli import main; main()"]
QUANTILES = {"p50", "p90", "p95", "p99", "p999", "n"}
POLICIES = {"none", "twice", "p95", "p95+200ms", "p90", "lag:0.02", "lag:0.05", "lag:0.10"}


def run(*arguments: object, stdin: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*COMMAND, *map(str, arguments)], input=stdin, capture_output=True, check=False)


def document(*arguments: object, stdin: bytes | None = None) -> Any:
    done = run(*arguments, "--json", stdin=stdin)
    assert done.returncode == 0, done.stderr.decode()
    return orjson.loads(done.stdout)


def write_log(path: Path, *, n: int = 1500, stalls: float = 0.03, model: str = "gpt-4o-mini", trace: int = 0) -> Path:
    """A log of one model; a stall holds the first token back for 20 s."""
    rng = np.random.default_rng(1)
    tokens = rng.integers(20, 100, n)
    first = 0.4 + 0.2 * rng.random(n) + np.where(rng.random(n) < stalls, 20.0, 0)
    total = first + 0.01 * tokens
    start = 1.79e9 + np.cumsum(rng.exponential(0.2 if trace else 2.0, n))
    ids = [f"t{number // trace}" if trace else "" for number in range(n)]
    rows = [
        f"{start[k]:.3f},openai,{model},{first[k]:.4f},{total[k]:.4f},800,{tokens[k]},ok,{ids[k]},{'pro' if k % 3 else 'free'}"
        for k in range(n)
    ]
    head = "t_start,provider,model,ttft_s,total_s,input_tokens,output_tokens,status,trace_id,segment"
    path.write_text("\n".join([head, *rows]) + "\n")
    return path


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return write_log(tmp_path / "calls.csv")


def test_analyze_prints_the_documented_json(log: Path) -> None:
    found = document("analyze", log)
    assert {"rows_read", "rows_rejected", "warnings", "keys"} <= set(found)
    assert (found["rows_read"], found["rows_rejected"]) == (1500, {})
    (key,) = found["keys"]
    assert set(key) >= {
        *("provider", "model", "n", "errors", "first_token", "full_response", "tail_ratio", "flagged"),
        *("self_queueing", "stalls_per_day", "turns", "parallel", "hours"),
    }
    assert set(key["first_token"]) == QUANTILES | {"p99_interval", "covers"}  # of 600 calls: "less"
    assert set(key["turns"]) >= {"n", "threshold_s", "chance"}
    assert key["flagged"] is True
    assert key["self_queueing"] is False
    assert key["turns"]["n"] == 25
    assert key["cost"]["per_call_usd"]["mean"] > 0


def test_whatif_prints_the_documented_json_and_a_policy_that_can_be_loaded(log: Path, tmp_path: Path) -> None:
    (key,) = document("whatif", log)["keys"]
    assert set(key) >= {"provider", "model", "n", "worth_hedging", "reason", "policies", "recommended"}
    assert {each["policy"] for each in key["policies"]} >= POLICIES
    for each in key["policies"]:
        assert set(each) >= {"policy", "first_token", "full_response", "extra_requests", "extra_cost", "gain_share_p99"}
        assert set(each["full_response"]) == QUANTILES
        low, high = each["interval"]
        assert low <= each["gain_share_p99"] <= high or each["policy"].startswith("resend")
    assert key["worth_hedging"] is True
    (tmp_path / "p.toml").write_text(key["recommended"]["toml"])
    loaded = Policy.load(tmp_path / "p.toml")
    assert loaded.budget == float(key["recommended"]["policy"].partition(":")[2])
    assert loaded.prior is not None


def test_where_nothing_is_slow_whatif_says_not_worth_it_and_why(tmp_path: Path) -> None:
    (key,) = document("whatif", write_log(tmp_path / "calm.csv", stalls=0.0))["keys"]
    assert key["worth_hedging"] is False
    assert "no tail to cut" in key["reason"]
    assert key["recommended"] is None


def test_the_same_log_gives_the_same_figures(log: Path) -> None:
    assert document("whatif", log) == document("whatif", log)


def test_a_log_may_come_through_stdin(log: Path) -> None:
    assert document("analyze", "-", stdin=log.read_bytes())["rows_read"] == 1500


def test_segments_can_be_looked_at_by_themselves(log: Path) -> None:
    keys = document("whatif", log, "--segments")["keys"]
    assert {each["segment"]: each["n"] for each in keys} == {"pro": 1000, "free": 500}


def test_hours_of_the_day_can_be_looked_at_by_themselves(log: Path) -> None:
    utc, tokyo = (
        {each["segment"]: each["n"] for each in document("whatif", log, "--hours", "--time-zone", zone)["keys"]}
        for zone in ("UTC", "Asia/Tokyo")
    )
    assert sum(utc.values()) == 1500
    assert {f"{(int(hour[:2]) + 9) % 24:02d}:00": n for hour, n in utc.items()} == tokyo


def test_a_second_target_from_the_log_can_stand_for_backups(tmp_path: Path) -> None:
    log = write_log(tmp_path / "slow.csv")
    other = write_log(tmp_path / "calm.csv", stalls=0.0, model="gpt-4.1-mini")
    found = document("whatif", log, other, "--backup", "openai/gpt-4.1-mini")["keys"]
    key = next(each for each in found if each["model"] == "gpt-4o-mini")
    assert "gpt-4.1-mini" in key["assumptions"][0]
    assert next(each for each in key["policies"] if each["policy"] == "twice")["full_response"]["p999"] < 2


def test_an_unknown_backup_is_refused_with_the_keys_there_are(log: Path) -> None:
    done = run("whatif", log, "--backup", "openai/nobody")
    assert done.returncode == 2
    assert b"openai/gpt-4o-mini" in done.stderr


def test_the_same_tokens_can_be_priced_elsewhere(log: Path, tmp_path: Path) -> None:
    prices = tmp_path / "prices.toml"
    prices.write_text(
        '[[price]]\nmodel = "gpt-4o-mini"\ninput = 1.0\noutput = 4.0\n[[price]]\nmodel = "dear"\ninput = 3.0\noutput = 12.0\n'
    )
    (key,) = document("whatif", log, "--reprice", "dear", "--reprice", "unheard-of", "--prices", prices)["keys"]
    dear, unknown = key["repriced"]
    assert dear["times"] == pytest.approx(3.0)
    assert unknown["usd"] is None


def test_traces_with_a_straggler_are_told(tmp_path: Path) -> None:
    found = document("analyze", write_log(tmp_path / "calls.csv", trace=21))
    assert found["traces"]["n"] == 72
    assert found["traces"]["straggler_share"] > 0.2
    assert found["traces"]["worst"]["slowest_s"] > 20
    assert found["cost_per_trace_usd"]["mean"] > 0


def test_tables_are_for_people_and_problems_go_to_stderr(log: Path) -> None:
    with log.open("a") as file:
        file.write("1.79e9,openai,gpt-4o-mini,0.4,-3,800,20,ok,,pro\n")
    done = run("analyze", log)
    assert done.returncode == 0
    assert b"openai/gpt-4o-mini" in done.stdout
    assert f"{log}:1502".encode() in done.stderr


def test_a_log_without_calls_exits_1_and_says_why(tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_bytes(b"")
    done = run("analyze", tmp_path / "empty.csv")
    assert done.returncode == 1
    assert b"empty" in done.stderr
    assert done.stdout == b""


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--time-zone", "Mars/Olympus"), b"Europe/Berlin"),
        (("--stall-s", "-1"), b"seconds > 0"),
        (("--prices", "nowhere.toml"), b"nowhere.toml"),
    ],
)
def test_bad_options_exit_2_with_what_is_allowed(log: Path, options: tuple[str, ...], said: bytes) -> None:
    done = run("analyze", log, *options)
    assert done.returncode == 2
    assert said in done.stderr


def test_pooling_needs_start_times(tmp_path: Path) -> None:
    (tmp_path / "untimed.csv").write_text("provider,model,total_s\n" + "a,b,1.0\n" * 100)
    done = run("whatif", tmp_path / "untimed.csv", "--pool")
    assert done.returncode == 2
    assert b"start times" in done.stderr


def test_the_recommended_toml_is_toml(log: Path) -> None:
    text = document("whatif", log)["keys"][0]["recommended"]["toml"]
    (settings,) = tomllib.loads(text)["policy"].values()
    assert set(settings) <= {"budget", "upstream_stream", "prior"}
