"""hedgerow's own: events (`hedgerow export`, its SQLite store) and attempt-level data (`hedgerow simulate`).

A request counts with its primary, attempt 0, as if it had never been hedged. What a primary that was cancelled would have
taken is not known: it is left out and said, since it was slow.
"""

from collections.abc import Iterable, Mapping
from typing import cast

from hedgerow.analysis.ingest.fields import answered, either, is_not, moment, number, text, truth
from hedgerow.analysis.ingest.format import Format
from hedgerow.analysis.ingest.records import FlatRecord
from hedgerow.analysis.ingest.unpack import Unfold, Unpacker

__all__ = ["ATTEMPTS", "EVENTS", "EVENT_RECORDS"]

_outcome = text("attempt.outcome")
_cancelled = _outcome.within("lost", "abandoned")

EVENTS = Format(
    name="hedgerow events",
    needs=(("request.plan",), ("request.outcome",), ("request.at",)),
    columns={
        "t_start": moment("request.at") + number("attempt.started_s"),
        "provider": text("attempt.target"),
        "model": either(text("attempt.model"), text("request.model")),
        "ttft_s": number("attempt.first_token_s"),
        "total_s": number("attempt.ended_s"),
        "input_tokens": either(number("attempt.input_tokens"), number("request.input_tokens_estimate")),
        "output_tokens": number("attempt.output_tokens"),
        "cached_tokens": number("attempt.cached_tokens"),
        "cost_usd": either(number("attempt.cost_high_usd"), number("request.winner_cost_usd")),
        "ok": _outcome.within("won"),
        "stream": either(truth("request.stream"), truth("request.upstream_stream")),
        "trace_id": either(text("request.trace_id"), text("request.phase")),
        "segment": text("request.segment"),
    },
    skip={
        "a request without an attempt": is_not(number("attempt.attempt").known()),
        "a primary that was cancelled: its time is not known": _cancelled,
        "given up by the caller: its time is not known": _outcome.within("caller_left", "deadline"),
    },
    notices={
        "the primary was cancelled when a backup won or replaced it; it was slow, so p99 is a lower bound": _cancelled
    },
)

_ttft = number("ttft_s")
ATTEMPTS = Format(
    name="attempt-level data",
    needs=(("request",), ("attempt",), ("start_s",), ("ttft_s",), ("token_s",), ("stall_s",)),
    columns={
        "t_start": moment("start_s"),
        "model": text("model"),
        "ttft_s": _ttft,
        "total_s": _ttft + number("output_tokens") * number("token_s") + number("stall_s"),
        "input_tokens": number("input_tokens"),
        "output_tokens": number("output_tokens"),
        "ok": answered("status"),
        "stream": _ttft.known(),
    },
    skip={"what a backup would have done, not a call": number("attempt").above(0)},
)


def _primary(record: Mapping[str, object]) -> Iterable[FlatRecord]:
    found: FlatRecord = {f"request.{name}": value for name, value in record.items() if name != "attempts"}
    attempts = record["attempts"]
    for each in cast(list[object], attempts) if isinstance(attempts, list) else []:
        attempt = cast(dict[str, object], each) if isinstance(each, dict) else {}
        if attempt.get("attempt") == 0:
            found |= {f"attempt.{name}": value for name, value in attempt.items()}
    yield found


def _begin() -> Unfold:
    return _primary


EVENT_RECORDS = Unpacker(holds=("v", "id", "at", "plan", "outcome", "attempts"), begin=_begin)
