"""OpenTelemetry traces as JSON: OTLP (collector's file exporter, Tempo), the SDK's console exporter, Phoenix's table of spans.

Attributes of the GenAI conventions 0.66b2 with their older names, OpenInference 0.1.42, OpenLLMetry and Vercel's AI SDK
(`ai.response.msToFirstChunk`); names of first-token events as in openinference (openai/_stream.py) and OpenLLMetry.
"""

from hedgerow.analysis.ingest.fields import (
    Expr,
    any_of,
    either,
    is_not,
    millis,
    moment,
    number,
    seconds_or_millis,
    text,
    truth,
)
from hedgerow.analysis.ingest.format import Format

__all__ = ["PHOENIX_SPANS", "SPANS"]

_start, _end = moment("span.start"), moment("span.end")
_whole = _end - _start


def _first_of(kind: "type[int] | type[str]", *names: str) -> Expr:
    return either(*((number if kind is int else text)(name) for name in names))


SPANS = Format(
    name="OpenTelemetry spans",
    needs=(("span.start",), ("span.kind",)),
    columns={
        "t_start": _start,
        "provider": _first_of(
            str, "gen_ai.provider.name", "gen_ai.system", "llm.provider", "llm.system", "ai.model.provider"
        ),
        "model": _first_of(
            str, "gen_ai.request.model", "gen_ai.response.model", "llm.model_name", "embedding.model_name"
        ),
        "ttft_s": either(
            seconds_or_millis("gen_ai.response.time_to_first_chunk", _whole),
            seconds_or_millis("gen_ai.response.time_to_first_token", _whole),
            millis("ai.response.msToFirstChunk"),
            moment("span.first") - _start,
        ),
        "total_s": _whole,
        "input_tokens": _first_of(
            int,
            "gen_ai.usage.input_tokens",
            "gen_ai.usage.prompt_tokens",
            "llm.usage.prompt_tokens",
            "llm.token_count.prompt",
        ),
        "output_tokens": _first_of(
            int,
            "gen_ai.usage.output_tokens",
            "gen_ai.usage.completion_tokens",
            "llm.usage.completion_tokens",
            "llm.token_count.completion",
        ),
        "cached_tokens": _first_of(
            int,
            "gen_ai.usage.cache_read.input_tokens",
            "gen_ai.usage.cache_read_input_tokens",
            "llm.token_count.prompt_details.cache_read",
        ),
        "ok": is_not(any_of(text("span.status").within("2", "status_code_error", "error"), text("error.type").known())),
        "stream": either(truth("gen_ai.request.stream"), truth("llm.is_streaming")),
        "trace_id": text("span.trace"),
    },
    skip={
        "not an LLM call": text("span.kind").within("other"),
        "a span around another LLM call": text("span.kind").within("wrapper"),
    },
    notices={"the call was sent again inside its time (resend_count)": number("http.request.resend_count").above(0)},
)

_since, _until = moment("start_time"), moment("end_time")
PHOENIX_SPANS = Format(
    name="Phoenix spans",
    needs=(("span_kind",), ("start_time",), ("end_time",), ("context.trace_id", "context.span_id")),
    columns={
        "t_start": _since,
        "provider": _first_of(str, "attributes.llm.provider", "attributes.llm.system"),
        "model": _first_of(str, "attributes.llm.model_name", "attributes.embedding.model_name"),
        "total_s": _until - _since,
        "input_tokens": number("attributes.llm.token_count.prompt"),
        "output_tokens": number("attributes.llm.token_count.completion"),
        "ok": is_not(text("status_code").within("error")),
        "trace_id": text("context.trace_id"),
    },
    skip={"not an LLM call": is_not(text("span_kind").within("llm", "embedding"))},
)
