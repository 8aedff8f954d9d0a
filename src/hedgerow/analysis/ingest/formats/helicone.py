"""Helicone: its request export and the answers of its query API.

Fields as in HeliconeRequest (api-evangelist/helicone, Helicone's own types): `delay_ms` is named for its unit; that of
`time_to_first_token` is not written down: milliseconds, but what is below 10 would be too soon and is taken as seconds.
From memory, and harmless if wrong: a status below 0 is no answer (−1 failed, others pending or cancelled).
"""

from hedgerow.analysis.ingest.fields import Expr, both, either, millis, moment, number, text, truth
from hedgerow.analysis.ingest.format import Format

__all__ = ["HELICONE"]

NO_REFERENCE = "00000000-0000-0000-0000-000000000000"
SOONEST_MS = 10.0

_start, _status = moment("request_created_at"), number("response_status")
_first = number("time_to_first_token")
_reference, _provider = text("cache_reference_id"), text("provider")


def _seconds() -> Expr:
    return either((_first / 1000.0).where(_first.above(SOONEST_MS)), _first.where(_first.above(0)))


HELICONE = Format(
    name="Helicone requests",
    needs=(("request_created_at",), ("response_status", "delay_ms", "response_created_at")),
    columns={
        "t_start": _start,
        "provider": Expr(f"lower({_provider.sql})", _provider.reads),
        "model": either(text("response_model"), text("request_model"), text("model")),
        "ttft_s": _seconds(),
        "total_s": either(millis("delay_ms"), moment("response_created_at") - _start),
        "input_tokens": number("prompt_tokens"),
        "output_tokens": number("completion_tokens"),
        "cached_tokens": number("prompt_cache_read_tokens"),
        "cost_usd": either(number("cost_usd"), number("costUSD"), number("cost")),
        "ok": both(_status.above(199), _status.below(300)),
        "stream": truth("request_body.stream"),
    },
    skip={
        "cancelled or pending: its time is not known": _status.below(-1),
        "a cache hit": both(_reference.known(), Expr(f"({_reference.sql} <> '{NO_REFERENCE}')", _reference.reads)),
    },
)
