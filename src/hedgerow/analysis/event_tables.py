"""Events as tables for other tools: one file of requests, and one of attempts beside it, joined by `id`."""

from collections.abc import Callable, Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

import orjson

from hedgerow.values.event import Event
from hedgerow.values.event_columns import ATTEMPT_COLUMNS, FLAGS, REQUEST_COLUMNS, attempt_rows, request_row

__all__ = ["TABLES", "beside", "write_tables"]

TABLES = {".parquet": "format parquet", ".pq": "format parquet", ".csv": "format csv, header"}
KINDS = {"text": "varchar", "integer": "bigint", "real": "double"}
# Spreadsheets run what begins so, and callers and providers choose names; after a ' it is a text.
FORMULA = r"^(\s*[=+\-@\x{FF1D}\x{FF0B}\x{FF0D}\x{FF20}]|[\t\r\n])"


def beside(to: Path) -> Path:
    """Where the attempts of a file of requests go."""
    return to.with_name(f"{to.stem}-attempts{to.suffix}")


def write_tables(events: Iterable[Event], to: Path) -> int:
    """Writes `to` (a name ending in one of TABLES) and NAME-attempts beside it; how many events there were."""
    import duckdb

    count = 0
    with TemporaryDirectory() as folder, duckdb.connect(config={"autoinstall_known_extensions": False}) as base:
        requests, attempts = Path(folder) / "requests.jsonl", Path(folder) / "attempts.jsonl"
        with requests.open("wb") as request_file, attempts.open("wb") as attempt_file:
            for event in events:
                count += 1
                request_file.write(_line(REQUEST_COLUMNS, request_row(event)))
                attempt_file.writelines(_line(ATTEMPT_COLUMNS, row) for row in attempt_rows(event))
        cell = _cell if to.suffix == ".csv" else _cast
        for rows, columns, target in ((requests, REQUEST_COLUMNS, to), (attempts, ATTEMPT_COLUMNS, beside(to))):
            base.execute(f"copy ({_typed(rows, columns, cell)}) to '{_quoted(target)}' ({TABLES[to.suffix]})")
    return count


def _line(columns: Iterable[str], values: list[object]) -> bytes:
    return orjson.dumps(dict(zip(columns, values, strict=True)), option=orjson.OPT_APPEND_NEWLINE)


def _typed(rows: Path, columns: dict[str, str], cell: Callable[[str, str], str]) -> str:
    kinds = ", ".join(f"'{name}': '{KINDS[kind]}'" for name, kind in columns.items())
    listed = ", ".join(cell(name, kind) for name, kind in columns.items())
    return f"select {listed} from read_json('{_quoted(rows)}', format = 'newline_delimited', columns = {{{kinds}}})"


def _cast(name: str, _kind: str) -> str:
    kind = "timestamptz" if name == "at" else "boolean" if name in FLAGS else None
    return f'"{name}"' if kind is None else f'"{name}"::{kind} as "{name}"'


def _cell(name: str, kind: str) -> str:
    """A cell of a CSV: a text that a spreadsheet would run is made none."""
    if kind != "text" or name == "at":
        return _cast(name, kind)
    return f"""regexp_replace("{name}", '{FORMULA}', '''\\1') as "{name}" """


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")
