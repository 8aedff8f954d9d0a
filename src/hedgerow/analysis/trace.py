"""The table of calls that all importers fill and all estimates read: a DuckDB file, so that a log may be larger than memory."""

import shutil
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, cast

import numpy as np

from hedgerow.analysis.calls import CALL_COLUMNS, Calls, Column, KeyName

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["KeyCount", "Trace", "open_trace"]

MEMORY_LIMIT = "900MB"
TIMED_SHARE = 0.99  # a key counts as timed if so many of its calls say when they began


@dataclass(frozen=True, slots=True)
class KeyCount:
    """How many calls a key has, and how many of them failed."""

    name: KeyName
    n: int
    errors: int


class Trace:
    """Calls of one or many logs. Use `open_trace`; not shared between threads."""

    def __init__(self, base: "DuckDBPyConnection", folder: Path) -> None:
        self.base, self.folder = base, folder
        self._part = "coalesce(segment, '')"

    def rows(self) -> int:
        """All calls, answered or failed."""
        return cast(tuple[int], self.base.execute("select count(*) from calls").fetchone())[0]

    def part_by_hour(self, time_zone: str) -> None:
        """From now on the hours of the day (of a zone of the IANA list) take the place of segments."""
        zone = time_zone.replace("'", "''")
        self._part = f"coalesce(strftime(timezone('{zone}', to_timestamp(t_start)), '%H:00'), '')"

    def key_counts(self, *, by_segment: bool = False) -> list[KeyCount]:
        """The keys, the largest first; each segment of a key by itself if asked."""
        segment = self._part if by_segment else "null::varchar"
        found = self.base.execute(
            f"select provider, model, {segment}, count(*) as n, count(*) filter (not ok) from calls group by 1, 2, 3 "
            "order by n desc, 1, 2, 3"
        ).fetchall()
        return [
            KeyCount(KeyName(provider=provider, model=model, segment=part), n, errors)
            for provider, model, part, n, errors in found
        ]

    def calls(self, name: KeyName) -> Calls:
        """The calls of one key, in order of start if nearly all have one, else as the log has them."""
        which = "provider = $provider and model = $model"
        parameters = {"provider": name.provider, "model": name.model}
        if name.segment is not None:
            which, parameters["segment"] = f"{which} and {self._part} = $segment", name.segment
        listed = "t_start, ttft_s, total_s, input_tokens, output_tokens, cached_tokens, cost_usd, failed_s, ok"
        found = cast(
            dict[str, Column], self.base.execute(f"select {listed} from calls where {which}", parameters).fetchnumpy()
        )
        columns = {column: np.ma.filled(found.pop(column), np.nan) for column in list(found) if column != "ok"}
        ok = np.asarray(found["ok"], dtype=bool)
        missing = np.isnan(columns["t_start"])
        timed = len(ok) > 0 and 1 - missing.mean() >= TIMED_SHARE
        if timed and not _in_order(columns["t_start"]):
            order = np.argsort(columns["t_start"], kind="stable")  # NaN comes last
            columns = {column: values[order] for column, values in columns.items()}
            ok = ok[order]
        return Calls(name=name, timed=timed, ok=ok, **columns)


@contextmanager
def open_trace() -> Generator[Trace]:
    """An empty table of calls, gone with its file at the end. Raises ImportError without the extra `analysis`."""
    import duckdb

    folder = Path(mkdtemp(prefix="hedgerow-"))
    config: dict[str, str | bool | int | float | list[str]] = {
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "memory_limit": MEMORY_LIMIT,
        "temp_directory": str(folder / "spill"),
    }
    try:
        with duckdb.connect(folder / "calls.duckdb", config=config) as base:
            base.execute("set TimeZone = 'UTC'")
            base.execute(f"create table calls ({', '.join(f'{name} {kind}' for name, kind in CALL_COLUMNS.items())})")
            yield Trace(base, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _in_order(moments: Column) -> bool:
    return bool(np.all(moments[1:] >= moments[:-1]))
