"""`hedgerow demo` as a user runs it: a program, its output and its exit code."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time

import psutil
import pytest

PROGRAM = [sys.executable, "-c", "from hedgerow.cli import main; main()"]
REQUESTS = 60
ARMS = ["single", "priority", "twice", "p95", "hedged"]
QUICK = ["--time-scale", "0.1", "--concurrency", "10", "--profile", "openai-like"]
PATIENCE_S = 50
PLAIN = {"NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "80"}
QUANTILES = {"p50", "p90", "p95", "p99", "p999", "n"}

pytestmark = pytest.mark.timeout(180)


def demo(*options):
    command = [*PROGRAM, "demo", *map(str, options)]
    return subprocess.run(command, capture_output=True, text=True, env=os.environ | PLAIN, timeout=240, check=False)


def said(run):
    """What an error message says, without the frame and the line breaks around it."""
    return re.sub(r"[\s│]+", " ", run.stderr)


@pytest.fixture(scope="module")
def found():
    run = demo("--requests", REQUESTS, "--json", *QUICK)
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    return json.loads(run.stdout)


def arms_of(found):
    return {arm["arm"]: arm for arm in found["arms"]}


def test_the_json_has_the_documented_keys_and_no_others(found):
    assert set(found) == {"arms", "paired", "proof"}
    assert [arm["arm"] for arm in found["arms"]] == ARMS
    for arm in found["arms"]:
        assert set(arm) == {
            *("arm", "n", "errors", "first_token", "full_response", "backups", "backup_wins", "cost_usd"),
            *("cost_per_call_usd", "p99_seconds_saved_per_usd"),
        }
        assert set(arm["first_token"]) == set(arm["full_response"]) == QUANTILES
        assert set(arm["cost_usd"]) == {"low", "high"}
        assert set(arm["cost_per_call_usd"]) == {"mean", "p50", "p95"}
    assert [(pair["arm"], pair["against"]) for pair in found["paired"]] == [(arm, "single") for arm in ARMS[1:]]
    assert set(found["proof"]) == {"answers_per_request", "losers_closed", "losers_open"}


def test_every_request_is_answered_once_and_no_loser_runs_on(found):
    assert found["proof"]["answers_per_request"] == 1
    assert found["proof"]["losers_open"] == 0
    assert all((arm["n"], arm["errors"], arm["full_response"]["n"]) == (REQUESTS, 0, REQUESTS) for arm in found["arms"])


def test_single_sends_no_backup_and_twice_one_for_each_request(found):
    arms = arms_of(found)
    assert (arms["single"]["backups"], arms["single"]["backup_wins"]) == (0, 0)
    # A first content that is there before the loop turns leaves nothing to back up.
    assert 0.9 * REQUESTS <= arms["twice"]["backups"] <= REQUESTS
    assert 0 < arms["twice"]["backup_wins"] < arms["twice"]["backups"]
    assert found["proof"]["losers_closed"] > 0.5 * REQUESTS


def test_priority_sends_each_call_once_at_the_price_of_the_tier(found):
    arms = arms_of(found)
    single, priority = arms["single"], arms["priority"]
    assert (priority["backups"], priority["backup_wins"]) == (0, 0)
    assert priority["cost_usd"]["low"] == priority["cost_usd"]["high"]
    assert priority["cost_usd"]["high"] == pytest.approx(1.75 * single["cost_usd"]["high"])


def test_hedged_stays_inside_its_budget(found):
    hedged = arms_of(found)["hedged"]
    assert hedged["backups"] - hedged["backup_wins"] <= 2 + 0.05 * REQUESTS


def test_the_low_cost_is_not_above_the_high_one_and_twice_costs_up_to_two_calls(found):
    arms = arms_of(found)
    assert all(arm["cost_usd"]["low"] <= arm["cost_usd"]["high"] for arm in found["arms"])
    single = arms["single"]["cost_usd"]
    assert single["low"] == single["high"]
    assert single["high"] < arms["twice"]["cost_usd"]["low"]
    assert arms["single"]["p99_seconds_saved_per_usd"] is None
    for arm in found["arms"]:
        assert arm["cost_per_call_usd"]["mean"] * REQUESTS == pytest.approx(arm["cost_usd"]["high"])


def test_each_paired_difference_is_that_of_the_table(found):
    arms = arms_of(found)
    for pair in found["paired"]:
        difference_s = arms[pair["arm"]]["full_response"]["p99"] - arms["single"]["full_response"]["p99"]
        assert pair["p99_difference_s"] == pytest.approx(difference_s)
        assert pair["interval"][0] <= pair["interval"][1]


def test_a_first_token_comes_before_the_end(found):
    for arm in found["arms"]:
        assert 0 < arm["first_token"]["p50"] < arm["full_response"]["p50"]


def test_a_person_gets_a_table_the_proof_and_one_sentence():
    run = demo("--requests", 30, *QUICK)
    assert run.returncode == 0, run.stderr
    *table, assumed, proof, sentence = run.stdout.splitlines()
    assert "priority*" in "\n".join(table)
    assert assumed.startswith("* priority: latency assumed (trouble 0.5 ×, times 0.9 ×), price 1.75 ×")
    assert re.search(r"full response p99 +│ +[\d.]+ │", "\n".join(table))
    assert "95 % interval" in "\n".join(table)
    assert proof.startswith("Proof, from the sandbox's own counters: 1 answers per request")
    assert proof.endswith("0 still open.")
    assert "hedged" in sentence
    assert "\x1b" not in run.stdout


def test_rows_of_real_calls_are_replayed_and_failed_ones_counted(tmp_path):
    rows = [f"s,p,m,{n},0.4,1.0,100,20,{'error_500' if n == 3 else 'ok'}" for n in range(10)]
    head = "source,provider,model,t_start,ttft_s,total_s,input_tokens,output_tokens,status"
    file = tmp_path / "calls.csv"
    file.write_text("\n".join([head, *rows]))
    run = demo("--requests", 10, "--json", "--replay", file, "--time-scale", "0.05", "--concurrency", "8")
    assert run.returncode == 0, run.stderr
    single = json.loads(run.stdout)["arms"][0]
    assert (single["n"], single["errors"], single["full_response"]["n"]) == (10, 1, 9)
    assert single["full_response"]["p50"] >= 1.0


def test_a_running_sandbox_is_used_and_once_only(hedgerow_sandbox_factory):
    sandbox = hedgerow_sandbox_factory(time_scale=0.5)
    options = ["--requests", 5, "--json", "--base-url", f"{sandbox.url}/v1", "--time-scale", "0.5"]
    run = demo(*options)
    assert run.returncode == 0, run.stderr
    cases = sandbox.stats()["cases"]
    assert set(cases) == {f"{arm}/{n}" for arm in ARMS for n in range(5)}
    at_priority = {case for case, attempts in cases.items() if attempts[0]["service_tier"] == "priority"}
    assert at_priority == {f"priority/{n}" for n in range(5)}
    again = demo(*options)
    assert again.returncode == 2
    assert "a sandbox that has not served this demo before" in said(again)


def test_a_server_that_is_no_sandbox_is_refused():
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        process = subprocess.Popen(
            [*PROGRAM, "demo", "--base-url", url, "--time-scale", "1"],
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | PLAIN,
        )
        server.settimeout(PATIENCE_S)
        connection, _ = server.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
            _, words = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 2
    assert "what runs there is no sandbox" in re.sub(r"[\s│]+", " ", words)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--base-url", "http://127.0.0.1:1"], "the --time-scale the sandbox"),
        (["--base-url", "http://127.0.0.1:1", "--time-scale", "1"], "no sandbox answers at"),
        (
            ["--base-url", "http://127.0.0.1:1", "--time-scale", "1", "--replay", "x.csv"],
            "give it to the sandbox there",
        ),
        (["--profile", "nowhere"], "profile = 'nowhere' is not possible"),
        (["--replay", "nowhere.csv"], "cannot be read"),
        (["--concurrency", "3"], "concurrency = 3 is not possible"),
        (["--time-scale", "0"], "time_scale = 0.0 is not possible"),
        (["--requests", "0"], "--requests"),
        (["--reqests", "10"], "No such option"),
    ],
)
def test_what_cannot_be_is_said_and_ends_with_2(options, words):
    run = demo(*options)
    assert run.returncode == 2
    assert words in said(run)
    assert run.stdout == ""


@pytest.fixture
def interruptible():
    """A shell starts what runs in the background deaf to SIGINT, and so are its children: tests, and the demos they start."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.alone
@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_demo_leaves_no_sandbox_and_no_traceback(number):
    process = subprocess.Popen(
        [*PROGRAM, "demo", "--json", "--time-scale", "5"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | PLAIN,
    )
    try:
        children = until(lambda: [child for child in psutil.Process(process.pid).children() if is_serving(child)])
        process.send_signal(number)
        out, err = process.communicate(timeout=PATIENCE_S)
    finally:
        process.kill()
    assert process.returncode not in (0, 2)
    assert out == ""
    assert "Traceback" not in err
    assert psutil.wait_procs(children, timeout=PATIENCE_S)[1] == []


def is_serving(process):
    """Has it clients? Then the calls are under way."""
    return any(each.status == psutil.CONN_ESTABLISHED for each in process.net_connections(kind="tcp"))


def until(look):
    end_s = time.monotonic() + PATIENCE_S
    while not (seen := look()):
        assert time.monotonic() < end_s
        time.sleep(0.05)
    return seen
