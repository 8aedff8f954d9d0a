"""LiteLLM: the standard logging payload (callbacks, S3, GCS, Datadog) and the proxy's table of spend logs.

Fields as in litellm 1.110 (types/utils.py, proxy/schema.prisma); `attempted_retries` as in its proxy's metadata.
"""

from hedgerow.analysis.ingest.fields import either, is_not, millis, moment, number, text, truth
from hedgerow.analysis.ingest.format import Format

__all__ = ["LITELLM_PAYLOAD", "LITELLM_SPEND_LOGS"]

RETRIED = "the call was retried inside its time (attempted_retries > 0): it is slower than one call"

_start, _end, _first = moment("startTime"), moment("endTime"), moment("completionStartTime")
_retries = either(number("attempted_retries"), number("metadata.attempted_retries"))

# `completionStartTime` of a call that was not streamed is its end: no first token.
LITELLM_PAYLOAD = Format(
    name="LiteLLM payload",
    needs=(("litellm_call_id", "model_group", "custom_llm_provider"), ("startTime",), ("endTime",), ("response_time",)),
    columns={
        "t_start": _start,
        "provider": either(text("custom_llm_provider"), text("model_group")),
        "model": text("model"),
        "ttft_s": (_first - _start).where(truth("stream")),
        "total_s": _end - _start,
        "input_tokens": number("prompt_tokens"),
        "output_tokens": number("completion_tokens"),
        "cost_usd": number("response_cost"),
        "ok": text("status").within("success"),
        "stream": truth("stream"),
        "trace_id": either(text("session_id"), text("trace_id")),
    },
    skip={"a cache hit": truth("cache_hit")},
    notices={RETRIED: _retries.above(0)},
)

LITELLM_SPEND_LOGS = Format(
    name="LiteLLM spend logs",
    needs=(("startTime",), ("endTime",), ("spend",), ("call_type", "request_id")),
    columns={
        "t_start": _start,
        "provider": text("custom_llm_provider"),
        "model": text("model"),
        "ttft_s": (_first - _start).where(is_not((_end - _first).below(0.0005))),
        "total_s": either(_end - _start, millis("request_duration_ms")),
        "input_tokens": number("prompt_tokens"),
        "output_tokens": number("completion_tokens"),
        "cost_usd": number("spend"),
        "ok": text("status").within("success"),
        "trace_id": text("session_id"),
    },
    skip={"a cache hit": truth("cache_hit")},
    notices={RETRIED: _retries.above(0)},
)
