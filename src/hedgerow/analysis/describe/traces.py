"""Calls that belong together: how often one straggler makes a whole trace slow, and what a trace costs. Read by DuckDB alone."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["Straggler", "Traces", "traces_of"]

FEWEST_CALLS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Straggler:
    """The trace whose slowest call cost it most: that call took `slowest_s` of the trace's `trace_s`, the median of its other
    calls `others_s`."""

    trace_id: str
    calls: int
    slowest_s: float
    others_s: float
    trace_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Traces:
    """Traces of at least 3 answered calls. straggler_share: those in which one call took more than 5 × the median of the others
    and at least half of the trace's time."""

    n: int
    calls_median: float
    straggler_share: float
    worst: Straggler | None

    def as_dict(self) -> dict[str, object]:
        """JSON-ready."""
        return asdict(self)


def traces_of(base: "DuckDBPyConnection") -> Traces | None:
    """Of all calls with a trace id; None if no trace has 3."""
    span = "coalesce(max(t_start + total_s) - min(t_start), max(total_s))"
    base.execute(
        "create or replace temp table traces as "
        f"select trace_id, count(*) as n, max(total_s) as slowest, median(total_s) as middle, {span} as span "
        "from calls where ok and trace_id is not null and total_s is not null "
        f"group by trace_id having count(*) >= {FEWEST_CALLS}"
    )
    straggles = "slowest > 5 * middle and slowest >= 0.5 * span"
    n, calls, stragglers = cast(
        tuple[int, float | None, int],
        base.execute(f"select count(*), median(n), count(*) filter ({straggles}) from traces").fetchone(),
    )
    worst = base.execute(
        "select trace_id, n, slowest, middle, span from traces "
        f"where {straggles} order by slowest - middle desc, trace_id limit 1"
    ).fetchone()
    base.execute("drop table traces")
    if not n or calls is None:
        return None
    return Traces(
        n=n, calls_median=calls, straggler_share=stragglers / n, worst=None if worst is None else _straggler(*worst)
    )


def _straggler(trace_id: str, calls: int, slowest_s: float, others_s: float, trace_s: float) -> Straggler:
    return Straggler(trace_id=trace_id, calls=calls, slowest_s=slowest_s, others_s=others_s, trace_s=trace_s)
