"""Each command needs its own extra only, and says which one is missing."""

import subprocess
import sys
from pathlib import Path

import pytest


def hedgerow_without(missing: list[str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command in an interpreter that lacks these packages."""
    hide = "".join(f"sys.modules[{name!r}] = None; " for name in missing)
    code = f"import sys; {hide}from hedgerow.cli import main; main()"
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("command", ["demo", "sandbox", "simulate"])
def test_commands_are_there_without_the_analysis_extra(command: str) -> None:
    ran = hedgerow_without(["numpy", "duckdb", "pandas", "pyarrow"], command, "--help")
    assert ran.returncode == 0, ran.stderr


def test_simulate_names_the_extra_it_lacks(tmp_path: Path) -> None:
    policy, attempts = tmp_path / "p.toml", tmp_path / "a.csv"
    policy.write_text("[policy.mine]\nbudget = 0.05\n")
    attempts.write_text("request\n1\n")
    ran = hedgerow_without(["numpy", "duckdb"], "simulate", str(attempts), "--policy", str(policy))
    assert ran.returncode == 2
    assert "hedgerow[analysis]" in ran.stderr


def test_without_typer_the_command_names_the_cli_extra() -> None:
    ran = hedgerow_without(["typer"], "demo")
    assert ran.returncode == 2
    assert "hedgerow[cli]" in ran.stderr
