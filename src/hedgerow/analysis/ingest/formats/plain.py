"""A table whose columns already carry our names: `ttft_s`, `total_s`, and whatever else of a call is known."""

from hedgerow.analysis.ingest.fields import either, moment, number, text, truth
from hedgerow.analysis.ingest.format import Format

__all__ = ["PLAIN"]

ANSWERED = ("ok", "200", "201", "success", "succeeded", "completed")

PLAIN = Format(
    name="plain table",
    needs=(("total_s", "ttft_s"),),
    columns={
        "t_start": either(moment("t_start"), moment("start_s")),
        "provider": text("provider"),
        "model": text("model"),
        "ttft_s": number("ttft_s"),
        "total_s": number("total_s"),
        "input_tokens": number("input_tokens"),
        "output_tokens": number("output_tokens"),
        "cached_tokens": number("cached_tokens"),
        "cost_usd": either(number("cost_usd"), number("cost")),
        "ok": text("status").within(*ANSWERED),
        "stream": truth("stream"),
        "trace_id": either(text("trace_id"), text("parent")),
        "segment": text("segment"),
    },
    skip={"a cache hit": truth("cache_hit")},
)
