"""What a simulation comes to: the figures of `hedgerow simulate --json` (product.md, "Machine-readable output").

gain share of a quantile = (none − policy) / (none − twice); cvar99 = mean of the slowest 1 %.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from math import nan

import numpy as np
from numpy.typing import NDArray

from hedgerow.analysis.attempts import Row, Sent
from hedgerow.analysis.foreseen import Outcome
from hedgerow.analysis.quantiles import quantiles_of
from hedgerow.statistics.quantiles import Quantiles

__all__ = ["Baseline", "Costs", "Figures", "Shares", "Times", "figures_of"]

IN_FLIGHT_S = 0.15  # a closed stream still costs the tokens of this long

Column = NDArray[np.float64]
Takes = Callable[[Row], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Times(Quantiles):
    """Quantiles in seconds (linear interpolation) of what was answered, and the mean of the slowest 1 %; None = nothing was."""

    cvar99: float | None

    @classmethod
    def of_column(cls, seconds: Column) -> "Times":
        """NaN stands for a request that failed."""
        good = np.sort(seconds[~np.isnan(seconds)])
        q = quantiles_of(good)
        worst = float(good[int(0.99 * len(good)) :].mean()) if q.n else None
        return cls(p50=q.p50, p90=q.p90, p95=q.p95, p99=q.p99, p999=q.p999, n=q.n, cvar99=worst)

    def quantiles(self) -> dict[str, float | int | None]:
        """The quantile object, without cvar99."""
        return {name: value for name, value in self.as_dict().items() if name != "cvar99"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """What the same calls take when each is sent once, and when each is sent twice."""

    none: Times
    twice: Times


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """Shares of what sending everything twice gains; None = it gains nothing."""

    p95: float | None
    p99: float | None
    cvar99: float | None

    @classmethod
    def of(cls, got: Times, baseline: Baseline) -> "Shares":
        none, twice = baseline.none, baseline.twice
        return cls(
            p95=_share(none.p95, got.p95, twice.p95),
            p99=_share(none.p99, got.p99, twice.p99),
            cvar99=_share(none.cvar99, got.cvar99, twice.cvar99),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Extra cost as a share of what the primaries alone cost. high: losers billed in full; low: for the tokens they had sent
    and 0.15 s worth in flight. None = the primaries cost nothing."""

    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """A simulation's result. Rates are shares 0..1; backup_rate is of the `may_hedge` requests the policy may hedge."""

    policy: str
    n: int
    failed: int
    may_hedge: int
    first_token: Times
    full_response: Times
    backup_rate: float | None
    backups_per_request: float
    win_rate: float | None
    losing_backup_rate: float
    extra_cost: Costs
    baseline: Baseline
    baseline_first_token: Baseline
    gain_share: Shares
    gain_share_first_token: Shares

    def as_dict(self) -> dict[str, object]:
        """As `--json` prints it."""
        return {
            "policy": self.policy,
            "n": self.n,
            "first_token": self.first_token.quantiles(),
            "full_response": self.full_response.as_dict(),
            "backup_rate": self.backup_rate,
            "backups_per_request": self.backups_per_request,
            "win_rate": self.win_rate,
            "losing_backup_rate": self.losing_backup_rate,
            "extra_cost": asdict(self.extra_cost),
            "baseline": asdict(self.baseline),
            "gain_share": asdict(self.gain_share),
            "gain_share_first_token": asdict(self.gain_share_first_token),
        }


def figures_of(outcomes: Sequence[Outcome], policy: str) -> Figures:
    """The figures of at least one outcome. policy: what to call it."""
    sents = [outcome.sent for outcome in outcomes]
    full = Times.of_column(_column([outcome.response_s for outcome in outcomes]))
    first = Times.of_column(_column([outcome.first_token_s for outcome in outcomes]))
    baseline, baseline_first = _baseline(sents, lambda row: row.ends_s), _baseline(sents, lambda row: row.ttft_s)
    n, may_hedge = len(outcomes), sum(outcome.counted for outcome in outcomes)
    hedged = sum(len(outcome.launched_s) > 1 for outcome in outcomes)
    backups, won = sum(len(outcome.launched_s) - 1 for outcome in outcomes), sum(bool(o.winner) for o in outcomes)
    return Figures(
        policy=policy,
        n=n,
        failed=sum(outcome.winner is None for outcome in outcomes),
        may_hedge=may_hedge,
        first_token=first,
        full_response=full,
        backup_rate=hedged / may_hedge if may_hedge else None,
        backups_per_request=backups / n,
        win_rate=won / hedged if hedged else None,
        losing_backup_rate=(backups - won) / n,
        extra_cost=_costs(outcomes),
        baseline=baseline,
        baseline_first_token=baseline_first,
        gain_share=Shares.of(full, baseline),
        gain_share_first_token=Shares.of(first, baseline_first),
    )


def _baseline(sents: Sequence[Sent], takes_s: Takes) -> Baseline:
    """Nothing sent twice, and everything: then the sooner of the first two attempts counts."""
    once = _column([_if_answered(sent.rows[0], takes_s) for sent in sents])
    again = _column([_if_answered(sent.rows[min(1, len(sent.rows) - 1)], takes_s) for sent in sents])
    return Baseline(none=Times.of_column(once), twice=Times.of_column(np.fmin(once, again)))


def _costs(outcomes: Sequence[Outcome]) -> Costs:
    """What was spent beyond the primaries' own answers, which are what no hedging would have cost."""
    base = low = high = 0.0
    for outcome in outcomes:
        sent = outcome.sent
        alone = _full_cost(sent, sent.rows[0])
        base, low, high = base + alone, low - alone, high - alone
        for attempt, launched_s in enumerate(outcome.launched_s):
            row = sent.rows[attempt]
            spent = _full_cost(sent, row)
            high += spent
            stopped_s = outcome.stopped_s.get(attempt)
            if spent and stopped_s is not None:
                spent = sent.cost(row.tokens_by(stopped_s - launched_s + IN_FLIGHT_S))
            low += spent
    return Costs(low=low / base, high=high / base) if base else Costs(low=None, high=None)


def _full_cost(sent: Sent, row: Row) -> float:
    return sent.cost(row.output_tokens) if row.status == 200 else 0.0


def _if_answered(row: Row, takes_s: Takes) -> float | None:
    return takes_s(row) if row.status == 200 else None


def _column(seconds: Iterable[float | None]) -> Column:
    return np.array([nan if value is None else value for value in seconds])


def _share(none_s: float | None, got_s: float | None, twice_s: float | None) -> float | None:
    if none_s is None or got_s is None or twice_s is None or none_s <= twice_s:
        return None
    return (none_s - got_s) / (none_s - twice_s)
