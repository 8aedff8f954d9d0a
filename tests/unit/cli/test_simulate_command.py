"""`hedgerow simulate`, run as a command."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = [sys.executable, "-c", "from hedgerow.cli import main; main()", "simulate"]
HEAD = "request,attempt,start_s,input_tokens,output_tokens,ttft_s,token_s,stall_after_tokens,stall_s,status"


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *map(str, arguments)], capture_output=True, text=True, check=False)


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "p.toml"
    path.write_text("[policy.mine]\nbudget = 0.05\n")
    return path


@pytest.fixture
def attempts(tmp_path: Path) -> Path:
    """60 requests; each twentieth has a primary whose first token takes 30 s."""
    path = tmp_path / "attempts.csv"
    lines = [
        f"{number},{attempt},{number},100,50,{30.0 if number % 20 == 19 and not attempt else 0.5},0.01,1,0,200"
        for number in range(60)
        for attempt in range(2)
    ]
    path.write_text("\n".join([HEAD, *lines]))
    return path


def test_the_json_has_the_documented_keys_and_nothing_else_is_on_stdout(attempts: Path, policy: Path) -> None:
    done = run(attempts, "--policy", policy, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    quantiles = {"p50", "p90", "p95", "p99", "p999", "n"}
    assert list(found) == [
        "policy",
        "n",
        "first_token",
        "full_response",
        "backup_rate",
        "backups_per_request",
        "win_rate",
        "losing_backup_rate",
        "extra_cost",
        "baseline",
        "gain_share",
        "gain_share_first_token",
    ]
    assert (found["policy"], found["n"]) == ("mine", 60)
    assert set(found["first_token"]) == quantiles
    assert set(found["full_response"]) == quantiles | {"cvar99"}
    assert set(found["baseline"]) == {"none", "twice"}
    assert set(found["gain_share"]) == set(found["gain_share_first_token"]) == {"p95", "p99", "cvar99"}
    assert found["backups_per_request"] == pytest.approx(2 / 60)  # the first late one came while all was cold
    assert found["win_rate"] == 1.0
    assert 0 < found["extra_cost"]["low"] <= found["extra_cost"]["high"]


def test_a_person_gets_a_table_and_a_sentence(attempts: Path, policy: Path) -> None:
    done = run(attempts, "--policy", policy, "--caller", "stream")
    assert done.returncode == 0
    assert re.search(r"full response p99 +│ +30\.50", done.stdout)
    assert "Simulated: mine moves the first-token p99 from 30.00 s" in done.stdout


def test_no_tail_no_gain_and_it_says_so(tmp_path: Path, policy: Path) -> None:
    path = tmp_path / "even.csv"
    path.write_text("\n".join([HEAD, *(f"{n},{k},{n},100,50,0.5,0.01,1,0,200" for n in range(30) for k in range(2))]))
    assert "there is no tail that a backup could cut" in run(path, "--policy", policy).stdout
    assert json.loads(run(path, "--policy", policy, "--json").stdout)["gain_share"]["p99"] is None


def test_misuse_is_exit_2_and_names_the_place(attempts: Path, policy: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.csv"
    bad.write_text(f"{HEAD}\n1,0,0,100,0,0.5,0.01,1,0,200\n")
    wrong = tmp_path / "wrong.toml"
    wrong.write_text("[policy.mine]\nbudget = 7\n")
    for arguments, said in (
        ((bad, "--policy", policy), "bad.csv, row 1: output_tokens = 0"),
        ((tmp_path / "none.csv", "--policy", policy), "an existing Parquet or CSV file"),
        ((attempts, "--policy", wrong), "wrong.toml:2: budget = 7"),
        ((attempts, "--policy", tmp_path / "none.toml"), "none.toml"),
        ((attempts, "--policy", policy, "--caller", "both"), "both"),
        ((attempts,), "--policy"),
    ):
        done = run(*arguments)
        assert (done.returncode, done.stdout) == (2, ""), arguments
        assert _unboxed(said) in _unboxed(done.stderr)


def test_it_fails_where_every_request_fails(tmp_path: Path, policy: Path) -> None:
    path = tmp_path / "down.csv"
    path.write_text(f"{HEAD}\n1,0,0,100,0,0.5,0.01,1,0,500\n")
    done = run(path, "--policy", policy, "--json")
    assert done.returncode == 1
    assert "every request failed" in done.stderr
    assert json.loads(done.stdout)["full_response"]["p99"] is None


def test_phases_are_mentioned(attempts: Path, policy: Path) -> None:
    lines = attempts.read_text().splitlines()
    attempts.write_text("\n".join([lines[0] + ",phase", *(f"{line},1" for line in lines[1:])]))
    assert "phases are not looked at" in run(attempts, "--policy", policy, "--json").stderr


def _unboxed(text: str) -> str:
    """A box breaks long paths anywhere, depending on where temporary files are."""
    return re.sub(r"[│\s]+", "", text)
