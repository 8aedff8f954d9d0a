"""CSV and Parquet: DuckDB reads them as they are, every CSV field as text; rows of the wrong width are rejected by line."""

import csv
from pathlib import Path
from typing import TYPE_CHECKING, cast

from hedgerow.analysis.ingest.load import Staged
from hedgerow.analysis.ingest.problems import Place, Problems

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["csv_head", "reject_ragged", "stage_csv", "stage_parquet"]

DELIMITERS = ",\t;|"
LONGEST_ROW_BYTES = 32 * 1024 * 1024


def csv_head(first_line: str) -> tuple[str, tuple[str, ...]]:
    """The delimiter and the names of a CSV, from its first line."""
    delimiter = max(DELIMITERS, key=first_line.count)
    return delimiter, tuple(next(csv.reader([first_line], delimiter=delimiter), ()))


def stage_csv(path: Path, shown: str, delimiter: str, names: tuple[str, ...]) -> Staged:
    """Rows of a CSV, gzipped or not, with its head on the first line. shown: what the file is called in messages."""
    columns = ", ".join(f"'{_escaped(name)}': 'varchar'" for name in names)
    options = (
        "header = true, auto_detect = false, quote = '\"', escape = '\"', store_rejects = true, strict_mode = false, "
        f"null_padding = false, delim = '{delimiter}', columns = {{{columns}}}, max_line_size = {LONGEST_ROW_BYTES}"
    )
    source = f"select row_number() over () + 1 as line_, * from read_csv('{_escaped(str(path))}', {options})"
    return Staged(source=source, names=frozenset(names), place=lambda line: Place(shown, line))


def reject_ragged(base: "DuckDBPyConnection", shown: str, problems: Problems) -> None:
    """Counts what the CSV reader itself left out of the file it has just read."""
    there = base.execute("select 1 from duckdb_tables() where table_name = 'reject_errors'").fetchone()
    if there is None:
        return
    lines = base.execute("select distinct line from reject_errors order by line").fetchall()
    found = [line for (line,) in cast(list[tuple[int]], lines)]
    problems.reject("not as many fields as the head", len(found), [Place(shown, line) for line in found[:3]])
    base.execute("drop table if exists reject_errors; drop table if exists reject_scans")


def stage_parquet(base: "DuckDBPyConnection", path: Path, shown: str) -> Staged:
    """Rows of a Parquet file; moments as text, nested fields by their path."""
    described = base.execute(f"describe from read_parquet('{_escaped(str(path))}')").fetchall()
    kinds = {cast(str, row[0]): cast(str, row[1]) for row in described}
    columns = ", ".join(_plain(name, kind) for name, kind in kinds.items())
    source = f"select file_row_number + 1 as line_, {columns} from read_parquet('{_escaped(str(path))}', file_row_number = true)"
    return Staged(source=source, names=frozenset(kinds), place=lambda line: Place(shown, line))


def _plain(name: str, kind: str) -> str:
    quoted = '"' + name.replace('"', '""') + '"'
    return f"{quoted}::varchar as {quoted}" if kind.startswith(("TIMESTAMP", "DATE")) else quoted


def _escaped(text: str) -> str:
    return text.replace("'", "''")
