"""The sandbox as a program: options, the line it prints, how it ends."""

import os
import signal
import socket
import subprocess
import sys

import pytest
from raw_client import ask

from hedgerow.errors import HedgerowError, SettingError
from hedgerow.sandbox.server import SandboxSettings
from hedgerow.testing import SandboxProcess

PROGRAMS = {
    "module": [sys.executable, "-m", "hedgerow.sandbox"],
    "command": [sys.executable, "-c", "from hedgerow.cli import main; main()", "sandbox"],
}


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("told", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_it_says_where_it_listens_and_ends_cleanly(program, told):
    options = ["--port", "0", "--profile", "real", "--seed", "3", "--time-scale", "0.1", "--bill", "full"]
    with subprocess.Popen([*program, *options], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        line = process.stderr.readline()
        assert line.startswith("listening on http://127.0.0.1:")
        process.send_signal(told)
        rest = process.communicate(timeout=240)
        assert (process.returncode, *rest) == (0, "", "")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--time-scale", "0"], "time_scale"),
        (["--port", "99999"], "port"),
        (["--bill", "half"], "so_far"),
        (["--profile", "nonesuch"], "openai-like"),
        (["--replay", "nonesuch.csv"], "nonesuch.csv"),
        (["--surprise"], "--surprise"),
    ],
)
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_options_that_cannot_be_exit_with_2(program, options, named):
    plain = os.environ | {"NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "300"}
    done = subprocess.run([*program, *options], capture_output=True, text=True, timeout=240, check=False, env=plain)
    assert done.returncode == 2
    assert named in done.stderr
    assert done.stdout == ""


def test_a_port_in_use_exits_with_1():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = subprocess.run(
            [*PROGRAMS["module"], "--port", port], capture_output=True, text=True, timeout=240, check=False
        )
    assert done.returncode == 1
    assert port in done.stderr


def test_without_typer_the_command_names_the_extra():
    code = "import sys; sys.modules['typer'] = None; from hedgerow.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code, "sandbox"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "hedgerow[cli]" in done.stderr


def test_the_module_needs_no_extra():
    code = (
        "import sys; blocked = ('typer', 'rich', 'openai', 'httpx2', 'pydantic', 'cryptography')\n"
        "sys.modules.update(dict.fromkeys(blocked)); import hedgerow.sandbox.__main__"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_process_that_does_not_start_says_why():
    with pytest.raises(HedgerowError, match=r"nonesuch\.csv"):
        SandboxProcess(replay="nonesuch.csv")


def test_closing_twice_is_harmless():
    process = SandboxProcess()
    assert process.close() == 0
    assert process.close() == 0


@pytest.mark.parametrize("wrong", [{"port": -1}, {"time_scale": 0}, {"time_scale": float("nan")}, {"bill": "half"}])
def test_settings_that_cannot_be_are_refused(wrong):
    with pytest.raises(SettingError, match=next(iter(wrong))):
        SandboxSettings(**wrong)


def test_a_script_for_requests_without_one_counts_them_as_one_case(hedgerow_sandbox):
    case = hedgerow_sandbox.script({"text": "one"}, {"text": "two"})
    own = ask(hedgerow_sandbox, script={"text": "its own"}, case="c")
    said = [own, *(ask(hedgerow_sandbox) for _ in range(3))]
    assert [answer.json["choices"][0]["message"]["content"] for answer in said] == ["its own", "one", "two", "two"]
    assert len(hedgerow_sandbox.stats()["cases"][case]) == 3
    assert hedgerow_sandbox.script({"text": "again"}) != case
    assert ask(hedgerow_sandbox).json["choices"][0]["message"]["content"] == "again"
    hedgerow_sandbox.reset()
    assert ask(hedgerow_sandbox).json["choices"][0]["message"]["content"] != "again"


def test_a_script_that_makes_no_sense_is_refused(hedgerow_sandbox):
    with pytest.raises(HedgerowError, match="no such key"):
        hedgerow_sandbox.script({"tex": "x"})
