"""CSV and Parquet: DuckDB reads them as they are, every CSV field as text; rows of the wrong shape are rejected by line."""

import csv
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, cast

from hedgerow.analysis.ingest.load import Staged
from hedgerow.analysis.ingest.problems import EXAMPLES, Place, Problems

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["CsvHead", "csv_head", "forget_ragged", "reject_ragged", "stage_csv", "stage_parquet"]

DELIMITERS = ",\t;|"
LONGEST_ROW_BYTES = 32 * 1024 * 1024
# What the CSV reader says of a row it leaves out, and what people are told.
RAGGED = {
    "MISSING COLUMNS": "not as many fields as the head",
    "TOO MANY COLUMNS": "not as many fields as the head",
    "INVALID ENCODING": "not UTF-8",
    "LINE SIZE OVER MAXIMUM": f"a row of more than {LONGEST_ROW_BYTES // 1024 // 1024} MB",
    "UNQUOTED VALUE": "quotes that do not match (an open quote takes what follows it along)",
}
# Types that expressions take as they are; everything else becomes text first.
WHOLE_NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT")
PLAIN_TYPES = (*WHOLE_NUMBERS, "UHUGEINT", "FLOAT", "DOUBLE", "DECIMAL", "VARCHAR", "BOOLEAN")


_Node = tuple[str, int | None, str | None, str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvHead:
    """The delimiter and the names of a CSV. A name that comes twice stands for its first column; `twice` has those."""

    delimiter: str
    names: tuple[str, ...]
    twice: frozenset[str]


def csv_head(first_line: str) -> CsvHead:
    """What the first line of a CSV says. Columns without a name get `column3`, a second `x` becomes `x (2)`."""
    delimiter = max(DELIMITERS, key=first_line.count)
    found = next(csv.reader([first_line], delimiter=delimiter), ())
    names: list[str] = []
    seen: dict[str, int] = {}
    for position, name in enumerate((each.strip() for each in found), 1):
        name = name or f"column{position}"
        seen[name.casefold()] = count = seen.get(name.casefold(), 0) + 1
        names.append(name if count == 1 else f"{name} ({count})")
    twice = frozenset(name for name in names if seen.get(name.casefold(), 0) > 1)
    return CsvHead(delimiter=delimiter, names=tuple(names), twice=twice)


def stage_csv(base: "DuckDBPyConnection", path: Path, shown: str, head: CsvHead, *, strict: bool = True) -> Staged:
    """Rows of a CSV with its head on the first line. shown: what the file is called in messages. strict: rows with too many
    fields are left out too; a file that mixes line ends cannot be read so."""
    columns = ", ".join(f"'{_escaped(name)}': 'varchar'" for name in head.names)
    options = (
        f"header = true, auto_detect = false, quote = '\"', escape = '\"', store_rejects = true, strict_mode = {strict}, "
        f"null_padding = false, delim = '{head.delimiter}', columns = {{{columns}}}, max_line_size = {LONGEST_ROW_BYTES}"
    )
    source = f"select row_number() over () as line_, * from read_csv('{_literal(path)}', {options})"

    def places(rows: list[int]) -> list[Place]:
        left_out = frozenset(record for record, _ in _left_out(base))
        return [Place(shown, line) for line in _lines(path, left_out, rows)]

    return Staged(source=source, names=frozenset(head.names), places=places)


def reject_ragged(base: "DuckDBPyConnection", path: Path, shown: str, problems: Problems) -> None:
    """Counts what the CSV reader itself left out of the file it has just read."""
    found: dict[str, list[int]] = {}
    for record, kind in _left_out(base):
        found.setdefault(RAGGED.get(kind, kind.lower()), []).append(record)
    for reason, records in found.items():
        first = set(records[:EXAMPLES])
        with path.open("rb") as file:
            lines = islice((line for record, line, _ in _records(file) if record in first), len(first))
            problems.reject(reason, len(records), [Place(shown, line) for line in lines])
    forget_ragged(base)


def forget_ragged(base: "DuckDBPyConnection") -> None:
    """Before the next file: what was left out of this one."""
    base.execute("drop table if exists reject_errors; drop table if exists reject_scans")


def _left_out(base: "DuckDBPyConnection") -> list[tuple[int, str]]:
    """Numbers of records, the head being 1, and why."""
    if not base.execute("select 1 from duckdb_tables() where table_name = 'reject_errors'").fetchall():
        return []
    rows = base.execute(
        "select line, min(error_type::varchar) from reject_errors group by line order by line"
    ).fetchall()
    return cast(list[tuple[int, str]], rows)


def stage_parquet(base: "DuckDBPyConnection", path: Path, shown: str) -> Staged:
    """Rows of a Parquet file; nested fields by their path, moments, lists and maps as text."""
    described = base.execute(f"describe from read_parquet('{_literal(path)}')").fetchall()
    kinds = {cast(str, row[0]): cast(str, row[1]) for row in described}
    sql = {name: f"{inner}::varchar" for name, inner in _nested(base, path).items()}
    sql |= {name: _plain(_quoted(name), kind) for name, kind in kinds.items()}
    columns = ", ".join(f"{expression} as {_quoted(name)}" for name, expression in sql.items())
    source = (
        f"select file_row_number + 1 as line_, {columns} from read_parquet('{_literal(path)}', file_row_number = true)"
    )
    return Staged(source=source, names=frozenset(sql), places=lambda rows: [Place(shown, row) for row in rows])


def _nested(base: "DuckDBPyConnection", path: Path) -> dict[str, str]:
    """Fields inside structs, not inside lists and maps: path → SQL."""
    described = base.execute(
        f"select name, num_children, converted_type, repetition_type from parquet_schema('{_escaped(str(path))}')"
    ).fetchall()
    nodes = iter(cast(list[_Node], described))
    root = next(nodes)
    paths = [each for each in _leaves(nodes, root[1] or 0, ()) if len(each) > 1]
    return {".".join(each): _quoted(each[0]) + "".join(f"['{_escaped(name)}']" for name in each[1:]) for each in paths}


def _leaves(nodes: Iterator[_Node], count: int, above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The paths of what has no children, from a schema that lists every node before its children."""
    for _ in range(count):
        name, inner, converted, repetition = next(nodes)
        here = (*above, name)
        below = list(_leaves(nodes, inner or 0, here))
        if repetition != "REPEATED" and converted not in ("LIST", "MAP", "MAP_KEY_VALUE"):
            yield from below or (here,)


def _plain(sql: str, kind: str) -> str:
    if kind.startswith(PLAIN_TYPES) and not kind.endswith("]"):
        return sql
    if kind.startswith(("STRUCT", "MAP")) or kind.endswith("]"):
        return f"to_json({sql})::varchar"
    return f"{sql}::varchar"


def _lines(path: Path, left_out: frozenset[int], wanted: list[int]) -> list[int]:
    """On which lines the wanted rows begin: rows are what is neither head nor empty nor left out. In the order of the file."""
    found: list[int] = []
    row = 0
    with path.open("rb") as file:
        for record, line, empty in _records(file):
            row += record > 1 and not empty and record not in left_out
            if row in wanted[len(found) :]:
                found.append(line)
            if len(found) == len(wanted):
                break
    return found


def _records(lines: Iterable[bytes]) -> Iterator[tuple[int, int, bool]]:
    """Numbers of record and line, and whether the line is empty; a quoted field may go over many lines."""
    record, open_quote = 0, False
    for number, line in enumerate(lines, 1):
        if not open_quote:
            record += 1
            yield record, number, not line.strip(b"\r\n")
        open_quote ^= line.count(b'"') % 2 == 1


def _literal(path: Path) -> str:
    """A file's own name, of which DuckDB would take * ? [ for a pattern."""
    return _escaped(re.sub(r"[*?\[]", r"[\g<0>]", str(path)))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _escaped(text: str) -> str:
    return text.replace("'", "''")
