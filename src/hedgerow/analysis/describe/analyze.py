"""The figures of `hedgerow analyze`: every key's tail, what it comes from, what it costs, and whether to trust the log."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime

import numpy as np

from hedgerow.analysis.calls import Calls, Column, KeyName
from hedgerow.analysis.censored import censored_quantiles
from hedgerow.analysis.describe.cautions import cautions_about
from hedgerow.analysis.describe.hours import Hour, hours_of
from hedgerow.analysis.describe.money import CostSpread, Money, money_of, price_of, trace_costs
from hedgerow.analysis.describe.odds import Stalls, stalls_of
from hedgerow.analysis.describe.queueing import Queueing, queueing_of
from hedgerow.analysis.describe.tail import Tail, tail_of
from hedgerow.analysis.describe.traces import Traces, traces_of
from hedgerow.analysis.ingest.problems import Problems
from hedgerow.analysis.p99 import P99Interval, p99_interval
from hedgerow.analysis.quantiles import quantiles_of
from hedgerow.analysis.trace import KeyCount, Trace
from hedgerow.cost.prices import Price, PriceBook
from hedgerow.statistics.quantiles import SHARES, Quantiles

__all__ = ["FLAGGED_FROM", "Analysis", "KeyReport", "Question", "Spread", "analyze", "describe", "describe_key"]

FLAGGED_FROM = 5.0
NONE = np.empty(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked of a log. at: the day prices are taken from; stall_s: None = 5 × a key's median."""

    at: datetime
    turns: int = 25
    parallel: int = 16
    stall_s: float | None = None
    time_zone: str = "UTC"
    book: PriceBook = field(default_factory=PriceBook)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Percentiles in seconds, and how sure the p99 is. censored: failed calls among them, which took at least as long as they
    ran. at_least_s: what the first percentile is at least that lies past the longest answered call, and is None therefore."""

    quantiles: Quantiles
    p99_interval: P99Interval | None
    censored: int = 0
    at_least_s: float | None = None

    @property
    def p99_at_least(self) -> float | None:
        """The p99, or what it is at least."""
        return self.at_least_s if self.quantiles.p99 is None else self.quantiles.p99

    @property
    def tail_ratio(self) -> float | None:
        """p99 ÷ p50; at least, where the p99 is known to be at least something."""
        p50, p99 = self.quantiles.p50, self.p99_at_least
        return p99 / p50 if p50 and p99 is not None else None

    def as_dict(self) -> dict[str, object]:
        """JSON-ready."""
        cut: dict[str, object] = {"censored": self.censored} if self.censored else {}
        if self.at_least_s is not None:
            cut["at_least"] = self.at_least_s
        sure = self.p99_interval
        less: dict[str, object] = {"covers": "less"} if sure is not None and sure.covers_less else {}
        return {**self.quantiles.as_dict(), **cut, "p99_interval": None if sure is None else sure.ends, **less}


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyReport:
    """One key. Times are those of answered calls."""

    name: KeyName
    n: int
    errors: int
    first_token: Spread | None
    full_response: Spread | None
    queueing: Queueing
    tail: Tail
    stalls: Stalls | None
    hours: list[Hour] | None
    money: Money | None

    @property
    def tail_ratio(self) -> float | None:
        """p99 ÷ p50, the larger of first token and full response."""
        ratios = [each.tail_ratio for each in (self.first_token, self.full_response) if each is not None]
        return max((ratio for ratio in ratios if ratio is not None), default=None)

    @property
    def flagged(self) -> bool:
        """Is p99 ≥ 5 × p50?"""
        return self.tail_ratio is not None and self.tail_ratio >= FLAGGED_FROM

    def as_dict(self) -> dict[str, object]:
        """JSON-ready."""
        stalls, name = self.stalls, self.name
        return {
            "provider": name.provider,
            "model": name.model,
            "n": self.n,
            "errors": self.errors,
            "first_token": None if self.first_token is None else self.first_token.as_dict(),
            "full_response": None if self.full_response is None else self.full_response.as_dict(),
            "tail_ratio": self.tail_ratio,
            "flagged": self.flagged,
            "self_queueing": self.queueing.queues,
            "self_queueing_seen_by": self.queueing.seen_by,
            "stalls_per_day": None if stalls is None else stalls.per_day,
            "stalls": None if stalls is None else stalls.n,
            "turns": None if stalls is None else stalls.turns.as_dict(),
            "parallel": None if stalls is None else stalls.parallel.as_dict(),
            "hours": None if self.hours is None else [hour.as_dict() for hour in self.hours],
            "slowdown": asdict(self.tail),
            "cost": None if self.money is None else self.money.as_dict(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """A whole log. problems: rows left out, files that could not be read, cautions."""

    rows_read: int
    problems: Problems
    keys: list[KeyReport]
    traces: Traces | None
    trace_cost_usd: CostSpread | None

    def as_dict(self) -> dict[str, object]:
        """As `--json` prints it."""
        return {
            "rows_read": self.rows_read,
            "rows_rejected": self.problems.rejected,
            "warnings": self.problems.messages(),
            "keys": [key.as_dict() for key in self.keys],
            "traces": None if self.traces is None else self.traces.as_dict(),
            "cost_per_trace_usd": None if self.trace_cost_usd is None else self.trace_cost_usd.as_dict(),
        }


def analyze(trace: Trace, problems: Problems, question: Question) -> Analysis:
    """Looks at every key of a trace."""
    described = describe(trace, trace.key_counts(), question, problems)
    prices = {report.name: price for report, price in described if price is not None}
    return Analysis(
        rows_read=trace.rows(),
        problems=problems,
        keys=[report for report, _ in described],
        traces=traces_of(trace.base),
        trace_cost_usd=trace_costs(trace.base, prices),
    )


def describe(
    trace: Trace, counts: Sequence[KeyCount], question: Question, problems: Problems
) -> list[tuple[KeyReport, Price | None]]:
    """Each key's report, and the price of its model."""
    found = list[tuple[KeyReport, Price | None]]()
    for count in counts:
        calls = trace.calls(count.name)
        found.append(describe_key(calls, count, question))
        for caution in (*cautions_about(calls, count.errors), *_few_spells(found[-1][0])):
            problems.caution(f"{count.name}: {caution}")
    # A provider that queues one model in waves may queue the others in the same waves, less clearly.
    waves = {report.name.provider: report.queueing.wave for report, _ in found if report.queueing.wave}
    return [(_with_wave(trace, report, waves.get(report.name.provider)), price) for report, price in found]


def _few_spells(report: KeyReport) -> Iterator[str]:
    sure = None if report.full_response is None else report.full_response.p99_interval
    if sure is not None and sure.together and sure.covers_less:
        yield "slow calls come together, in too few spells for certainty: the interval of the p99 covers less than 95 %"


def describe_key(calls: Calls, count: KeyCount, question: Question) -> tuple[KeyReport, Price | None]:
    """One key's report, by itself."""
    whole, first = (np.where(calls.ok, column, np.nan) for column in (calls.total_s, calls.ttft_s))
    price = price_of(count.name, _usual_input(calls), question.book, question.at)
    report = KeyReport(
        name=count.name,
        n=count.n,
        errors=count.errors,
        first_token=_spread(first),
        full_response=_spread(whole, calls.failed_s[~calls.ok & np.isfinite(calls.failed_s)]),
        queueing=queueing_of(calls),
        tail=tail_of(calls),
        stalls=stalls_of(calls, turns=question.turns, parallel=question.parallel, stall_s=question.stall_s),
        hours=hours_of(calls, question.time_zone),
        money=money_of(calls, price),
    )
    return report, price


def _with_wave(trace: Trace, report: KeyReport, wave: int | None) -> KeyReport:
    if wave is None or report.queueing.queues is not None:
        return report
    return replace(report, queueing=queueing_of(trace.calls(report.name), wave))


def _spread(seconds: Column, failed_s: Column = NONE) -> Spread | None:
    """Of calls in order of time, NaN for one that failed. failed_s: how long those ran that did."""
    quantiles = quantiles_of(seconds)
    if not quantiles.n or quantiles.p50 is None:
        return None
    cut = failed_s[failed_s >= quantiles.p50]  # one that failed sooner says nothing of how long it would have taken
    if not len(cut):
        return Spread(quantiles=quantiles, p99_interval=p99_interval(seconds))
    found, at_least_s = censored_quantiles(seconds[np.isfinite(seconds)], cut, SHARES)
    return Spread(
        quantiles=Quantiles.at(found, quantiles.n),
        p99_interval=None if found[SHARES.index(0.99)] is None else p99_interval(seconds),
        censored=len(cut),
        at_least_s=at_least_s,
    )


def _usual_input(calls: Calls) -> float:
    known = calls.input_tokens[np.isfinite(calls.input_tokens)]
    return float(np.median(known)) if len(known) else float("nan")
