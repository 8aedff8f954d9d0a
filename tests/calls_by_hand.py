"""Calls of one key, written by hand."""

from collections.abc import Sequence

import numpy as np

from hedgerow.analysis.calls import Calls, Column, KeyName

NAME = KeyName(provider="acme", model="m1")


def calls_of(
    total_s: Sequence[float] | Column,
    *,
    ttft_s: Sequence[float] | Column | None = None,
    t_start: Sequence[float] | Column | None = None,
    output_tokens: Sequence[float] | Column | None = None,
    input_tokens: Sequence[float] | Column | None = None,
    cost_usd: Sequence[float] | Column | None = None,
    ok: Sequence[bool] | None = None,
    failed_s: Sequence[float] | Column | None = None,
) -> Calls:
    """What is not given is not known; every call was answered unless `ok` says otherwise."""
    total = np.asarray(total_s, dtype=float)
    unknown = np.full(len(total), np.nan)

    def column(values: Sequence[float] | Column | None) -> Column:
        return unknown.copy() if values is None else np.asarray(values, dtype=float)

    return Calls(
        name=NAME,
        timed=t_start is not None,
        t_start=column(t_start),
        ttft_s=column(ttft_s),
        total_s=total,
        input_tokens=column(input_tokens),
        output_tokens=column(output_tokens),
        cached_tokens=unknown.copy(),
        cost_usd=column(cost_usd),
        ok=np.ones(len(total), dtype=bool) if ok is None else np.asarray(ok, dtype=bool),
        failed_s=column(failed_s),
    )
