"""Gateways that log a call as one flat row: Cloudflare AI Gateway, OpenRouter, TensorZero.

Cloudflare: fields as in its API's list of gateway logs; whether `created_at` is start or end is not said there. OpenRouter: its
SDK reference calls `latency` the total and `generation_time` the generation, both ms; older rows have `latency` < generation,
so that it can only be the first token. TensorZero: docs/gateway/data-model (ModelInference).
"""

from hedgerow.analysis.ingest.fields import (
    both,
    either,
    greatest,
    is_not,
    millis,
    moment,
    number,
    text,
    truth,
    zoneless,
)
from hedgerow.analysis.ingest.format import Format

__all__ = ["CLOUDFLARE", "OPENROUTER", "OPENROUTER_ACTIVITY", "TENSORZERO"]

CANCELLED = "cancelled by the caller: its time is not known"

_code = number("status_code")
CLOUDFLARE = Format(
    name="Cloudflare AI Gateway",
    needs=(("duration",), ("tokens_in",), ("tokens_out",)),
    columns={
        "t_start": moment("created_at"),
        "provider": text("provider"),
        "model": text("model"),
        "total_s": millis("duration"),
        "input_tokens": number("tokens_in"),
        "output_tokens": number("tokens_out"),
        "cost_usd": number("cost"),
        "ok": either(truth("success"), both(_code.above(199), _code.below(300))),
    },
    skip={"a cache hit": truth("cached")},
    notices={"the call was a fallback's (step > 0)": number("step").above(0)},
    cautions=("it has no first token, and created_at is taken as the start of a call",),
)

_latency, _generation = millis("latency"), millis("generation_time")
OPENROUTER = Format(
    name="OpenRouter generations",
    needs=(("generation_time",), ("latency",), ("native_tokens_completion", "tokens_completion")),
    columns={
        "t_start": moment("created_at"),
        "provider": text("provider_name"),
        "model": text("model"),
        "ttft_s": _latency.where(both(_latency.below(_generation), is_not(text("streamed").within("false", "f", "0")))),
        "total_s": greatest(_latency, _generation),
        "input_tokens": either(number("native_tokens_prompt"), number("tokens_prompt")),
        "output_tokens": either(number("native_tokens_completion"), number("tokens_completion")),
        "cached_tokens": number("native_tokens_cached"),
        "cost_usd": either(number("total_cost"), number("usage")),
        "ok": is_not(text("finish_reason").within("error")),
        "stream": truth("streamed"),
        "trace_id": text("session_id"),
    },
    skip={CANCELLED: truth("cancelled")},
    notices={"latency is below generation_time and taken as the first token": _latency.below(_generation)},
)

_first, _whole = millis("time_to_first_token_ms"), millis("generation_time_ms")
OPENROUTER_ACTIVITY = Format(
    name="OpenRouter activity",
    needs=(("generation_time_ms",), ("time_to_first_token_ms",)),
    columns={
        "t_start": moment("created_at"),
        "provider": text("provider_name"),
        "model": either(text("model_permaslug"), text("model")),
        "ttft_s": _first,
        "total_s": either((_first + _whole).where(_first.above(_whole)), _whole),
        "input_tokens": number("tokens_prompt"),
        "output_tokens": number("tokens_completion"),
        "cost_usd": number("cost_total"),
        "ok": is_not(text("finish_reason_normalized").within("error")),
        "stream": truth("streamed"),
    },
    skip={CANCELLED: truth("cancelled")},
    notices={
        "created_at has no zone and is taken as UTC": zoneless("created_at"),
        "the first token comes after generation_time, which is added to it": _first.above(_whole),
    },
)

TENSORZERO = Format(
    name="TensorZero model inferences",
    needs=(("response_time_ms",), ("model_name",), ("model_provider_name", "ttft_ms")),
    columns={
        "t_start": moment("timestamp"),
        "provider": text("model_provider_name"),
        "model": text("model_name"),
        "ttft_s": millis("ttft_ms"),
        "total_s": millis("response_time_ms"),
        "input_tokens": number("input_tokens"),
        "output_tokens": number("output_tokens"),
        "cost_usd": number("cost"),
        "stream": number("ttft_ms").known(),
        "trace_id": text("inference_id"),
    },
    skip={"a cache hit": truth("cached")},
    cautions=("the table has no status: calls that failed are not in it",),
)
