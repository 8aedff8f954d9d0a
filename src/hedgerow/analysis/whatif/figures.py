"""A policy's figures over a log: percentiles, cost, its share of what sending everything twice gains, and how sure that is."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isnan

import numpy as np

from hedgerow.analysis.calls import Column
from hedgerow.analysis.p99 import Interval
from hedgerow.analysis.quantiles import quantiles_of
from hedgerow.analysis.whatif.raced import Field, Raced
from hedgerow.analysis.whatif.resample import Resamples
from hedgerow.statistics.quantiles import Quantiles

__all__ = ["Judge", "PolicyFigures"]

SHARE = 0.99


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyFigures:
    """Times in seconds, shares of 1. `gain_share_p99`: 1 = what sending everything twice gains; None where that gains
    nothing. `p99_cut`: how much of the p99 of single calls goes away. Intervals: 95 %."""

    policy: str
    first_token: Quantiles | None
    full_response: Quantiles | None
    extra_requests: float
    extra_cost_low: float | None
    extra_cost_high: float | None
    gain_share_p99: float | None
    interval: Interval | None
    p99_cut: float | None
    p99_cut_interval: Interval | None

    def as_dict(self) -> dict[str, object]:
        """JSON-ready."""
        return {
            "policy": self.policy,
            "first_token": None if self.first_token is None else self.first_token.as_dict(),
            "full_response": None if self.full_response is None else self.full_response.as_dict(),
            "extra_requests": self.extra_requests,
            "extra_cost": {"low": self.extra_cost_low, "high": self.extra_cost_high},
            "gain_share_p99": self.gain_share_p99,
            "interval": self.interval,
            "p99_cut": self.p99_cut,
            "p99_cut_interval": self.p99_cut_interval,
        }


class Judge:
    """Compares policies over the same calls with sending each once and sending each twice.

    Each policy is given as one or several looks at the calls (other copies): the figures are of all looks together. Under other
    assumptions it may have looks of their own: an interval covers the intervals of each assumption.
    """

    def __init__(self, field: Field, none: Sequence[Raced], twice: Sequence[Raced], rng: np.random.Generator) -> None:
        self._field, self._resamples = field, Resamples.of(field.own.total_s, rng)
        self._whole = field.own.whole_known
        self._none, self._twice = self._p99(none), self._p99(twice)
        self._none_drawn, self._twice_drawn = self._drawn(none), self._drawn(twice)
        self._spend = float(field.cost(field.own.output_tokens).sum())

    def figures(self, policy: str, looks: Sequence[Raced], *others: Sequence[Raced]) -> PolicyFigures:
        """Of one policy. others: the looks under other assumptions."""
        p99, gain = self._p99(looks), self._none - self._twice
        drawn = [self._drawn(assumption) for assumption in (looks, *others)]
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = [(self._none_drawn - each) / (self._none_drawn - self._twice_drawn) for each in drawn]
            cuts = [1 - each / self._none_drawn for each in drawn]
        gains = self._whole and gain > 0
        low, high = (float(np.mean([column.sum() for column in columns])) for columns in _costs(looks))
        return PolicyFigures(
            policy=policy,
            first_token=self._times([look.first_token_s for each in (looks, *others) for look in each])
            if self._field.own.first_token_known
            else None,
            full_response=self._times([look.full_response_s for look in looks]) if self._whole else None,
            extra_requests=float(np.mean([look.backups.mean() for look in looks])),
            extra_cost_low=low / self._spend if self._spend else None,
            extra_cost_high=high / self._spend if self._spend else None,
            gain_share_p99=_finite((self._none - p99) / gain) if gains else None,
            interval=_hull([self._resamples.interval(each) for each in shares]) if gains else None,
            p99_cut=_finite(1 - p99 / self._none) if self._whole and self._none > 0 else None,
            p99_cut_interval=_hull([self._resamples.interval(each) for each in cuts])
            if self._whole and self._none > 0
            else None,
        )

    def _p99(self, looks: Sequence[Raced]) -> float:
        with np.errstate(invalid="ignore"):  # between two calls that failed there is nothing to interpolate
            p99 = float(np.quantile(np.concatenate([look.full_response_s for look in looks]), SHARE))
        return inf if isnan(p99) else p99

    def _drawn(self, looks: Sequence[Raced]) -> Column:
        return self._resamples.quantile([look.full_response_s for look in looks], SHARE)

    def _times(self, columns: Sequence[Column]) -> Quantiles | None:
        """Of all looks together; `n` counts calls, not looks."""
        known = [column for column in columns if not np.isnan(column).all()]
        return quantiles_of(np.concatenate(known), n=len(self._field)) if known else None


def _costs(looks: Sequence[Raced]) -> tuple[list[Column], list[Column]]:
    return [look.cost_low for look in looks], [look.cost_high for look in looks]


def _hull(intervals: Sequence[Interval | None]) -> Interval | None:
    known = [each for each in intervals if each is not None]
    return (min(low for low, _ in known), max(high for _, high in known)) if len(known) == len(intervals) else None


def _finite(value: float) -> float | None:
    """None for a policy under which more than 1 % of the calls fail: it has no p99."""
    return value if np.isfinite(value) else None
