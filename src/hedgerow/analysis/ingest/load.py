"""Rows of a recognised format into the table of calls: what is no call, or makes no sense, is left out, counted and named.

The rows are read twice, first for what is wrong with them, then for what is right: quicker than to keep what was read.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from hedgerow.analysis.calls import CALL_COLUMNS
from hedgerow.analysis.ingest.format import Format
from hedgerow.analysis.ingest.problems import EXAMPLES, Place, Problems
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
    "a NUL in its text": "contains(model, chr(0)) or contains(provider, chr(0))",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged:
    """Raw rows. source: SQL that yields them, with a column `line_`; names: their fields; places: where some `line_` are."""

    source: str
    names: frozenset[str]
    places: Callable[[list[int]], list[Place]]


def load(base: "DuckDBPyConnection", staged: Staged, log: Format, problems: Problems) -> int:
    """Adds the rows to `calls`; how many it took."""
    judged = _judged(staged, log)
    rejected = _rejected(base, judged, staged, log, problems)
    columns = ", ".join(CALL_COLUMNS)
    added = base.execute(f"insert into calls select {columns} from ({judged}) where reason is null").fetchall()
    taken = cast(list[tuple[int]], added)[0][0]
    if taken or rejected:
        for caution in log.cautions:
            problems.caution(f"{log.name}: {caution}")
    return taken


def _rejected(base: "DuckDBPyConnection", judged: str, staged: Staged, log: Format, problems: Problems) -> int:
    """Counts and names what is left out, and what is to be noticed; how many rows are left out."""
    notices = [(sentence, each) for sentence, each in log.notices.items() if each.reads & staged.names]
    counted = "".join(f", count(*) filter (notice_{index})" for index in range(len(notices)))
    found = base.execute(
        f"select reason, count(*), case when reason is not null then min(line_, {EXAMPLES}) end{counted} "
        f"from ({judged}) group by reason order by reason nulls first"
    ).fetchall()
    rows = [
        (cast(str | None, reason), cast(int, n), cast(list[int], lines or []), cast(list[int], noticed))
        for reason, n, lines, *noticed in found
    ]
    for reason, n, lines, _ in rows:
        if reason is not None:
            problems.reject(reason, n, staged.places(lines))
    for index, (sentence, _) in enumerate(notices):
        if n := sum(noticed[index] for *_, noticed in rows):
            problems.caution(f"{log.name}: in {n:,} {'row' if n == 1 else 'rows'} {sentence}")
    return sum(n for reason, n, _, _ in rows if reason is not None)


def _judged(staged: Staged, log: Format) -> str:
    """SQL: line, columns of a call, notices, and the reason to leave the row out or null."""
    fields = "".join(f", {_field(name, staged.names)}" for name in sorted(log.reads()))
    columns = ", ".join(f"{_column(name, kind, log)} as {name}" for name, kind in CALL_COLUMNS.items())
    seen = [each for each in log.notices.values() if each.reads & staged.names]
    notices = "".join(f", coalesce({each.sql}, false) as notice_{index}" for index, each in enumerate(seen))
    skip = _first({reason: condition.sql for reason, condition in log.skip.items()})
    read = f"select line_, {columns}{notices}, {skip} as skipped from (select line_{fields} from ({staged.source}))"
    return (
        "select * exclude (skipped, provider, ttft_s, total_s, failed_s), "
        f"coalesce(provider, {PROVIDER_OF_MODEL}, '') as provider, "
        "case when ok then ttft_s end as ttft_s, case when ok then total_s end as total_s, "
        "case when not ok and total_s > 0 then total_s end as failed_s, "
        f"coalesce(skipped, {_first(SENSELESS)}) as reason from ({read})"
    )


def _field(name: str, present: frozenset[str]) -> str:
    quoted = '"' + name.replace('"', '""') + '"'
    return quoted if name in present else f"null::varchar as {quoted}"


def _column(name: str, kind: str, log: Format) -> str:
    expression = log.columns.get(name)
    sql = "null" if expression is None else expression.sql
    if name == "ok":
        return f"coalesce({sql}, true)"
    return f"coalesce({sql}, '')::varchar" if name == "model" else f"({sql})::{kind}"


def _first(reasons: Mapping[str, str]) -> str:
    """SQL: the first reason whose condition holds, or null."""
    cases = " ".join(f"when {condition} then {_quoted(reason)}" for reason, condition in reasons.items())
    return f"case {cases} end" if cases else "null::varchar"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
