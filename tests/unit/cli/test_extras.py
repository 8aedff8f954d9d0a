"""Each extra is enough for its own commands, and a command whose extra is missing says how to get it."""

import subprocess
import sys
from pathlib import Path

import pytest

# What the other extras bring, as it is where they are not installed.
WITHOUT = "import sys; sys.modules.update(dict.fromkeys({missing!r})); from hedgerow.cli import main; main()"
OF_CLI, OF_GATEWAY, OF_ANALYSIS = (
    ["openai"],
    ["aiohappyeyeballs", "uvicorn", "httptools", "tomli_w"],
    ["duckdb", "numpy"],
)
FILE = """\
[[target]]
name = "t"
dialect = "openai"
base_url = "http://127.0.0.1:9/v1"
[[route]]
path = "/v1/*"
targets = ["t"]
"""


def run(missing: list[str], *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", WITHOUT.format(missing=missing), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)


def test_the_gateways_commands_need_nothing_of_the_other_extras(tmp_path: Path) -> None:
    file = tmp_path / "hedgerow.toml"
    file.write_text(FILE)
    for arguments in (["check", str(file)], ["key", "new", "web"], ["key", "list", str(file)], ["serve", "--help"]):
        done = run(OF_CLI + OF_ANALYSIS, *arguments)
        assert done.returncode == 0, done.stderr
    file.write_text("")
    assert run(OF_CLI + OF_ANALYSIS, "serve", str(file)).returncode == 2


@pytest.mark.parametrize(
    ("missing", "extra", "arguments"),
    [
        (OF_CLI, "cli", ["demo", "--requests", "1"]),
        (OF_GATEWAY, "gateway", ["serve"]),
        (OF_GATEWAY, "gateway", ["check"]),
        (OF_ANALYSIS, "analysis", ["analyze", "x.csv"]),
    ],
)
def test_a_command_whose_extra_is_missing_says_how_to_install_it(
    missing: list[str], extra: str, arguments: list[str]
) -> None:
    done = run(missing, *arguments)
    assert done.returncode == 2
    assert f"pip install 'hedgerow[{extra}]'" in done.stderr
    assert "Traceback" not in done.stderr
