"""All rows of a log as one key: each call judged by what its own model usually does, its copies near in time elsewhere."""

from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from hedgerow.analysis.calls import Calls, KeyName
from hedgerow.analysis.trace import Trace
from hedgerow.analysis.whatif.parts import Parts, joined, parts_of
from hedgerow.errors import SettingError

__all__ = ["Pool", "pool_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """calls and parts in order of time; providers: a number for each call's provider; models: its key, by name."""

    calls: Calls
    parts: Parts
    providers: NDArray[np.intp]
    models: list[str]


def pool_of(trace: Trace) -> Pool:
    """Of all keys with an answered call. Raises SettingError where calls have no start times: no neighbours in time."""
    keys = [(count.name, trace.calls(count.name)) for count in trace.key_counts() if count.n > count.errors]
    keys = [(name, calls) for name, calls in keys if np.isfinite(np.fmax(calls.total_s, calls.ttft_s)).any()]
    if not keys or not all(calls.timed for _, calls in keys):
        raise SettingError("--pool", "a log without start times", "a log whose calls have start times")
    whole = _together([calls for _, calls in keys])
    order = np.argsort(whole.t_start, kind="stable")
    numbers: dict[str, int] = {
        provider: number for number, provider in enumerate(sorted({name.provider for name, _ in keys}))
    }
    sizes = [len(calls) for _, calls in keys]
    names = np.repeat(np.arange(len(keys)), sizes)[order]
    provider: NDArray[np.intp] = np.array([numbers[name.provider] for name, _ in keys], dtype=np.intp)
    return Pool(
        calls=whole.part(order),
        parts=joined([parts_of(calls) for _, calls in keys], order),
        providers=provider[names],
        models=[str(keys[number][0]) for number in cast(list[int], names.tolist())],
    )


def _together(parts: list[Calls]) -> Calls:
    columns = ("t_start", "ttft_s", "total_s", "input_tokens", "output_tokens", "cached_tokens", "cost_usd", "failed_s")
    joint = {name: np.concatenate([getattr(each, name) for each in parts]) for name in columns}
    ok = np.concatenate([each.ok for each in parts])
    return Calls(name=KeyName(provider="", model=""), timed=True, ok=ok, **joint)
