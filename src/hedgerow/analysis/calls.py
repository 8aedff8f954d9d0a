"""The nouns of a log: a call, the key it is kept under, and one key's calls as columns in order of time.

Times are seconds, moments seconds since 1970 (UTC), money USD. NaN stands for what a log does not say.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["CALL_COLUMNS", "Calls", "Column", "Flags", "KeyName"]

Column = NDArray[np.float64]
Flags = NDArray[np.bool_]

# What an importer fills in, and the type it has in the table of calls; `failed_s`, how long a failed call ran, is its `total_s`.
CALL_COLUMNS: dict[str, str] = {
    "t_start": "double",
    "provider": "varchar",
    "model": "varchar",
    "ttft_s": "double",
    "total_s": "double",
    "input_tokens": "double",
    "output_tokens": "double",
    "cached_tokens": "double",
    "cost_usd": "double",
    "ok": "boolean",
    "failed_s": "double",
    "stream": "boolean",
    "trace_id": "varchar",
    "segment": "varchar",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyName:
    """Whose calls: a provider (or deployment) and a model, "" where the log names none; of one segment, None = of all."""

    provider: str
    model: str
    segment: str | None = None

    def __str__(self) -> str:
        named = "/".join(part for part in (self.provider, self.model) if part) or "all calls"
        return named if self.segment is None else f"{named} [{self.segment or 'no segment'}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """One key's calls, all columns of one length, in order of start; in the order of the log where it has no times.

    timed: the log says when calls began. `total_s` and `ttft_s` are NaN for a call that failed; `failed_s`: how long such a call
    ran until it failed, NaN for one that was answered or where the log does not say.
    """

    name: KeyName
    timed: bool
    t_start: Column
    ttft_s: Column
    total_s: Column
    input_tokens: Column
    output_tokens: Column
    cached_tokens: Column
    cost_usd: Column
    ok: Flags
    failed_s: Column

    def __len__(self) -> int:
        return len(self.ok)

    def part(self, chosen: Flags | slice | NDArray[np.intp]) -> "Calls":
        """Some of them, in the same order."""
        return Calls(
            name=self.name,
            timed=self.timed,
            t_start=self.t_start[chosen],
            ttft_s=self.ttft_s[chosen],
            total_s=self.total_s[chosen],
            input_tokens=self.input_tokens[chosen],
            output_tokens=self.output_tokens[chosen],
            cached_tokens=self.cached_tokens[chosen],
            cost_usd=self.cost_usd[chosen],
            ok=self.ok[chosen],
            failed_s=self.failed_s[chosen],
        )
