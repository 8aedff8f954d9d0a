"""A table whose columns already carry our names: `ttft_s`, `total_s`, and whatever else of a call is known."""

from hedgerow.analysis.ingest.fields import answered, any_of, both, either, moment, number, text, truth, zoneless
from hedgerow.analysis.ingest.format import Format

__all__ = ["PLAIN"]

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
        "ok": either(truth("ok"), answered("status")),
        "stream": truth("stream"),
        "trace_id": either(text("trace_id"), text("parent")),
        "segment": text("segment"),
    },
    skip={"a cache hit": truth("cache_hit")},
    notices={
        "t_start has no zone and is taken as UTC": zoneless("t_start"),
        "the call was retried inside its time: it is slower than one call": any_of(
            number("num_retries").above(0), number("retries").above(0), number("attempts").above(1)
        ),
        # thefastest.ai names its columns so, and keeps the best of three.
        "the best of several calls is kept (thefastest.ai): the tail is cut off": both(
            number("ttr").known(), text("region").known()
        ),
    },
)
