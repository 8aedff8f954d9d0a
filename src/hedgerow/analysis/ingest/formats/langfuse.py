"""Langfuse observations: API answers (camelCase), exports to blob storage and from the user interface (snake_case too).

The field reference of the blob export (langfuse-docs) gives `latency` and `time_to_first_token` in seconds and moments in
UTC without a zone; they are used only where moments are missing, and taken as milliseconds if they don't fit end − start.
"""

from hedgerow.analysis.ingest.fields import Expr, either, inside, is_not, moment, number, seconds_or_millis, text, truth
from hedgerow.analysis.ingest.format import Format

__all__ = ["LANGFUSE"]

MODEL_CALLS = ("generation", "embedding")


def _tokens(kind: str, *older: str) -> Expr:
    """A count of usage: nested, as JSON in a text, or under its older names."""
    names = ("usageDetails", "usage_details", "usage")
    nested = [number(f"{name}.{kind}") for name in names]
    return either(*nested, *(inside(name, kind) for name in names), *(number(name) for name in older))


_start = either(moment("startTime"), moment("start_time"))
_end = either(moment("endTime"), moment("end_time"))
_first = either(moment("completionStartTime"), moment("completion_start_time"))
_whole = _end - _start

LANGFUSE = Format(
    name="Langfuse observations",
    needs=(
        ("startTime", "start_time"),
        ("traceId", "trace_id"),
        ("completionStartTime", "completion_start_time", "timeToFirstToken", "time_to_first_token"),
    ),
    columns={
        "t_start": _start,
        "model": either(text("model"), text("providedModelName"), text("provided_model_name")),
        "ttft_s": either(
            _first - _start,
            seconds_or_millis("timeToFirstToken", _whole),
            seconds_or_millis("time_to_first_token", _whole),
        ),
        "total_s": either(_whole, number("latency")),
        "input_tokens": _tokens("input", "usage.promptTokens", "promptTokens", "inputUsage"),
        "output_tokens": _tokens("output", "usage.completionTokens", "completionTokens", "outputUsage"),
        "cached_tokens": _tokens("input_cached_tokens", "usageDetails.cache_read_input_tokens"),
        "cost_usd": either(
            number("totalCost"),
            number("total_cost"),
            number("costDetails.total"),
            number("cost_details.total"),
            number("calculatedTotalCost"),
        ),
        "ok": is_not(text("level").within("error")),
        "stream": either(truth("modelParameters.stream"), _first.known()),
        "trace_id": either(text("traceId"), text("trace_id")),
    },
    skip={"not an LLM call": is_not(text("type").within(*MODEL_CALLS)).where(text("type").known())},
)
