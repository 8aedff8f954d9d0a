"""The figures of `hedgerow whatif`: for each key what every policy would have done and cost, whether to hedge, and how."""

from dataclasses import dataclass, field, replace

import numpy as np

from hedgerow.analysis.calls import Calls, Column, KeyName
from hedgerow.analysis.censored import HUNG_TIMES_MEDIAN
from hedgerow.analysis.describe.analyze import KeyReport, Question, describe, describe_key
from hedgerow.analysis.describe.cautions import cautions_about
from hedgerow.analysis.ingest.problems import Problems
from hedgerow.analysis.trace import KeyCount, Trace
from hedgerow.analysis.whatif.copies import Places, elsewhere, neighbours, second_target
from hedgerow.analysis.whatif.figures import PolicyFigures
from hedgerow.analysis.whatif.parts import Parts, parts_of
from hedgerow.analysis.whatif.policies import Contest, Look, lag_policies
from hedgerow.analysis.whatif.pool import pool_of
from hedgerow.analysis.whatif.raced import Field, Prices
from hedgerow.analysis.whatif.recommend import policy_names, recommended_toml
from hedgerow.analysis.whatif.reprice import Elsewhere, Repriced, repriced
from hedgerow.analysis.whatif.verdict import Inputs, Verdict, verdict_of
from hedgerow.cost.prices import Price
from hedgerow.errors import SettingError

__all__ = ["KeyWhatIf", "Options", "field_of", "what_if", "what_if_pooled"]

UNPRICED = Prices(1.0, 4.0)  # a usual ratio of a token out to a token in, where nobody knows the price
FEWEST_TO_RACE = 20
LOOKED_AT_TWICE_UP_TO = 6_000  # calls of a whole log: longer ones are sure enough with one look
FEWEST_SIMULATED = 2_000  # calls of each key, if it has so many
Known = tuple[KeyReport, Price | None]
FAR_S = 300.0  # neighbours further away in time may have met another weather


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to ask. backup: the key whose calls stand for backups, None = the call's own key. same_provider: of a pool, backups
    stay at the call's provider. reprice: other models and tiers to price by. called: the recommended policy's name. seed: of
    every draw."""

    question: Question
    look: Look = field(default_factory=Look)
    backup: KeyName | None = None
    same_provider: bool = False
    by_segment: bool = False
    reprice: tuple[Elsewhere, ...] = ()
    called: str = "recommended"
    seed: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyWhatIf:
    """One key. assumptions: what the figures rest on, the one that carries most first; simulated: calls that the race machine
    ran for each lag policy."""

    report: KeyReport
    verdict: Verdict
    policies: list[PolicyFigures]
    assumptions: list[str]
    simulated: int
    toml: str | None
    repriced: list[Repriced]

    def as_dict(self) -> dict[str, object]:
        """JSON-ready."""
        policy, name = self.verdict.policy, self.report.name
        return {
            "provider": name.provider,
            "model": name.model,
            **({} if name.segment is None else {"segment": name.segment}),
            "n": self.report.n,
            "worth_hedging": self.verdict.worth,
            "reason": self.verdict.reason,
            "policies": [each.as_dict() for each in self.policies],
            "recommended": None if policy is None else {"policy": policy.policy, "toml": self.toml},
            "assumptions": self.assumptions,
            "simulated": self.simulated,
            "repriced": [each.as_dict() for each in self.repriced],
        }


def what_if(trace: Trace, problems: Problems, options: Options) -> list[KeyWhatIf]:
    """Every key by itself, the largest first."""
    backup = None if options.backup is None else _backups(trace, options.backup)
    rows, look = trace.rows(), options.look
    described = describe(trace, trace.key_counts(by_segment=options.by_segment), options.question, problems)
    found = list[KeyWhatIf]()
    names = policy_names([report.name for report, _ in described])
    for (report, price), called in zip(described, names, strict=True):
        most = max(FEWEST_SIMULATED, look.most_simulated * report.n // rows)
        share = replace(look, twice=look.twice and rows <= LOOKED_AT_TWICE_UP_TO, most_simulated=most)
        asked = replace(options, look=share, called=called)
        found.append(_own_key(trace.calls(report.name), (report, price), asked, backup))
    return found


def _backups(trace: Trace, name: KeyName) -> Calls:
    calls = trace.calls(name)
    if calls.ok.sum() < FEWEST_TO_RACE:
        known = ", ".join(str(count.name) for count in trace.key_counts()[:8])
        raise SettingError(
            "--backup", str(name), f"a key with at least {FEWEST_TO_RACE} answered calls", fix=f"one of {known}"
        )
    return calls


def what_if_pooled(trace: Trace, problems: Problems, options: Options) -> list[KeyWhatIf]:
    """All calls as one key; backups at other providers, or at the same one. Raises SettingError without start times."""
    pool, rng = pool_of(trace), np.random.default_rng(options.seed)
    count = KeyCount(pool.calls.name, len(pool.calls), int((~pool.calls.ok).sum()))
    report, _ = describe_key(pool.calls, count, options.question)
    for caution in cautions_about(pool.calls, count.errors):
        problems.caution(caution)
    places = elsewhere(pool.calls.t_start, pool.providers, same=options.same_provider)
    where = "the same provider" if options.same_provider else "other providers"
    assumptions = [f"a backup fares like the nearest calls in time at {where}, at the pace of the call's own model"]
    good = np.flatnonzero(pool.parts.answered)
    copies = _copied(pool.parts, good, places)
    contest = Contest(
        _field(pool.calls, pool.parts, copies, UNPRICED),
        [pool.models[place] for place in good.tolist()],
        options.look,
        rng,
    )
    return [_result(pool.calls, pool.parts, contest, assumptions, (report, None), options)]


def _own_key(calls: Calls, known: Known, options: Options, backup: Calls | None) -> KeyWhatIf:
    report, price = known
    measured = calls.ok & np.isfinite(np.fmax(calls.total_s, calls.ttft_s))
    if measured.sum() < FEWEST_TO_RACE:
        return _unraced(calls, report, price, options)
    rng = np.random.default_rng(options.seed)
    if backup is None or not calls.timed or not backup.timed or backup.name == calls.name:
        field, assumption = field_of(calls, _prices(price), rng), _neighbourhood(calls)
    else:
        field = field_of(calls, _prices(price), rng, backup=backup)
        assumption = f"a backup fares like the nearest calls in time to {backup.name}"
    contest = Contest(field, None, options.look, rng)
    return _result(calls, parts_of(calls), contest, [assumption], known, options)


def field_of(calls: Calls, prices: Prices, rng: np.random.Generator, *, backup: Calls | None = None) -> Field:
    """One key's answered calls, and copies of each from their neighbours in time; or from those of another key, where both
    have start times."""
    parts = parts_of(calls)
    good = np.flatnonzero(parts.answered)
    if backup is None:
        copies = _copied(parts, good, neighbours(len(calls), rng))
    else:
        other, places = parts_of(backup), second_target(calls.t_start, backup.t_start)
        copies = parts.copies_from(other, good, places[0][good]), parts.copies_from(other, good, places[1][good])
    return _field(calls, parts, copies, prices)


def _copied(parts: Parts, calls: Places, places: Places) -> tuple[Parts, Parts]:
    return parts.copies_of(calls, places[0][calls]), parts.copies_of(calls, places[1][calls])


def _field(calls: Calls, parts: Parts, copies: tuple[Parts, Parts], prices: Prices) -> Field:
    """The answered calls and their copies. Without start times, calls count as one second apart."""
    good = np.flatnonzero(parts.answered)
    start = calls.t_start if calls.timed else np.arange(len(calls), dtype=float)
    return Field(
        t_start=_filled(start[good]),
        input_tokens=calls.input_tokens[good],
        own=parts.some(good),
        copies=copies,
        prices=prices,
    )


def _result(
    calls: Calls,
    parts: Parts,
    contest: Contest,
    assumptions: list[str],
    known: Known,
    options: Options,
) -> KeyWhatIf:
    report, price = known
    figures = contest.run(lag_policies())
    verdict = verdict_of(report, _inputs(calls), figures)
    toml = None
    if verdict.policy is not None:
        budget = float(verdict.policy.policy.partition(":")[2])
        toml = recommended_toml(options.called, budget, parts, calls)
    return KeyWhatIf(
        report=report,
        verdict=verdict,
        policies=figures,
        assumptions=[*assumptions, *_further_assumptions(calls, parts, contest, price)],
        simulated=contest.sampled(),
        toml=toml,
        repriced=[repriced(calls, price, each, options.question) for each in options.reprice],
    )


def _unraced(calls: Calls, report: KeyReport, price: Price | None, options: Options) -> KeyWhatIf:
    return KeyWhatIf(
        report=report,
        verdict=verdict_of(report, _inputs(calls), []),
        policies=[],
        assumptions=[],
        simulated=0,
        toml=None,
        repriced=[repriced(calls, price, each, options.question) for each in options.reprice],
    )


def _neighbourhood(calls: Calls) -> str:
    """What carries the result, and how well the log supports it."""
    if not calls.timed:
        return "a backup fares like the calls before and after in the log, whose order is taken as the order of time"
    said = "a backup fares like the calls just before and after"
    gap = float(np.nanmedian(np.diff(calls.t_start)))
    return said if gap <= FAR_S else f"{said}, although they are {gap / 60:,.0f} minutes away"


def _further_assumptions(calls: Calls, parts: Parts, contest: Contest, price: Price | None) -> list[str]:
    found = list[str]()
    if hanging := int(parts.answered[~calls.ok].sum()):
        found.append(
            f"{hanging:,} failed calls that ran {HUNG_TIMES_MEDIAN:g} × the median or longer count as answered when they failed: "
            "the least that they would have taken"
        )
    found.append(
        "lag: no token times in the log; each stall is one silence, and the interval covers even decoding as well"
    )
    if not parts.first_token_known:
        found.append("lag: no first-token times in the log; a slow call is slow from its start to its end")
    if not parts.length_known:
        found.append("no output tokens in the log: late cannot be told from long")
    if price is None:
        found.append("no price known: a token out costs 4 × a token in")
    if np.isnan(calls.input_tokens[calls.ok]).mean() > 0.5:
        found.append("no input tokens in the log: input costs nothing here, so shares of extra cost are rough")
    if contest.sampled() < len(contest.field):
        found.append(f"lag: {contest.sampled():,} of {len(contest.field):,} calls, in evenly spread stretches")
    return found


def _prices(price: Price | None) -> Prices:
    return UNPRICED if price is None else Prices(price.input_usd, price.output_usd)


def _inputs(calls: Calls) -> Inputs:
    known = calls.input_tokens[np.isfinite(calls.input_tokens)]
    if not len(known):
        return Inputs(median_tokens=float("nan"), cached_share=float("nan"))
    cached = calls.cached_tokens[np.isfinite(calls.cached_tokens)]
    return Inputs(
        median_tokens=float(np.median(known)),
        cached_share=float(cached.sum() / known.sum()) if len(cached) and known.sum() else float("nan"),
    )


def _filled(start: Column) -> Column:
    """A call without a start counts with the one before it."""
    known = np.isfinite(start)
    last = np.maximum.accumulate(np.where(known, np.arange(len(start)), 0))
    return np.where(np.isfinite(start[last]), start[last], 0.0)
