"""What the tail of one key is made of: long answers, or calls that are slow for their length; alone, or one after the other."""

from dataclasses import dataclass
from math import log

import numpy as np

from hedgerow.analysis.calls import Calls, Column
from hedgerow.analysis.lengths import slowdowns

__all__ = ["Tail", "tail_of"]

SLOW_SHARE = 0.05
FEWEST_CALLS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Tail:
    """slowdown_p99: p99 of (time ÷ usual time for the length). from_length: share of log(p99 ÷ p50) that goes away when calls
    are compared with others of their length, 0..1. slow_after_slow: how often one of the slowest 5 % for their length
    follows another; lift: that ÷ 5 %, 1 = they come independently. None where the log says too little."""

    slowdown_p99: float | None
    from_length: float | None
    slow_after_slow: float | None
    lift: float | None


def tail_of(calls: Calls) -> Tail:
    """Of one key's calls."""
    answered = calls.ok & np.isfinite(calls.total_s)
    if answered.sum() < FEWEST_CALLS:
        return Tail(slowdown_p99=None, from_length=None, slow_after_slow=None, lift=None)
    slowdown = slowdowns(calls.total_s, calls.output_tokens, answered)[answered]
    spread, rest = _spread(calls.total_s[answered]), _spread(slowdown)
    has_lengths = bool(np.isfinite(calls.output_tokens[answered]).mean() > 0.5)
    slow = slowdown > np.quantile(slowdown, 1 - SLOW_SHARE)
    after_slow = float(slow[1:][slow[:-1]].mean()) if slow[:-1].any() else None
    return Tail(
        slowdown_p99=float(np.quantile(slowdown, 0.99)),
        from_length=float(np.clip(1 - rest / spread, 0, 1)) if has_lengths and spread > 0 else None,
        slow_after_slow=after_slow,
        lift=None if after_slow is None else after_slow / float(slow.mean()),
    )


def _spread(values: Column) -> float:
    p50, p99 = np.quantile(values, [0.5, 0.99])
    return log(p99 / p50) if p50 > 0 else 0.0
