"""Names of a log on a terminal: whole, never markup, never control characters; and what options and help say."""

import io
import os
import subprocess
import sys
from pathlib import Path

import orjson
import pytest
from rich.console import Console
from rich.table import Table

from hedgerow.cli.shown import plain, shown

COMMAND = [sys.executable, "-c", "from hedgerow.cli import main; main()"]
NAMES = [
    "acme[test]",
    "acme[/chat]",
    "[bold]x[/bold]",
    "a\\",
    "a\\[b]",
    "[link=http://page.example]x",
    "[/]",
    "größe 模型",
]


def run(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    wide = {**os.environ, "COLUMNS": "200", "NO_COLOR": "1"}
    command = [*COMMAND, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, check=False, text=True, cwd=cwd, env=wide, encoding="utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_shown_whole_in_a_line_and_in_a_table(name: str) -> None:
    console = Console(file=io.StringIO(), width=200, highlight=False)
    table = Table(title=shown(name))
    table.add_row(shown(name), style="bold")
    console.print(f"[bold]{shown(name)}[/bold]: all of it")
    console.print(table)
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    assert lines[0].replace("\\\\", "\\") in (f"{name}: all of it", f"{name}\\: all of it".replace("\\\\", "\\"))
    assert sum(name in line for line in lines) == 3


@pytest.mark.parametrize("text", ["a\x1b[2Jb", "a\rb", "a\x07b", "a\x9b31mb", "a\u202eb", "a\u2066b", "a\x00b", "a\nb"])
def test_nothing_moves_the_cursor_or_turns_the_text(text: str) -> None:
    assert plain(text).isprintable()
    assert plain(text).startswith("a")
    assert plain(text).endswith("b")
    assert shown(text).isprintable()


def write_log(path: Path, model: str) -> None:
    rows = [
        {"t_start": 1.79e9 + 20 * k, "model": model, "total_s": 20.0 if k % 40 == 0 else 1.0, "output_tokens": 9}
        for k in range(400)
    ]
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))


@pytest.mark.parametrize("command", ["analyze", "whatif"])
def test_a_log_full_of_odd_names_is_shown(command: str, tmp_path: Path) -> None:
    write_log(tmp_path / "odd.jsonl", "a[/b]\x1b[31m\u202e")
    done = run(command, "odd.jsonl", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "a[/b]" in done.stdout
    assert not [each for each in done.stdout + done.stderr if not each.isprintable() and each != "\n"]


@pytest.mark.parametrize("name", ["log[1].jsonl", "log[1].csv", "all*.csv", "what?.csv", "a'b.csv"])
def test_a_files_own_name_comes_before_a_pattern(name: str, tmp_path: Path) -> None:
    rows = "".join(f"{1.79e9 + k},MODEL,1.5\n" for k in range(30))
    for each, model in ((name, "named"), (name.replace("[1]", "1").replace("*", "x").replace("?", "x"), "other")):
        if each.endswith(".jsonl"):
            write_log(tmp_path / each, model)
        elif model == "named" or each != name:
            (tmp_path / each).write_text("t_start,model,total_s\n" + rows.replace("MODEL", model))
    done = run("analyze", name, "--json", cwd=tmp_path)
    assert [key["model"] for key in orjson.loads(done.stdout)["keys"]] == ["named"]


@pytest.mark.parametrize(
    "options",
    [
        ("--stall-s", "nan"),
        ("--stall-s", "inf"),
        ("--stall-s", "-1"),
        ("--fixed-s", "nan"),
        ("--fixed-s", "inf"),
        ("--seed", "-1"),
        ("--turns", "0"),
        ("--window", "0"),
        ("--time-zone", "Mars/Olympus"),
    ],
)
def test_a_value_that_means_nothing_is_refused(options: tuple[str, str], tmp_path: Path) -> None:
    write_log(tmp_path / "log.jsonl", "m")
    done = run("whatif", "log.jsonl", *options, cwd=tmp_path)
    assert done.returncode == 2
    assert options[0] in done.stderr
    assert "Traceback" not in done.stderr


def test_the_version_is_said() -> None:
    done = run("--version")
    assert done.returncode == 0
    assert done.stdout.startswith("hedgerow 0.")


@pytest.mark.parametrize(
    ("command", "text"),
    [("analyze", "[[price]]"), ("whatif", "MODEL[/TIER]"), ("simulate", "[policy.NAME]"), ("whatif", "FIELD[:UNIT]")],
)
def test_help_shows_its_brackets(command: str, text: str) -> None:
    assert text in run(command, "--help").stdout


def test_a_json_log_of_no_known_format_is_told_its_fields_and_how_to_map_them(tmp_path: Path) -> None:
    rows = [{"created_at": 1.79e9 + k, "ai_model": "m", "took": 900} for k in range(60)]
    (tmp_path / "odd.jsonl").write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    done = run("analyze", "odd.jsonl", cwd=tmp_path)
    assert done.returncode == 1
    assert "--map (it has ai_model, created_at, took)" in done.stderr
    maps = [each for name in ("start=created_at", "total=took:ms", "model=ai_model") for each in ("--map", name)]
    assert orjson.loads(run("analyze", "odd.jsonl", *maps, "--json", cwd=tmp_path).stdout)["keys"][0]["n"] == 60
