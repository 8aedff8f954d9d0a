"""One made-up row of each format: what becomes of its fields. The moment is 2026-11-01 10:00:00.1 UTC throughout."""

import json

import pytest

BEGUN = pytest.approx(1793527200.1, abs=1e-5)
FIRST, WHOLE = pytest.approx(0.52, abs=1e-5), pytest.approx(3.81, abs=1e-5)
KNOWN = {"t_start": BEGUN, "total_s": WHOLE, "input_tokens": 812, "output_tokens": 143, "ok": True}

LITELLM = {
    "litellm_call_id": "c-1",
    "session_id": "s-1",
    "stream": True,
    "response_cost": 0.0012,
    "status": "success",
    "custom_llm_provider": "openai",
    "model": "gpt-4o",
    "model_group": "gpt-4o",
    "prompt_tokens": 812,
    "completion_tokens": 143,
    "startTime": 1793527200.10,
    "completionStartTime": 1793527200.62,
    "endTime": 1793527203.91,
    "response_time": 0.52,
    "cache_hit": False,
    "messages": [{"role": "user", "content": "a secret"}],
}
SPEND_LOG = (
    "request_id,call_type,spend,prompt_tokens,completion_tokens,startTime,endTime,request_duration_ms,completionStartTime,"
    "model,custom_llm_provider,cache_hit,session_id,status\n"
)
LANGFUSE = {
    "id": "o1",
    "traceId": "t1",
    "type": "GENERATION",
    "level": "DEFAULT",
    "model": "gpt-4o",
    "startTime": "2026-11-01T10:00:00.100Z",
    "completionStartTime": "2026-11-01T10:00:00.620Z",
    "endTime": "2026-11-01T10:00:03.910Z",
    "latency": 3.81,
    "timeToFirstToken": 0.52,
    "usageDetails": {"input": 812, "output": 143},
    "costDetails": {"total": 0.0012},
    "modelParameters": {"stream": True},
}
HELICONE = {
    "request_created_at": "2026-11-01T10:00:00.100Z",
    "response_created_at": "2026-11-01T10:00:03.910Z",
    "response_status": 200,
    "provider": "OPENAI",
    "request_model": "gpt-4o",
    "delay_ms": 3810,
    "time_to_first_token": 520,
    "prompt_tokens": 812,
    "completion_tokens": 143,
    "request_body": {"stream": True},
}
CLOUDFLARE = {
    "created_at": "2026-11-01T10:00:00.100Z",
    "provider": "openai",
    "model": "gpt-4o",
    "duration": 3810,
    "status_code": 200,
    "success": True,
    "cached": False,
    "tokens_in": 812,
    "tokens_out": 143,
    "cost": 0.0012,
    "step": 0,
}
OPENROUTER = {
    "created_at": "2026-11-01T10:00:00.1Z",
    "model": "anthropic/claude-sonnet-4.5",
    "provider_name": "Amazon Bedrock",
    "streamed": True,
    "cancelled": False,
    "latency": 520,
    "generation_time": 3810,
    "native_tokens_prompt": 812,
    "native_tokens_completion": 143,
    "total_cost": 0.004,
    "finish_reason": "stop",
}


def test_a_litellm_payload_has_a_first_token_only_if_it_was_streamed(ingest, write):
    read = ingest(write("a.jsonl", [LITELLM, {**LITELLM, "stream": False}]))
    streamed, whole = read.calls
    assert streamed | KNOWN == streamed
    assert (streamed["provider"], streamed["model"], streamed["trace_id"]) == ("openai", "gpt-4o", "s-1")
    assert (streamed["ttft_s"], whole["ttft_s"]) == (FIRST, None)
    assert (streamed["cost_usd"], whole["total_s"]) == (0.0012, WHOLE)


def test_litellm_cache_hits_are_left_out_failures_have_no_times_and_retries_are_said(ingest, write):
    rows = [
        {**LITELLM, "cache_hit": True},
        {**LITELLM, "status": "failure"},
        {**LITELLM, "metadata": {"attempted_retries": 2}},
    ]
    read = ingest(write("a.jsonl", rows))
    assert read.rejected == {"a cache hit": 1}
    assert read.column("ok") == [False, True]
    assert read.column("total_s") == [None, WHOLE]
    assert read.says("in 1 row", "retried inside its time")


def test_litellm_spend_logs_are_utc_and_an_end_is_no_first_token(ingest, write):
    times = "2026-11-01 10:00:00.100,2026-11-01 10:00:03.910,3810"
    log = (
        f"{SPEND_LOG}1,a,0.0012,812,143,{times},2026-11-01 10:00:00.620,gpt-4o,openai,False,s-1,success\n"
        f"2,a,0.0012,812,143,{times},2026-11-01 10:00:03.910,gpt-4o,openai,,s-1,\n"
        f"3,a,0,812,143,{times},,gpt-4o,openai,True,s-1,success\n"
    )
    read = ingest(write("spend.csv", log))
    assert [call | KNOWN == call for call in read.calls] == [True, True]
    assert read.column("ttft_s") == [FIRST, None]
    assert read.messages == ["1 row left out, a cache hit (first at spend.csv:4)"]


def test_langfuse_answers_come_in_an_envelope_and_only_generations_count(ingest, write):
    rows = {"data": [LANGFUSE, {**LANGFUSE, "type": "SPAN"}, {**LANGFUSE, "level": "ERROR"}], "meta": {"page": 1}}
    read = ingest(write("a.json", json.dumps(rows, indent=2)))
    assert read.calls[0] | KNOWN == read.calls[0]
    assert (read.calls[0]["ttft_s"], read.calls[0]["provider"], read.calls[0]["cost_usd"]) == (FIRST, "openai", 0.0012)
    assert read.column("ok") == [True, False]
    assert read.rejected == {"not an LLM call": 1}


@pytest.mark.parametrize("first", ["0.52", "520"])
def test_langfuse_exports_may_say_seconds_or_milliseconds(ingest, write, first):
    log = (
        "id,trace_id,type,provided_model_name,start_time,end_time,completion_start_time,time_to_first_token,usage_details\n"
        f'1,t,GENERATION,gpt-4o,2026-11-01 10:00:00.1,2026-11-01 10:00:03.91,,{first},"{{""input"":812,""output"":143}}"\n'
    )
    call = ingest(write("a.csv", log)).only()
    assert call | KNOWN == call
    assert (call["ttft_s"], call["model"]) == (FIRST, "gpt-4o")


def test_langfuse_of_older_versions_has_its_usage_under_other_names(ingest, write):
    older = {name: value for name, value in LANGFUSE.items() if name not in ("usageDetails", "costDetails")}
    older |= {"usage": {"promptTokens": 812, "completionTokens": 143}, "calculatedTotalCost": 0.002}
    call = ingest(write("a.jsonl", [older])).only()
    assert (call["input_tokens"], call["output_tokens"], call["cost_usd"]) == (812, 143, 0.002)


def test_helicone_counts_in_milliseconds_and_what_is_pending_is_left_out(ingest, write):
    rows = [HELICONE, {**HELICONE, "time_to_first_token": 0.52}, {**HELICONE, "response_status": -3}]
    read = ingest(write("a.jsonl", [*rows, {**HELICONE, "response_status": 429}]))
    assert read.calls[0] | KNOWN == read.calls[0]
    assert read.column("ttft_s") == [FIRST, FIRST, None]
    assert read.column("ok") == [True, True, False]
    assert read.column("provider") == ["openai"] * 3
    assert read.rejected == {"cancelled or pending: its time is not known": 1}


def test_helicone_cache_hits_refer_to_another_request(ingest, write):
    nothing, something = "00000000-0000-0000-0000-000000000000", "5f1e0000-0000-0000-0000-000000000000"
    read = ingest(write("a.jsonl", [HELICONE | {"cache_reference_id": each} for each in (nothing, something)]))
    assert (len(read.calls), read.rejected) == (1, {"a cache hit": 1})


def test_cloudflare_has_no_first_token_and_says_what_a_fallback_did(ingest, write):
    rows = {"success": True, "result": [CLOUDFLARE, {**CLOUDFLARE, "step": 1}, {**CLOUDFLARE, "cached": True}]}
    read = ingest(write("a.json", json.dumps(rows)))
    assert read.calls[0] | KNOWN == read.calls[0]
    assert read.column("ttft_s") == [None, None]
    assert read.rejected == {"a cache hit": 1}
    assert read.says("in 1 row", "fallback")
    assert read.says("created_at is taken as the start")


def test_openrouter_latency_is_a_first_token_only_if_it_is_shorter_than_the_generation(ingest, write):
    rows = [{"data": OPENROUTER}, {"data": {**OPENROUTER, "latency": 3810, "generation_time": 3700}}]
    read = ingest(write("a.jsonl", [*rows, {"data": {**OPENROUTER, "cancelled": True}}]))
    assert [call | KNOWN == call for call in read.calls] == [True, True]
    assert read.column("ttft_s") == [FIRST, None]
    assert read.column("provider") == ["Amazon Bedrock"] * 2
    assert read.rejected == {"cancelled by the caller: its time is not known": 1}


def test_openrouter_activity_is_read_as_csv(ingest, write):
    log = (
        "generation_id,created_at,cost_total,tokens_prompt,tokens_completion,model_permaslug,provider_name,cancelled,streamed,"
        "finish_reason_normalized,generation_time_ms,time_to_first_token_ms\n"
        "g,2026-11-01 10:00:00.1,0.1,812,143,openai/gpt-4o,OpenAI,false,true,stop,3810,520\n"
    )
    read = ingest(write("activity.csv", log))
    assert read.only() | KNOWN == read.only()
    assert read.only()["ttft_s"] == FIRST
    assert read.says("in 1 row", "no zone", "UTC")


def test_tensorzero_leaves_cached_rows_out_and_says_that_failures_are_missing(ingest, write):
    log = (
        "id,inference_id,model_name,model_provider_name,input_tokens,output_tokens,response_time_ms,ttft_ms,timestamp,cached\n"
        "1,2,gpt-4o,openai,812,143,3810,520,2026-11-01 10:00:00.1,false\n"
        "2,2,gpt-4o,openai,812,143,0,,2026-11-01 10:00:00.1,true\n"
    )
    read = ingest(write("a.csv", log))
    assert read.only() | KNOWN == read.only()
    assert read.only()["ttft_s"] == FIRST
    assert read.rejected == {"a cache hit": 1}
    assert read.says("calls that failed are not in it")


def test_nginx_writes_when_a_request_ends_so_its_start_is_reckoned(ingest, write):
    row = {"request_time": "3.810", "upstream_response_time": "3.809", "upstream_header_time": "0.520", "status": "200"}
    moments = ({"msec": "1793527203.910"}, {"time_iso8601": "2026-11-01T11:00:03.910+01:00"})
    read = ingest(write("a.jsonl", [row | moment for moment in moments]))
    assert read.column("t_start") == [BEGUN, BEGUN]
    assert read.column("ttft_s") == [FIRST, FIRST]


def test_nginx_names_calls_that_went_to_several_upstreams(ingest, write):
    row = {
        "time_local": "01/Nov/2026:10:00:04 +0000",
        "request_time": 3.9,
        "upstream_response_time": "0.1, 3.8",
        "status": 200,
    }
    failed = {**row, "upstream_response_time": "-", "upstream_header_time": "-", "status": 502}
    read = ingest(write("a.jsonl", [row, failed]))
    assert read.column("ok") == [True, False]
    assert read.calls[0]["t_start"] == BEGUN
    assert read.says("in 1 row", "several upstreams")


def test_envoy_counts_in_milliseconds_from_the_start(ingest, write):
    row = {
        "start_time": "2026-11-01T10:00:00.100Z",
        "duration": 3810,
        "response_code": 200,
        "upstream_service_time": "520",
        "authority": "api.openai.com",
    }
    call = ingest(write("a.jsonl", [row])).only()
    assert (call["t_start"], call["ttft_s"], call["total_s"], call["provider"]) == (
        BEGUN,
        FIRST,
        WHOLE,
        "api.openai.com",
    )


def test_the_first_format_that_fits_reads_a_row_so_a_file_may_mix_them(ingest, write):
    read = ingest(write("a.jsonl", [LITELLM, HELICONE, {"hello": "world"}, LANGFUSE]))
    assert sorted(read.column("total_s")) == [WHOLE] * 3
    assert read.messages[0] == "1 row left out, of no known format (first at a.jsonl:3)"


def test_no_prompt_is_kept(ingest, write):
    assert "secret" not in str(ingest(write("a.jsonl", [LITELLM])).calls)
