"""`hedgerow export` and `analyze` only read what they are given: stores at rest, in use and left by a killed process; foreign
files are refused, and not a byte of any of them, or beside them, changes."""

import csv
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hedgerow.record.ids import uuid7
from hedgerow.record.jsonl_store import JsonlStore
from hedgerow.record.sqlite_store import SqliteStore
from hedgerow.values.event import AttemptEvent, Event

COMMAND = [sys.executable, "-c", "from hedgerow.cli import main; main()"]
AT = datetime(2026, 11, 1, 10, 0, 0, 123000, UTC)


def run(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    wide = {**os.environ, "COLUMNS": "200", "NO_COLOR": "1"}
    return subprocess.run(
        [*COMMAND, *map(str, arguments)], cwd=cwd, env=wide, capture_output=True, text=True, check=False
    )


def event(number: int = 0, model: str = "gpt-4o") -> Event:
    at = AT + timedelta(seconds=number)
    attempt = AttemptEvent(
        attempt=0, target="openai", started_s=0.0, reason="primary", ended_s=1.5 + number, outcome="won", model=model
    )
    made = Event(id=uuid7(at), at=at, dialect="openai", model=model, stream=False, plan="hedge", outcome="answered")
    return replace(made, attempts=(attempt,))


def sqlite_store(path: Path, *models: str) -> Path:
    store = SqliteStore(path)
    for number, model in enumerate(models):
        store.append(event(number, model))
    store.close()
    return path


def held(folder: Path) -> dict[str, bytes]:
    """Every file below a folder and what is in it."""
    return {str(each.relative_to(folder)): each.read_bytes() for each in sorted(folder.rglob("*")) if each.is_file()}


def foreign(path: Path, kind: str) -> Path:
    """A file of another program."""
    if kind == "lines":
        path.write_text('{"t_start": 1, "total_s": 2}\n')
    elif kind == "text":
        path.write_text("no events\n")
    else:
        with closing(sqlite3.connect(path)) as base:
            if kind == "ahead":
                base.execute("pragma journal_mode = wal")
            base.execute("create table requests (id integer primary key, url text)")
            if kind == "both tables":
                base.execute("create table attempts (id integer, attempt integer, at text)")
            base.execute("insert into requests values (1, 'http://x')")
            base.commit()
    return path


@pytest.mark.parametrize("kind", ["requests", "both tables", "ahead", "lines", "text"])
@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_a_foreign_file_is_refused_and_left_as_it_is(tmp_path: Path, kind: str, ending: str) -> None:
    path = foreign(tmp_path / "app.db", kind)
    before = held(tmp_path)
    done = run("export", path, "--to", f"out.{ending}", cwd=tmp_path)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert "hedgerow has written events" in done.stderr
    assert held(tmp_path) == before


@pytest.mark.parametrize("command", ["analyze", "whatif"])
def test_a_log_in_a_foreign_database_is_read_without_a_trace(tmp_path: Path, command: str) -> None:
    path = tmp_path / "logs.db"
    with closing(sqlite3.connect(path)) as base:
        base.execute("pragma journal_mode = wal")
        base.execute("create table responses (id text, model text, duration_ms integer, datetime_utc text)")
        base.executemany(
            "insert into responses values (?, 'gpt-4o', ?, '2026-11-01T10:00:00')",
            [(str(n), 900 + n) for n in range(60)],
        )
        base.commit()
    before = held(tmp_path)
    assert run(command, path, cwd=tmp_path).returncode == 0
    assert held(tmp_path) == before


def test_a_store_at_rest_is_read_without_a_file_beside_it(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    path = sqlite_store(tmp_path / "kept" / "hedgerow.db", "gpt-4o", "gpt-5")
    before = held(path.parent)
    path.parent.chmod(0o555)
    path.chmod(0o444)
    try:
        exported = run("export", f"sqlite:///{path.relative_to(tmp_path)}", "--to", "out.jsonl", cwd=tmp_path)
        analyzed = run("analyze", path, "--json", cwd=tmp_path)
    finally:
        path.parent.chmod(0o755)
    assert (exported.returncode, analyzed.returncode) == (0, 0), exported.stderr + analyzed.stderr
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 2
    assert held(path.parent) == before


def test_a_store_in_use_is_read_with_its_last_events(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "hedgerow.db")
    store.append(event())
    store.flush()
    done = run("export", store.path, "--to", "out.jsonl", cwd=tmp_path)
    store.append(event(1))
    store.flush()
    assert len(list(store)) == 2
    store.close()
    assert (done.returncode, "1 events" in done.stderr) == (0, True), done.stderr


@pytest.mark.parametrize("endings", [("", "-wal"), ("", "-wal", "-shm")])
def test_what_a_killed_process_left_is_read_from_a_copy(tmp_path: Path, endings: tuple[str, ...]) -> None:
    store = SqliteStore(tmp_path / "live.db")
    store.append(event())
    store.flush()
    left = tmp_path / "left"
    left.mkdir()
    for ending in endings:
        shutil.copyfile(f"{store.path}{ending}", left / f"hedgerow.db{ending}")
    store.close()
    before = held(left)
    done = run("export", left / "hedgerow.db", "--to", "out.jsonl", cwd=tmp_path)
    assert (done.returncode, "1 events" in done.stderr) == (0, True), done.stderr
    if "-shm" not in endings:
        assert held(left) == before
    assert (left / "hedgerow.db").read_bytes() == before["hedgerow.db"]


@pytest.mark.parametrize("name", ["events.jsonl", "link.jsonl"])
def test_events_are_not_copied_over_themselves(tmp_path: Path, name: str) -> None:
    store = JsonlStore(tmp_path / "events.jsonl")
    store.append(event())
    store.close()
    (tmp_path / "link.jsonl").symlink_to("events.jsonl")
    before = held(tmp_path)
    done = run("export", "events.jsonl", "--to", name, cwd=tmp_path)
    assert (done.returncode, "another file" in done.stderr) == (2, True)
    assert held(tmp_path) == before


def test_half_a_line_and_foreign_lines_are_counted(tmp_path: Path) -> None:
    store = JsonlStore(tmp_path / "events.jsonl")
    store.append(event())
    store.close()
    with (tmp_path / "events.jsonl").open("a") as file:
        file.write('[1]\n{"id": 5, "attempts": 3}\n{"id": "cut')
    done = run("export", "events.jsonl", "--to", "out.jsonl", cwd=tmp_path)
    assert done.returncode == 0
    assert "1 events in out.jsonl" in done.stderr
    assert "3 records are no events" in done.stderr


FORMULAS = ["=1+1", "+1+1", "-1+1", "@SUM(1)", "\t=1", " =1", '=HYPERLINK("http://page.example")', "＝1+1"]


@pytest.mark.parametrize("model", FORMULAS)
def test_no_cell_of_a_csv_is_run_by_a_spreadsheet(tmp_path: Path, model: str) -> None:
    sqlite_store(tmp_path / "hedgerow.db", model, "gpt-4o")
    assert run("export", "hedgerow.db", "--to", "out.csv", cwd=tmp_path).returncode == 0
    for name in ("out.csv", "out-attempts.csv"):
        with (tmp_path / name).open(newline="") as file:
            rows = list(csv.DictReader(file))
        kept = {row["model"] for row in rows}
        assert kept == {f"'{model.strip()}" if model.strip() in kept else f"'{model}", "gpt-4o"}
        assert not [cell for row in rows for cell in row.values() if cell.lstrip().startswith(tuple("=+-@＝"))]


def test_numbers_below_zero_stay_numbers(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "hedgerow.db")
    store.append(replace(event(), inflation=-0.5))
    store.close()
    assert run("export", "hedgerow.db", "--to", "out.csv", cwd=tmp_path).returncode == 0
    with (tmp_path / "out.csv").open(newline="") as file:
        assert [row["inflation"] for row in csv.DictReader(file)] == ["-0.5"]
