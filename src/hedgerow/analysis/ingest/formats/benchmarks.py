"""Load generators: vLLM's and SGLang's serving benchmarks (parallel lists in one object), LLMPerf, BFCL.

vLLM's `start_times` are seconds of a clock of their own; `date` is taken as the end of the run, which is assumed. LLMPerf:
`individual_responses.json` as in ray-project/llmperf-leaderboard; it names neither provider nor model, nor when a call began.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from itertools import repeat
from typing import cast

from hedgerow.analysis.ingest.fields import is_not, moment, number, text
from hedgerow.analysis.ingest.format import Format
from hedgerow.analysis.ingest.records import FlatRecord
from hedgerow.analysis.ingest.unpack import NotDetailed, Unfold, Unpacker

__all__ = ["BENCHMARK", "BENCHMARK_RECORDS", "BFCL", "LLMPERF"]

BENCHMARK = Format(
    name="serving benchmark",
    needs=(("benchmark.ttft",), ("benchmark.total",)),
    columns={
        "t_start": moment("benchmark.start"),
        "provider": text("benchmark.backend"),
        "model": text("benchmark.model"),
        "ttft_s": number("benchmark.ttft"),
        "total_s": number("benchmark.total"),
        "input_tokens": number("benchmark.input"),
        "output_tokens": number("benchmark.output"),
        "ok": is_not(text("benchmark.error").known()),
        "stream": number("benchmark.ttft").known(),
    },
    cautions=("it is a load test: its tail is that of the load it made",),
)

_seconds = number("end_to_end_latency_s")
LLMPERF = Format(
    name="LLMPerf responses",
    needs=(("end_to_end_latency_s",), ("ttft_s",)),
    columns={
        "model": text("model"),
        "ttft_s": number("ttft_s"),
        "total_s": _seconds,
        "input_tokens": number("number_input_tokens"),
        "output_tokens": number("number_output_tokens"),
        "ok": is_not(text("error_code").known()),
    },
    cautions=("it does not say when calls began",),
)

BFCL = Format(
    name="BFCL results",
    needs=(("input_token_count",), ("output_token_count",), ("latency",)),
    columns={
        "model": text("model"),
        "total_s": number("latency"),
        "input_tokens": number("input_token_count"),
        "output_tokens": number("output_token_count"),
    },
    cautions=("it measures around the client's retries, and does not say when calls began",),
)


def _unfold(record: Mapping[str, object]) -> Iterable[FlatRecord]:
    ttfts, gaps = record.get("ttfts"), record.get("itls")
    if not isinstance(ttfts, list) or not isinstance(gaps, list):
        raise NotDetailed("only a summary: run the benchmark with --save-detailed (vLLM) or --output-details (SGLang)")
    n = len(cast(list[object], ttfts))
    columns = {name: _column(record.get(name), n) for name in ("input_lens", "output_lens", "errors", "start_times")}
    started = _starts(columns["start_times"], record)
    model = next((record[name] for name in ("model_id", "model", "tokenizer_id") if record.get(name)), None)
    for index, (first, between) in enumerate(zip(cast(list[object], ttfts), cast(list[object], gaps), strict=False)):
        ttft = first if isinstance(first, int | float) else None
        rest = (
            [gap for gap in cast(list[object], between) if isinstance(gap, int | float)]
            if isinstance(between, list)
            else []
        )
        yield {
            "benchmark.start": started[index],
            "benchmark.backend": record.get("backend"),
            "benchmark.model": model,
            "benchmark.ttft": ttft,
            "benchmark.total": None if ttft is None else ttft + sum(rest),
            "benchmark.input": columns["input_lens"][index],
            "benchmark.output": columns["output_lens"][index],
            "benchmark.error": columns["errors"][index],
        }


def _column(value: object, n: int) -> list[object]:
    """One value for each call, None where the list is missing or short."""
    found = cast(list[object], value) if isinstance(value, list) else []
    return [*found[:n], *repeat(None, n - len(found))]


def _starts(start_times: list[object], record: Mapping[str, object]) -> list[float | None]:
    """Seconds since 1970, about: the run's end less its duration, and the clock's own steps from there."""
    known = [each for each in start_times if isinstance(each, int | float)]
    if not known:
        return [None] * len(start_times)
    duration, first = record.get("duration"), min(known)
    begun = _moment(record.get("date")) - (duration if isinstance(duration, int | float) else 0.0)
    return [begun + each - first if isinstance(each, int | float) else None for each in start_times]


def _moment(date: object) -> float:
    try:
        return datetime.strptime(str(date), "%Y%m%d-%H%M%S").replace(tzinfo=UTC).timestamp()
    except ValueError:
        return 0.0


def _begin() -> Unfold:
    return _unfold


BENCHMARK_RECORDS = (
    Unpacker(holds=("ttfts",), begin=_begin),
    Unpacker(holds=("mean_ttft_ms",), begin=_begin),
)
