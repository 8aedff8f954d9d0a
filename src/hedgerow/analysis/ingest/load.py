"""Rows of a recognised format into the table of calls: what is no call, or makes no sense, is left out, counted and named."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from hedgerow.analysis.calls import CALL_COLUMNS
from hedgerow.analysis.ingest.fields import Expr
from hedgerow.analysis.ingest.format import Format
from hedgerow.analysis.ingest.problems import Place, Problems
from hedgerow.analysis.ingest.providers import PROVIDER_OF_MODEL

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["Staged", "load"]

# In this order; the first that holds is a row's reason. A failed call needs no times.
SENSELESS: dict[str, str] = {
    "without any time": "ok and total_s is null and ttft_s is null",
    "a time below zero": "ok and (total_s < 0 or ttft_s < 0)",
    "answered in no time": "ok and (total_s = 0 or ttft_s = 0 and total_s is null)",
    "a first token after the end": "ok and ttft_s > total_s * 1.001 + 0.001",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged:
    """Raw rows. source: SQL that yields them, with a column `line_`; names: their fields; place: what a `line_` is called."""

    source: str
    names: frozenset[str]
    place: Callable[[int], Place]


def load(base: "DuckDBPyConnection", staged: Staged, log: Format, problems: Problems) -> int:
    """Adds the rows to `calls`; how many it took."""
    base.execute(f"create or replace temp table judged as {_judged(staged, log)}")
    columns = ", ".join(CALL_COLUMNS)
    before = _count(base, "calls")
    base.execute(f"insert into calls select {columns} from judged where reason is null")
    found = base.execute(
        "select reason, count(*), min(line_, 3) from judged where reason is not null group by reason order by reason"
    ).fetchall()
    for reason, n, lines in cast(list[tuple[str, int, list[int]]], found):
        problems.reject(reason, n, [staged.place(line) for line in lines])
    _caution(base, log, problems)
    base.execute("drop table judged")
    return _count(base, "calls") - before


def _judged(staged: Staged, log: Format) -> str:
    """SQL: line, columns of a call, and the reason to leave it out or null."""
    absent = log.reads() - staged.names
    padding = "".join(f', null::varchar as "{name}"' for name in sorted(absent))
    columns = ", ".join(f"{_column(name, kind, log.columns)} as {name}" for name, kind in CALL_COLUMNS.items())
    skipped = " ".join(f"when {condition.sql} then {_quoted(reason)}" for reason, condition in log.skip.items())
    skip = f"case {skipped} end" if skipped else "null::varchar"
    senseless = " ".join(f"when {condition} then {_quoted(reason)}" for reason, condition in SENSELESS.items())
    return (
        f"with raw as (select *{padding} from ({staged.source})), "
        f"read as (select line_, {columns}, {skip} as skipped from raw) "
        f"select * exclude (skipped, provider, ttft_s, total_s), coalesce(provider, {PROVIDER_OF_MODEL}, '') as provider, "
        "case when ok then ttft_s end as ttft_s, case when ok then total_s end as total_s, "
        f"coalesce(skipped, case {senseless} end) as reason from read"
    )


def _column(name: str, kind: str, columns: Mapping[str, Expr]) -> str:
    expression = columns.get(name)
    sql = "null" if expression is None else expression.sql
    if name == "ok":
        return f"coalesce({sql}, true)"
    return f"coalesce({sql}, '')::varchar" if name == "model" else f"({sql})::{kind}"


def _caution(base: "DuckDBPyConnection", log: Format, problems: Problems) -> None:
    for caution in log.cautions:
        problems.caution(f"{log.name}: {caution}")


def _count(base: "DuckDBPyConnection", table: str) -> int:
    return cast(tuple[int], base.execute(f"select count(*) from {table}").fetchone())[0]


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
