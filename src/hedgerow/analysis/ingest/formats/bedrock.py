"""Amazon Bedrock model invocation logs (S3, CloudWatch): the latency is inside the logged body of the answer.

Converse has `metrics.latencyMs`; streams are a list of chunks whose last has `amazon-bedrock-invocationMetrics` with
`invocationLatency` and `firstByteLatency` (names as in LlamaIndexTS bedrock/types.ts; ms, as elsewhere in Bedrock).
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import cast

import orjson

from hedgerow.analysis.ingest.fields import is_not, millis, moment, number, text, truth, word
from hedgerow.analysis.ingest.format import Format
from hedgerow.analysis.ingest.records import FlatRecord
from hedgerow.analysis.ingest.unpack import Unfold, Unpacker

__all__ = ["BEDROCK", "BEDROCK_RECORDS"]

METRICS = "amazon-bedrock-invocationMetrics"
Json = Mapping[str, object]

BEDROCK = Format(
    name="Bedrock invocation log",
    needs=(("bedrock.model",), ("bedrock.hidden",)),
    columns={
        "t_start": moment("bedrock.at"),
        "provider": word("bedrock"),
        "model": text("bedrock.model"),
        "ttft_s": millis("bedrock.first_ms"),
        "total_s": millis("bedrock.total_ms"),
        "input_tokens": number("bedrock.input"),
        "output_tokens": number("bedrock.output"),
        "cached_tokens": number("bedrock.cached"),
        "ok": is_not(text("bedrock.error").known()),
        "stream": truth("bedrock.stream"),
    },
    skip={
        "redacted or kept elsewhere: the answer's body, which has the latency, is not in the log": truth(
            "bedrock.hidden"
        )
    },
    cautions=("moments are whole seconds, and failed calls have no latency",),
)


def _unfold(record: Json) -> Iterable[FlatRecord]:
    answer, asked = _object(record.get("output")), _object(record.get("input"))
    body = answer.get("outputBodyJson")
    chunks = [_object(each) for each in cast(list[object], body)] if isinstance(body, list) else [_object(body)]
    usage = _last(chunks, "usage")
    measured = _last(chunks, METRICS)
    total = _last(chunks, "metrics").get("latencyMs", measured.get("invocationLatency"))
    error = record.get("errorCode")
    yield {
        "bedrock.at": record.get("timestamp"),
        "bedrock.model": record.get("modelId"),
        "bedrock.total_ms": total,
        "bedrock.first_ms": measured.get("firstByteLatency") if isinstance(body, list) else None,
        "bedrock.input": asked.get("inputTokenCount", usage.get("inputTokens")),
        "bedrock.output": answer.get("outputTokenCount", usage.get("outputTokens")),
        "bedrock.cached": usage.get("cacheReadInputTokens", asked.get("cacheReadInputTokenCount")),
        "bedrock.error": error,
        "bedrock.stream": "stream" in str(record.get("operation", "")).lower(),
        "bedrock.hidden": error is None and total is None,
    }


def _last(chunks: list[Json], name: str) -> Json:
    """The last of what chunks have under a name, at their top or in the `metadata` of a stream's end."""
    found: Json = {}
    for chunk in chunks:
        for place in (chunk, _object(chunk.get("metadata"))):
            found = _object(place.get(name)) or found
    return found


def _object(value: object) -> Json:
    return cast(Json, value) if isinstance(value, dict) else {}


def _messages(record: Json) -> Iterator[FlatRecord]:
    """A CloudWatch event: the record is JSON in its message."""
    message = record["message"]
    try:
        inside = _object(orjson.loads(message)) if isinstance(message, str) else _object(None)
    except orjson.JSONDecodeError:
        inside = _object(None)
    if "modelId" in inside:
        yield from _unfold(inside)
    else:
        yield {}


def _begin() -> Unfold:
    return _unfold


def _begin_messages() -> Unfold:
    return _messages


BEDROCK_RECORDS = (
    Unpacker(holds=("modelId", "timestamp", "output"), begin=_begin),
    Unpacker(holds=("modelId", "timestamp", "errorCode"), begin=_begin),
    Unpacker(holds=("message", "ingestionTime"), begin=_begin_messages),
)
