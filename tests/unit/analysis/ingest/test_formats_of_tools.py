"""Benchmarks, Bedrock, the llm command line and hedgerow's own data: one made-up sample of each."""

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime

import pytest

from hedgerow.values.event import AttemptEvent, Event

VLLM = {
    "date": "20261101-100005",
    "backend": "vllm",
    "model_id": "Qwen/Qwen3-8B",
    "duration": 5.0,
    "input_lens": [512, 513, 514],
    "output_lens": [3, 2, 0],
    "ttfts": [0.041, 0.043, 0.0],
    "itls": [[0.01, 0.02], [0.01], []],
    "start_times": [7.0, 7.5, 8.0],
    "errors": ["", "", "refused"],
    "generated_texts": ["a", "b", ""],
    "mean_ttft_ms": 68.0,
}
BEDROCK = {
    "schemaType": "ModelInvocationLog",
    "timestamp": "2026-11-01T10:00:00Z",
    "region": "us-east-1",
    "requestId": "r1",
    "operation": "Converse",
    "modelId": "us.anthropic.claude-sonnet-4-5-v1:0",
    "input": {"inputTokenCount": 812},
    "output": {
        "outputBodyJson": {"metrics": {"latencyMs": 3810}, "usage": {"inputTokens": 812}},
        "outputTokenCount": 143,
    },
}
CHUNKS = [
    {"type": "content_block_delta"},
    {"type": "message_stop", "amazon-bedrock-invocationMetrics": {"invocationLatency": 900, "firstByteLatency": 300}},
]
ATTEMPTS = "request,attempt,start_s,input_tokens,output_tokens,ttft_s,token_s,stall_after_tokens,stall_s,status\n"
MOMENT = datetime(2026, 11, 1, 10, tzinfo=UTC)


def event(name: str, *attempts: AttemptEvent, outcome: str = "answered") -> dict[str, object]:
    record = Event(
        id=name, at=MOMENT, dialect="openai", model="gpt-4o", stream=True, outcome=outcome, attempts=attempts
    )
    return json.loads(json.dumps(record.as_dict()))


def attempt(number: int = 0, outcome: str = "won", **more: object) -> AttemptEvent:
    usual = {"first_token_s": 0.5, "ended_s": 2.0, "output_tokens": 143}
    return AttemptEvent(attempt=number, target="openai", outcome=outcome, **(usual | more))  # type: ignore[arg-type]


def test_a_serving_benchmark_is_parallel_lists(ingest, write):
    read = ingest(write("a.json", json.dumps(VLLM)))
    assert read.column("ttft_s") == [0.041, 0.043, None]
    assert read.column("total_s") == [pytest.approx(0.071), pytest.approx(0.053), None]
    assert read.column("ok") == [True, True, False]
    assert read.column("t_start") == [1793527200.0, 1793527200.5, 1793527201.0]
    assert read.column("model") == ["Qwen/Qwen3-8B"] * 3
    assert read.column("input_tokens") == [512, 513, 514]


def test_a_benchmark_without_details_says_what_to_pass(ingest, write):
    summary = {name: value for name, value in VLLM.items() if name not in ("ttfts", "itls")}
    read = ingest(write("a.json", json.dumps(summary, indent=1)))
    assert (read.calls, read.says("a.json:1", "--save-detailed", "--output-details")) == ([], True)


def test_short_lists_and_no_clock_of_a_benchmark_are_unknown(ingest, write):
    sglang = {"backend": "sglang", "ttfts": [0.1, 0.2], "itls": [[0.1], None], "input_lens": [5]}
    read = ingest(write("a.jsonl", [sglang]))
    assert read.column("t_start") == [None, None]
    assert read.column("input_tokens") == [5, None]
    assert read.column("total_s") == [0.2, 0.2]


def test_llmperf_errors_have_no_times(ingest, write):
    good = {"error_code": None, "ttft_s": 0.78, "end_to_end_latency_s": 2.53, "number_output_tokens": 157}
    read = ingest(write("a.json", json.dumps([good, {"error_code": -1, "ttft_s": 0, "end_to_end_latency_s": 0}])))
    assert read.column("total_s") == [2.53, None]
    assert read.column("ok") == [True, False]


def test_bfcl_says_that_retries_are_inside(ingest, write):
    row = {"id": "simple_1", "result": "f(x)", "input_token_count": 100, "output_token_count": 20, "latency": 1.5}
    read = ingest(write("a.jsonl", [row]))
    assert (read.only()["total_s"], read.only()["input_tokens"]) == (1.5, 100)
    assert read.says("around the client's retries")


def test_bedrock_latency_is_in_the_body_or_in_the_last_chunk(ingest, write):
    stream = {**BEDROCK, "operation": "InvokeModelWithResponseStream", "output": {"outputBodyJson": CHUNKS}}
    converse = {"metadata": {"metrics": {"latencyMs": 700}, "usage": {"outputTokens": 9}}}
    read = ingest(write("a.jsonl", [BEDROCK, stream, {**BEDROCK, "output": {"outputBodyJson": [{}, converse]}}]))
    assert read.column("total_s") == [3.81, 0.9, 0.7]
    assert read.column("ttft_s") == [None, 0.3, None]
    assert read.column("output_tokens") == [143, None, 9]
    assert read.column("stream") == [False, True, False]


def test_bedrock_without_bodies_says_redacted_and_errors_stay(ingest, write):
    read = ingest(write("a.jsonl", [{**BEDROCK, "output": {}}, {**BEDROCK, "output": {}, "errorCode": "Throttling"}]))
    assert read.column("ok") == [False]
    assert read.says("1 row left out, redacted")


def test_bedrock_records_may_be_inside_cloudwatch_events(ingest, write):
    events = {
        "events": [{"ingestionTime": 1, "message": json.dumps(BEDROCK)}, {"ingestionTime": 2, "message": "START"}]
    }
    read = ingest(write("a.json", json.dumps(events)))
    assert read.only()["total_s"] == 3.81
    assert read.rejected == {"of no known format": 1}


def test_the_llm_command_line_logs_to_sqlite(ingest, tmp_path):
    path = tmp_path / "logs.db"
    with closing(sqlite3.connect(path)) as base:
        base.execute(
            "create table responses (id, model, resolved_model, duration_ms, datetime_utc, input_tokens, response)"
        )
        base.execute("create table other (a, b)")
        base.execute("insert into other values (1, 2)")
        row = ("1", "4o", "gpt-4o-2024-08-06", 3810, "2026-11-01T10:00:00.100000+00:00", 812, b"\xff")
        base.execute("insert into responses values (?, ?, ?, ?, ?, ?, ?)", row)
        base.commit()
    call = ingest(str(path)).only()
    assert (call["total_s"], call["model"], call["provider"], call["input_tokens"]) == (
        3.81,
        "gpt-4o-2024-08-06",
        "openai",
        812,
    )


def test_attempt_zero_is_the_call_and_the_others_are_not(ingest, write):
    log = f"{ATTEMPTS}1,0,0,100,10,0.5,0.01,1,2.0,200\n1,1,0,100,10,0.4,0.01,1,0,200\n2,0,1.5,100,0,0.5,0.01,1,0,500\n"
    read = ingest(write("a.csv", log))
    assert read.column("total_s") == [pytest.approx(2.6), None]
    assert read.column("t_start") == [0.0, 1.5]
    assert read.rejected == {"what a backup would have done, not a call": 1}


def test_an_event_counts_with_its_primary(ingest, write):
    hedged = event("b", attempt(first_token_s=1.5), attempt(1, "lost"))
    read = ingest(write("a.jsonl", [event("a", attempt(started_s=0.25)), hedged]))
    assert read.column("ttft_s") == [0.5, 1.5]
    assert read.column("total_s") == [2.0, 2.0]
    assert read.calls[0]["t_start"] == MOMENT.timestamp() + 0.25
    assert (read.calls[0]["provider"], read.calls[0]["model"]) == ("openai", "gpt-4o")


def test_a_cancelled_primary_is_no_answer_and_no_error_and_makes_p99_a_lower_bound(ingest, write):
    rows = [
        event("a", attempt(outcome="lost", first_token_s=None), attempt(1)),
        event("b", attempt(outcome="failed", status=500), attempt(1)),
        event("c", attempt(outcome="caller_left"), outcome="caller_left"),
        event("d"),
        event("e", attempt()),
    ]
    read = ingest(write("a.jsonl", rows))
    assert read.column("ok") == [False, True]
    assert read.rejected == {
        "a primary that was cancelled: its time is not known": 1,
        "given up by the caller: its time is not known": 1,
        "a request without an attempt": 1,
    }
    assert read.says("in 1 row", "p99 is a lower bound")


def test_events_in_sqlite_are_two_tables(ingest, tmp_path):
    path = tmp_path / "hedgerow.db"
    with closing(sqlite3.connect(path)) as base:
        base.execute("create table requests (id, at, plan, outcome, model, stream)")
        base.execute("create table attempts (id, attempt, target, started_s, first_token_s, ended_s, outcome, model)")
        base.execute("insert into requests values ('a', '2026-11-01T10:00:00+00:00', 'hedge', 'answered', 'gpt-4o', 1)")
        attempts = [("a", 0, "openai", 0.0, None, 3.0, "lost", None), ("a", 1, "openai", 1.0, 0.5, 2.0, "won", None)]
        base.executemany("insert into attempts values (?, ?, ?, ?, ?, ?, ?, ?)", attempts)
        base.execute("insert into requests values ('b', '2026-11-01T10:00:01+00:00', 'hedge', 'answered', 'gpt-4o', 1)")
        base.execute("insert into attempts values ('b', 0, 'openai', 0.0, 0.5, 2.0, 'won', null)")
        base.commit()
    read = ingest(str(path))
    assert (read.only()["ttft_s"], read.only()["total_s"], read.only()["t_start"]) == (0.5, 2.0, MOMENT.timestamp() + 1)
    assert read.rejected == {"a primary that was cancelled: its time is not known": 1}
