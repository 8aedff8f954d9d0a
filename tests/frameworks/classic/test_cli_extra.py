"""hedgerow[cli] installs beside instructor, and its demo runs with the openai that is then there."""

import json
import subprocess
import sys

PATIENCE_S = 100.0


def test_the_demo_runs_with_openai_2() -> None:
    options = ["--requests", "40", "--time-scale", "0.05", "--json"]
    command = [sys.executable, "-c", "from hedgerow.cli import main; main()", "demo", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {(arm["n"], arm["errors"]) for arm in found["arms"]} == {(40, 0)}
    twice = next(arm for arm in found["arms"] if arm["arm"] == "twice")
    assert twice["backups"] == 40
