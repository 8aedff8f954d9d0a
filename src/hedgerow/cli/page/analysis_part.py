"""The part of the page that shows an analysis: measured figures."""

from hedgerow.analysis.describe.analyze import Analysis, KeyReport, Spread
from hedgerow.cli.page.charts import Bar, Span, columns, spans
from hedgerow.cli.page.figures import UNKNOWN, count, pair_range, seconds, share, usd, yes_or_no
from hedgerow.cli.page.html import Html, element, joined, table

__all__ = ["analysis_part", "problems_part"]

MOST_SPANS, MOST_SECTIONS = 20, 20
HEAD = [
    "key", "calls", "failed", "first token p50", "p99", "response p50", "p99", "p99, 95 %", "p99 ÷ p50", "stalls a day",
    "queues on itself", "USD a call",
]  # fmt: skip


def analysis_part(analysis: Analysis) -> Html:
    """Overview of all keys, then a section for each flagged one."""
    keys = analysis.keys
    flagged = [key for key in keys if key.flagged]
    overview = table(
        HEAD,
        [_row(key) for key in keys],
        caption="Measured, in seconds; the largest keys first. Bold: p99 of 5 × the median and more.",
        marked=frozenset(number for number, key in enumerate(keys) if key.flagged),
    )
    drawn = [each for key in keys[:MOST_SPANS] if (each := _span(key)) is not None]
    picture = spans(drawn, "Median (dark) to p99 of whole responses, with the p99's 95 % interval; seconds, measured")
    return joined(
        picture if drawn else None,
        overview,
        _traces(analysis),
        *(_section(key) for key in flagged[:MOST_SECTIONS]),
    )


def problems_part(analysis: Analysis) -> Html | None:
    """What was left out, and what to be careful about."""
    messages = analysis.problems.messages()
    if not messages:
        return None
    said = element("ul", *(element("li", message) for message in messages))
    return element("details", element("summary", f"{len(messages)} notes on this log"), said)


def _row(key: KeyReport) -> list[str]:
    first, whole = key.first_token, key.full_response
    return [
        str(key.name),
        count(key.n),
        count(key.errors),
        *_p50_p99(first),
        *_p50_p99(whole),
        _interval(whole or first),
        UNKNOWN if key.tail_ratio is None else f"{key.tail_ratio:.1f}",
        UNKNOWN if key.stalls is None or key.stalls.per_day is None else f"{key.stalls.per_day:.1f}",
        yes_or_no(key.queueing.queues),
        usd(None if key.money is None else key.money.per_call_usd.mean),
    ]


def _p50_p99(spread: Spread | None) -> tuple[str, str]:
    return (UNKNOWN, UNKNOWN) if spread is None else (seconds(spread.quantiles.p50), _p99(spread))


def _p99(spread: Spread) -> str:
    at_least = "≥ " if spread.quantiles.p99 is None and spread.at_least_s is not None else ""
    return at_least + seconds(spread.p99_at_least)


def _interval(spread: Spread | None) -> str:
    if spread is None or spread.p99_interval is None:
        return UNKNOWN
    sure = spread.p99_interval
    return f"{'≈ ' if sure.covers_less else ''}{pair_range(*sure.ends, digits=2)}"


def _span(key: KeyReport) -> Span | None:
    spread = key.full_response or key.first_token
    if spread is None or not spread.quantiles.p50 or spread.p99_at_least is None:
        return None
    ends = None if spread.p99_interval is None else spread.p99_interval.ends
    return Span(str(key.name), spread.quantiles.p50, spread.p99_at_least, ends, key.flagged)


def _traces(analysis: Analysis) -> Html | None:
    traces = analysis.traces
    if traces is None:
        return None
    worst = traces.worst
    said = f"In {share(traces.straggler_share, 1)} of {count(traces.n)} traces one call holds up the rest."
    if worst is not None:
        said += (
            f" The worst is {worst.trace_id}: one of its {worst.calls} calls took {seconds(worst.slowest_s)} of "
            f"{seconds(worst.trace_s)} s; the others' median is {seconds(worst.others_s)} s."
        )
    cost = analysis.trace_cost_usd
    if cost is not None:
        said += f" A trace costs {usd(cost.mean)} on average, {usd(cost.p50)} at the median, {usd(cost.p95)} at p95."
    return element("p", said)


def _section(key: KeyReport) -> Html:
    rows = [
        [
            name,
            *(seconds(getattr(spread.quantiles, each)) for each in ("p50", "p90", "p95")),
            _p99(spread),
            seconds(spread.quantiles.p999),
            _interval(spread),
        ]
        for name, spread in (("first token", key.first_token), ("whole response", key.full_response))
        if spread is not None
    ]
    return element(
        "section",
        element("h2", str(key.name)),
        table(["measured, s", "p50", "p90", "p95", "p99", "p99.9", "p99, 95 %"], rows),
        element("ul", *(element("li", said) for said in _sentences(key))),
        _hours(key),
    )


def _sentences(key: KeyReport) -> list[str]:
    said, stalls, tail = list[str](), key.stalls, key.tail
    if stalls is not None:
        per_day = "" if stalls.per_day is None else f", {stalls.per_day:.1f} a day"
        failed = f" ({count(stalls.failed)} ended in failure)" if stalls.failed else ""
        said.append(
            f"{count(stalls.n)} stalls longer than {seconds(stalls.threshold_s)} s{failed}{per_day}; the longest took "
            f"{seconds(stalls.slowest_s)} s. The odds of meeting one: {share(stalls.turns.chance, 1)} in {stalls.turns.n} "
            f"calls in a row, {share(stalls.parallel.chance, 1)} in {stalls.parallel.n} at once."
        )
    if tail.from_length is not None:
        said.append(f"{share(tail.from_length)} of the tail is answer length; the rest is slow for its length.")
    if tail.lift is not None:
        said.append(f"After a slow call, the next is slow {tail.lift:.1f} × as often as usual.")
    if key.queueing.queues and key.queueing.climbs_by is not None:
        said.append(f"It queues on itself: waits climb {key.queueing.climbs_by:.1f}-fold with {key.queueing.seen_by}.")
    if key.money is not None:
        cost = key.money.per_call_usd
        spread = f"{usd(cost.mean)} on average, {usd(cost.p50)} at the median, {usd(cost.p95)} at p95"
        said.append(f"A call costs {spread} ({key.money.source}).")
    return said


def _hours(key: KeyReport) -> Html | None:
    if not key.hours or len(key.hours) < 2:
        return None
    rows = [
        [
            f"{hour.hour:02d}:00",
            count(hour.n),
            seconds(hour.p50),
            seconds(hour.p99),
            share(hour.slow_share, 1),
            "more than usual" if hour.tail else "",
        ]
        for hour in key.hours
    ]
    bars = [Bar(f"{hour.hour:02d}", hour.p50, hour.p99, hour.tail) for hour in key.hours]
    return joined(
        columns(bars, "Median (dark) and p99 by hour of the day; orange: slow calls come more often than usual"),
        element(
            "details",
            element("summary", "the hours as a table"),
            table(
                ["hour", "calls", "p50, s", "p99, s", "slow calls", ""],
                rows,
                marked=frozenset(number for number, hour in enumerate(key.hours) if hour.tail),
            ),
        ),
    )
