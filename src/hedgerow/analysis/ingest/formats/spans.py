"""Unfolds OpenTelemetry spans: which of them are calls of a model, and which merely wrap one that is in the trace too.

Exporters write a span when it ends, children before parents; within a record we sort so. A file that has parents before their
children, over several records, counts calls with a wrapper twice.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import cast

from hedgerow.analysis.ingest.records import FlatRecord
from hedgerow.analysis.ingest.unpack import Unfold, Unpacker

__all__ = ["CONSOLE_SPANS", "OTLP_RECORDS"]

CALL_KINDS = ("llm", "embedding")
CALL_OPERATIONS = ("chat", "text_completion", "completion", "generate_content", "embeddings")
CALL_TYPES = ("chat", "completion", "embedding")
INNERMOST = (".doGenerate", ".doStream", ".doEmbed")  # Vercel's AI SDK: the spans that stand for a call of the provider
DEEPEST = 100
MODEL_NAMES = ("gen_ai.request.model", "gen_ai.response.model", "llm.model_name")
FIRST_TOKEN = (
    "first token",
    "first_token",
    "firsttoken",
    "firstchunk",
    "first chunk",
    "first_chunk",
    "completion.chunk",
)

Json = Mapping[str, object]


class _Spans:
    """What has been seen of one file's traces."""

    def __init__(self) -> None:
        self.above_a_call: set[object] = set()

    def judged(self, spans: Iterable[FlatRecord]) -> Iterator[FlatRecord]:
        """Spans with their kind: call, wrapper or other."""
        for span in _deepest_first(list(spans)):
            trace = span["span.trace"]
            is_call = _is_call(span)
            is_above = (trace, span["span.id"]) in self.above_a_call
            self.above_a_call.discard((trace, span["span.id"]))
            if (is_call or is_above) and span["span.parent"]:
                self.above_a_call.add((trace, span["span.parent"]))
            span["span.kind"] = ("wrapper" if is_above else "call") if is_call else "other"
            yield span

    def otlp(self, record: Json) -> Iterator[FlatRecord]:
        """The spans of an export request."""
        return self.judged(
            _otlp_span(span)
            for resource in _all(record, "resourceSpans", "resource_spans", "batches")
            for scope in _all(resource, "scopeSpans", "scope_spans", "instrumentationLibrarySpans")
            for span in _all(scope, "spans")
        )

    def console(self, record: Json) -> Iterator[FlatRecord]:
        """One span as the SDK prints it."""
        return self.judged((_console_span(record),))


def _begin_otlp() -> Unfold:
    return _Spans().otlp


def _begin_console() -> Unfold:
    return _Spans().console


OTLP_RECORDS = (
    Unpacker(holds=("resourceSpans",), begin=_begin_otlp),
    Unpacker(holds=("resource_spans",), begin=_begin_otlp),
    Unpacker(holds=("batches",), begin=_begin_otlp),
)
CONSOLE_SPANS = Unpacker(holds=("context", "parent_id", "start_time", "end_time", "attributes"), begin=_begin_console)


def _deepest_first(spans: list[FlatRecord]) -> list[FlatRecord]:
    """Children before their parents, as far as both are here."""
    parents = {str(span["span.id"]): str(span["span.parent"]) for span in spans}

    def depth(span: FlatRecord) -> int:
        at, depth = str(span["span.parent"]), 0
        while at in parents and depth < DEEPEST:  # a ring of parents has no end
            at, depth = parents[at], depth + 1
        return depth

    return sorted(spans, key=depth, reverse=True)


def _is_call(span: FlatRecord) -> bool:
    operation_id = span.get("ai.operationId")
    if isinstance(operation_id, str):
        return operation_id.endswith(INNERMOST)
    for name, calls in (
        ("openinference.span.kind", CALL_KINDS),
        ("gen_ai.operation.name", CALL_OPERATIONS),
        ("llm.request.type", CALL_TYPES),
        ("traceloop.span.kind", ()),
    ):
        if (kind := span.get(name)) is not None:
            return str(kind).lower() in calls
    return any(name in span for name in MODEL_NAMES)


def _otlp_span(span: Json) -> FlatRecord:
    found: FlatRecord = {_text(each, "key"): _value(each.get("value")) for each in _all(span, "attributes")}
    first = min(
        (_number(_one(each, "timeUnixNano", "time_unix_nano")) for each in _first_tokens(_all(span, "events"))),
        default=None,
    )
    return found | {
        "span.trace": _one(span, "traceId", "trace_id"),
        "span.id": _one(span, "spanId", "span_id"),
        "span.parent": _one(span, "parentSpanId", "parent_span_id"),
        "span.start": _one(span, "startTimeUnixNano", "start_time_unix_nano"),
        "span.end": _one(span, "endTimeUnixNano", "end_time_unix_nano"),
        "span.first": first,
        "span.status": _object(span.get("status")).get("code"),
    }


def _console_span(span: Json) -> FlatRecord:
    place = _object(span.get("context"))
    first = min((_text(each, "timestamp") for each in _first_tokens(_all(span, "events"))), default=None)
    return {
        **_object(span.get("attributes")),
        "span.trace": place.get("trace_id"),
        "span.id": place.get("span_id"),
        "span.parent": span.get("parent_id"),
        "span.start": span.get("start_time"),
        "span.end": span.get("end_time"),
        "span.first": first,
        "span.status": _object(span.get("status")).get("status_code"),
    }


def _first_tokens(events: Iterable[Json]) -> Iterator[Json]:
    return (each for each in events if any(part in _text(each, "name").lower() for part in FIRST_TOKEN))


def _value(value: object) -> object:
    """`{"intValue": "812"}` → "812"."""
    return next(iter(cast(Json, value).values()), None) if isinstance(value, dict) else value


def _object(value: object) -> Json:
    empty: dict[str, object] = {}
    return cast(Json, value) if isinstance(value, dict) else empty


def _all(record: Json, *names: str) -> Iterator[Json]:
    """The objects of a list under the first of these names that there is."""
    found = _one(record, *names)
    for each in cast(list[object], found) if isinstance(found, list) else ():
        if isinstance(each, dict):
            yield cast(Json, each)


def _one(record: Json, *names: str) -> object:
    return next((record[name] for name in names if record.get(name) is not None), None)


def _text(record: Json, name: str) -> str:
    value = record.get(name)
    return value if isinstance(value, str) else ""


def _number(value: object) -> float:
    try:
        return float(cast(str, value))
    except (TypeError, ValueError):
        return 0.0
