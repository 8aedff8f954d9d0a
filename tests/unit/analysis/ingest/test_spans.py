"""Traces: which spans are calls, what of them is read, and that a call is counted once however many spans wrap it."""

import json

import pytest

BEGUN, FIRST, ENDED = 1_793_527_200_100_000_000, 1_793_527_200_620_000_000, 1_793_527_203_910_000_000
NEW_NAMES = {
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": "openai",
    "gen_ai.request.model": "gpt-4o",
    "gen_ai.request.stream": True,
    "gen_ai.response.time_to_first_chunk": 0.52,
    "gen_ai.usage.input_tokens": 812,
    "gen_ai.usage.output_tokens": 143,
}
OLD_NAMES = {
    "gen_ai.system": "openai",
    "gen_ai.request.model": "gpt-4o",
    "llm.request.type": "chat",
    "gen_ai.usage.prompt_tokens": 812,
    "gen_ai.usage.completion_tokens": 143,
}
OPENINFERENCE = {
    "openinference.span.kind": "LLM",
    "llm.provider": "openai",
    "llm.model_name": "gpt-4o",
    "llm.token_count.prompt": 812,
    "llm.token_count.completion": 143,
}
VERCEL = {
    "ai.operationId": "ai.streamText.doStream",
    "gen_ai.system": "openai",
    "gen_ai.request.model": "gpt-4o",
    "ai.response.msToFirstChunk": 520,
    "gen_ai.usage.input_tokens": 812,
    "gen_ai.usage.output_tokens": 143,
}
FIRST_TOKEN_NAMES = ("First Token Stream Event", "llm.content.completion.chunk", "gen_ai.content.completion.chunk")


def value(raw: object) -> dict[str, object]:
    if isinstance(raw, bool):
        return {"boolValue": raw}
    if isinstance(raw, int):
        return {"intValue": str(raw)}
    return {"doubleValue": raw} if isinstance(raw, float) else {"stringValue": raw}


def span(name: str, attributes: dict[str, object], parent: str = "", **more: object) -> dict[str, object]:
    usual: dict[str, object] = {
        "traceId": "5b8e",
        "spanId": name,
        "parentSpanId": parent,
        "startTimeUnixNano": str(BEGUN),
        "endTimeUnixNano": str(ENDED),
        "status": {"code": 0},
        "attributes": [{"key": key, "value": value(raw)} for key, raw in attributes.items()],
    }
    return usual | more


def export(*spans: dict[str, object]) -> dict[str, object]:
    return {"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]}


@pytest.mark.parametrize("attributes", [NEW_NAMES, OLD_NAMES, OPENINFERENCE, VERCEL])
def test_a_call_is_read_under_new_and_old_names(ingest, write, attributes):
    events = [] if attributes in (NEW_NAMES, VERCEL) else [{"name": FIRST_TOKEN_NAMES[0], "timeUnixNano": str(FIRST)}]
    call = ingest(write("a.jsonl", [export(span("1", attributes, events=events))])).only()
    assert call["t_start"] == pytest.approx(BEGUN / 1e9, abs=1e-5)
    assert (call["ttft_s"], call["total_s"]) == (pytest.approx(0.52, abs=1e-5), pytest.approx(3.81, abs=1e-5))
    assert (call["provider"], call["model"], call["trace_id"]) == ("openai", "gpt-4o", "5b8e")
    assert (call["input_tokens"], call["output_tokens"], call["ok"]) == (812, 143, True)


@pytest.mark.parametrize("name", FIRST_TOKEN_NAMES)
def test_the_earliest_first_token_event_counts(ingest, write, name):
    events = [{"name": name, "timeUnixNano": str(at)} for at in (FIRST + 10**9, FIRST)]
    read = ingest(write("a.jsonl", [export(span("1", OLD_NAMES, events=[{"name": "exception"}, *events]))]))
    assert read.only()["ttft_s"] == pytest.approx(0.52, abs=1e-5)


@pytest.mark.parametrize(
    "failure",
    [
        {"status": {"code": 2}},
        {"status": {"code": "STATUS_CODE_ERROR"}},
        {
            "attributes": [
                {"key": "gen_ai.request.model", "value": {"stringValue": "m"}},
                {"key": "error.type", "value": {"stringValue": "429"}},
            ]
        },
    ],
)
def test_a_span_with_an_error_is_a_call_that_failed(ingest, write, failure):
    read = ingest(write("a.jsonl", [export(span("1", NEW_NAMES) | failure)]))
    assert (read.column("ok"), read.column("total_s")) == ([False], [None])


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"gen_ai.operation.name": "execute_tool"},
        {"gen_ai.operation.name": "invoke_agent", "gen_ai.request.model": "gpt-4o"},
        {"openinference.span.kind": "CHAIN"},
        {"traceloop.span.kind": "workflow"},
        {"ai.operationId": "ai.streamText", "gen_ai.request.model": "gpt-4o"},
    ],
)
def test_other_spans_are_no_calls(ingest, write, attributes):
    assert ingest(write("a.jsonl", [export(span("1", attributes))])).rejected == {"not an LLM call": 1}


@pytest.mark.parametrize("lines", [1, 3])
def test_a_span_that_wraps_a_call_is_not_counted_again(ingest, write, lines):
    outer = span("outer", OPENINFERENCE, endTimeUnixNano=str(ENDED + 2))
    middle = span("middle", {}, parent="outer", endTimeUnixNano=str(ENDED + 1))
    inner = span("inner", NEW_NAMES, parent="middle")
    records = [export(outer, middle, inner)] if lines == 1 else [export(each) for each in (inner, middle, outer)]
    read = ingest(write("a.jsonl", records))
    assert read.only()["ttft_s"] == 0.52
    assert read.rejected == {"a span around another LLM call": 1, "not an LLM call": 1}


def test_calls_next_to_each_other_under_one_span_all_count(ingest, write):
    spans = [
        span("1", NEW_NAMES, parent="0"),
        span("2", NEW_NAMES, parent="0"),
        span("0", {"openinference.span.kind": "AGENT"}),
    ]
    assert len(ingest(write("a.jsonl", [export(*spans)])).calls) == 2


def test_what_the_sdk_prints_on_a_console_is_read_too(ingest, write):
    printed = {
        "name": "ChatCompletion",
        "context": {"trace_id": "0x1", "span_id": "0x2"},
        "parent_id": None,
        "start_time": "2026-11-01T10:00:00.100000Z",
        "end_time": "2026-11-01T10:00:03.910000Z",
        "status": {"status_code": "UNSET"},
        "attributes": OPENINFERENCE,
        "events": [{"name": "First Token Stream Event", "timestamp": "2026-11-01T10:00:00.620000Z"}],
    }
    text = "".join(
        json.dumps(each, indent=4) + "\n" for each in (printed, {**printed, "status": {"status_code": "ERROR"}})
    )
    read = ingest(write("a.txt", text))
    assert read.column("ok") == [True, False]
    assert read.calls[0]["ttft_s"] == pytest.approx(0.52, abs=1e-5)


def test_spans_of_no_shape_are_left_out_without_a_fuss(ingest, write):
    odd = {"resourceSpans": [None, {"scopeSpans": [{"spans": [{"attributes": [{"key": "gen_ai.request.model"}]}, 5]}]}]}
    assert ingest(write("a.jsonl", [odd, {"resourceSpans": "x"}])).rejected == {"without any time": 1}


def test_phoenix_exports_spans_as_a_table(ingest, write):
    log = (
        "name,span_kind,start_time,end_time,status_code,context.trace_id,attributes.llm.model_name,attributes.llm.token_count.prompt\n"
        "c,LLM,2026-11-01 10:00:00.1+00:00,2026-11-01 10:00:03.91+00:00,OK,t,gpt-4o,812\n"
        "c,CHAIN,2026-11-01 10:00:00.1+00:00,2026-11-01 10:00:03.91+00:00,OK,t,,\n"
    )
    read = ingest(write("a.csv", log))
    assert (read.only()["total_s"], read.only()["input_tokens"]) == (pytest.approx(3.81, abs=1e-5), 812)
