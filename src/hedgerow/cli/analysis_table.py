"""Shows an analysis to a person: a row for each key, and in words what the tail of the worst of them is made of."""

from collections.abc import Iterator

from rich.box import SIMPLE_HEAD
from rich.table import Table

from hedgerow.analysis.describe.analyze import Analysis, KeyReport, Spread
from hedgerow.cli.shown import shown
from hedgerow.units import format_seconds, format_share

__all__ = ["analysis_lines", "analysis_table"]

UNKNOWN = "–"
MOST_ROWS, MOST_DETAILS = 40, 5
BAR_CELLS = 24
HEADINGS = ("calls", "failed", "first token\np50    p99", "response\np50    p99", "p99, 95 %", "p99\n÷ p50")


def analysis_table(analysis: Analysis, *, wide: bool = False) -> Table:
    """The keys, the largest first. wide: with a bar for p99 ÷ p50; without it the table fits 80 columns."""
    table = Table(
        title=f"{analysis.rows_read:,} calls, seconds", box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True
    )
    table.add_column("key", overflow="fold", min_width=16)
    for heading in HEADINGS:
        table.add_column(heading, justify="right", no_wrap=True)
    if wide:
        table.add_column("", no_wrap=True)
    widest = max((key.tail_ratio or 0.0 for key in analysis.keys[:MOST_ROWS]), default=0.0)
    for key in analysis.keys[:MOST_ROWS]:
        cells = [shown(key.name), *_cells(key), *([_bar(key.tail_ratio, widest)] if wide else [])]
        table.add_row(*cells, style="bold" if key.flagged else None)
    return table


def analysis_lines(analysis: Analysis) -> Iterator[str]:
    """Sentences below the table."""
    hidden = len(analysis.keys) - MOST_ROWS
    if hidden > 0:
        yield f"… and {hidden} smaller keys (--json has all)"
    if any("≈" in _cells(key)[4] for key in analysis.keys[:MOST_ROWS]):
        yield "≈ covers the true p99 less often than 95 %: too few slow calls, or too few slow spells, for certainty."
    flagged = [key for key in analysis.keys if key.flagged]
    for key in flagged[:MOST_DETAILS]:
        yield from _details(key)
    for key in (key for key in analysis.keys if key.queueing.queues and key.queueing.climbs_by is not None):
        yield f"{shown(key.name)} queues on itself: waits climb {key.queueing.climbs_by:.1f}-fold with {key.queueing.seen_by}."
    if analysis.traces is not None and analysis.traces.worst is not None:
        traces, worst = analysis.traces, analysis.traces.worst
        yield (
            f"In {format_share(traces.straggler_share)} of {traces.n:,} traces one call holds up the rest; the worst is "
            f"{shown(worst.trace_id)}: one of {worst.calls} calls took {worst.slowest_s:.0f} of {worst.trace_s:.0f} s."
        )
    yield _summary(analysis, flagged)


def _cells(key: KeyReport) -> list[str]:
    ratio = key.tail_ratio
    return [
        f"{key.n:,}",
        f"{key.errors:,}",
        _pair(key.first_token),
        _pair(key.full_response),
        _interval(key.full_response or key.first_token),
        UNKNOWN if ratio is None else f"{ratio:.1f}",
    ]


def _bar(ratio: float | None, widest: float) -> str:
    return "█" * max(1, round(BAR_CELLS * ratio / widest)) if ratio and widest else ""


def _pair(spread: Spread | None) -> str:
    if spread is None or spread.quantiles.p50 is None or spread.p99_at_least is None:
        return UNKNOWN
    at_least = " " if spread.quantiles.p99 is not None else "≥"
    return f"{spread.quantiles.p50:.2f}{at_least}{spread.p99_at_least:6.2f}"


def _interval(spread: Spread | None) -> str:
    if spread is None or spread.p99_interval is None:
        return UNKNOWN
    low, high = spread.p99_interval.ends
    return f"{'≈ ' if spread.p99_interval.covers_less else ''}{low:.2f}–{high:.2f}"


def _details(key: KeyReport) -> Iterator[str]:
    yield f"[bold]{shown(key.name)}[/bold]"
    stalls, tail = key.stalls, key.tail
    if stalls is not None:
        per_day = "" if stalls.per_day is None else f", {stalls.per_day:.1f} a day"
        failed = f" ({stalls.failed:,} ended in failure)" if stalls.failed else ""
        yield (
            f"  {stalls.n:,} stalls longer than {format_seconds(stalls.threshold_s)}{failed}{per_day}; the odds of one are "
            f"{format_share(stalls.turns.chance)} in {stalls.turns.n} calls in a row, "
            f"{format_share(stalls.parallel.chance)} in {stalls.parallel.n} at once"
        )
    if tail.from_length is not None:
        yield f"  {format_share(tail.from_length)} of the tail is answer length; the rest is slow for its length"
    if tail.lift is not None:
        yield f"  after a slow call the next is slow {tail.lift:.1f} × as often as usual"
    hours = [hour for hour in key.hours or [] if hour.tail]
    if hours:
        yield f"  slow calls come more often at {', '.join(f'{hour.hour:02d}:00' for hour in hours)}"
    if key.money is not None:
        cost = key.money.per_call_usd
        yield f"  a call costs {_usd(cost.mean)} on average, {_usd(cost.p95)} at p95 ({key.money.source})"


def _summary(analysis: Analysis, flagged: list[KeyReport]) -> str:
    if not flagged:
        return "No key has a p99 of 5 × its median or more."
    some = f"{len(flagged)} of {len(analysis.keys)} keys have a p99 of 5 × their median or more"
    return f"{some}; `hedgerow whatif` says what helps."


def _usd(amount: float) -> str:
    return f"${amount:.6f}" if amount < 0.001 else f"${amount:.4f}"
