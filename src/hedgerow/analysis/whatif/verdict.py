"""Is hedging worth it for a key? Every "no" has one reason, in the order in which they would spoil it."""

from dataclasses import dataclass

from hedgerow.analysis.describe.analyze import KeyReport
from hedgerow.analysis.whatif.figures import PolicyFigures

__all__ = ["Inputs", "Verdict", "best_of", "refusal", "verdict_of"]

FEWEST_CALLS = 50
LEAST_RATIO = (
    2.0  # p99 ÷ p50: below it and with nothing hanging, backups have nothing to cut (policy.md, "What we know" 10)
)
HUGE_INPUT_TOKENS, LARGE_INPUT_TOKENS, MOST_CACHED = 50_000, 8_000, 0.8
LEAST_STALLS_PER_DAY = 0.1
LEAST_GAIN_SHARE, LEAST_SURE_SHARE, LEAST_CUT = 0.1, 0.02, 0.1
FEWEST_HUNG, HUNG_TIMES_MEDIAN, HUNG_CUT = 2, 20.0, 0.5
ENOUGH_OF_BEST = 0.9  # the cheapest budget that reaches so much of the best one's gain is recommended


@dataclass(frozen=True, slots=True)
class Verdict:
    """worth: whether to hedge; reason: in one sentence, either way; policy: the recommended one, if it is worth it."""

    worth: bool
    reason: str
    policy: PolicyFigures | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """Of a key: the median input tokens of a call, and the share of all input that came from the prompt cache; NaN = unknown."""

    median_tokens: float
    cached_share: float


def refusal(report: KeyReport, inputs: Inputs) -> str | None:
    """Why hedging is not worth it, whatever the policy; None if it may be."""
    whole = report.full_response
    n = report.n - report.errors
    if whole is None:
        return "the log has no whole responses: what a backup would gain cannot be told"
    if n < FEWEST_CALLS:
        return f"only {n} answered calls: the slowest 1 % is not even one of them; {FEWEST_CALLS} are needed, 1,000 are good"
    queueing = report.queueing
    if queueing.queues and queueing.climbs_by is not None:
        return (
            f"this endpoint queues on itself (waits climb {queueing.climbs_by:.1f}-fold with {queueing.seen_by}): "
            "a backup there would join the queue; lower the number of parallel calls, or hedge to another target"
        )
    stalls, ratio = report.stalls, report.tail_ratio
    if ratio is not None and ratio < LEAST_RATIO and not (stalls and stalls.n):
        return f"p99 is only {ratio:.1f} × the median and no call hangs: there is no tail to cut"
    if inputs.median_tokens > HUGE_INPUT_TOKENS:
        return (
            f"a call has {inputs.median_tokens:,.0f} input tokens: a backup pays for them again, and their prefill takes most "
            "of the time; prompt caching gains more"
        )
    if inputs.cached_share > MOST_CACHED and inputs.median_tokens > LARGE_INPUT_TOKENS:
        return (
            f"{inputs.cached_share:.0%} of the input comes from the prompt cache: a backup elsewhere pays the full price and "
            "waits for the whole prefill"
        )
    if (
        stalls
        and stalls.per_day is not None
        and stalls.per_day < LEAST_STALLS_PER_DAY
        and (ratio or 0) < 2 * LEAST_RATIO
    ):
        return f"calls beyond {stalls.threshold_s:.1f} s come {stalls.per_day:.2g} times a day: too few to matter"
    return None


def verdict_of(report: KeyReport, inputs: Inputs, figures: list[PolicyFigures]) -> Verdict:
    """Of one key, from its report and what the policies would have done."""
    reason = refusal(report, inputs)
    if reason is not None:
        return Verdict(False, reason)
    best = best_of(figures)
    if best is None or best.gain_share_p99 is None or best.p99_cut is None:
        return Verdict(
            False, "not even sending everything twice would have shortened the p99: slow calls come together"
        )
    cost = "an unknown price" if best.extra_cost_high is None else f"at most {best.extra_cost_high:.1%} of extra cost"
    hung = _hung(report, best)
    if hung is not None:
        return Verdict(True, f"{hung}; {best.policy} would cut the p99 by {best.p99_cut:.0%} for {cost}", best)
    low = 0.0 if best.interval is None else best.interval[0]
    if best.gain_share_p99 < LEAST_GAIN_SHARE or best.p99_cut < LEAST_CUT or low < LEAST_SURE_SHARE:
        return Verdict(
            False,
            f"{best.policy} would cut the p99 by {best.p99_cut:.0%}, and the log cannot rule out that it gains nothing",
        )
    return Verdict(True, f"{best.policy} would cut the p99 by {best.p99_cut:.0%} for {cost}", best)


def best_of(figures: list[PolicyFigures]) -> PolicyFigures | None:
    """Of the lag rule's budgets the smallest that gains nearly as much as the best of them."""
    gains = [
        (each.gain_share_p99, each)
        for each in figures
        if each.policy.startswith("lag:") and each.gain_share_p99 is not None
    ]
    most = max((gain for gain, _ in gains), default=None)
    if most is None:
        return None
    return min(
        (each for gain, each in gains if gain >= ENOUGH_OF_BEST * most), key=lambda each: each.policy, default=None
    )


def _hung(report: KeyReport, best: PolicyFigures) -> str | None:
    """Calls that hang are worth a backup even where they are too few to pin down a p99: each is lost to its user."""
    whole, stalls = report.full_response, report.stalls
    if whole is None or whole.quantiles.p50 is None or stalls is None or best.p99_cut is None:
        return None
    hangs = stalls.n >= FEWEST_HUNG and stalls.slowest_s >= HUNG_TIMES_MEDIAN * whole.quantiles.p50
    if not hangs or best.p99_cut < HUNG_CUT:
        return None
    usual, failed = whole.quantiles.p50, f" ({stalls.failed} of them until they failed)" if stalls.failed else ""
    return (
        f"{stalls.n} of {whole.quantiles.n + stalls.failed:,} calls hung{failed}, up to {stalls.slowest_s:.0f} s where "
        f"{usual:.1f} s is usual"
    )
