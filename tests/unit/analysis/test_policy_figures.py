"""`make bench-policy`, as far as it can be run in a moment."""

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "policy" / "figures.py"


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, SCRIPT, *map(str, arguments)], capture_output=True, text=True, check=False)


def test_without_the_workloads_it_says_what_is_missing_and_writes_nothing(tmp_path: Path) -> None:
    done = run("--bench", tmp_path, "--out", tmp_path / "page.md")
    assert done.returncode == 0
    assert f"skipped: no workloads.py in {tmp_path}" in done.stderr
    assert not (tmp_path / "page.md").exists()


def test_too_few_requests_for_the_incidents_are_refused(tmp_path: Path) -> None:
    done = run("--bench", tmp_path, "--requests", 100)
    assert done.returncode == 2
    assert "at least 13,000" in done.stderr
