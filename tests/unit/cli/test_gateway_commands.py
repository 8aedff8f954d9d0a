"""`hedgerow check`, `hedgerow key new` and `hedgerow key list`."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from hedgerow.gateway.client_keys import digest_of
from hedgerow.gateway.config import load

FILE = """\
[gateway]
admin_key = "env:ADMIN"
[[target]]
name = "openai"
dialect = "openai"
base_url = "https://api.openai.com/v1"
api_key = "env:THEIRS"
[[route]]
path = "/v1/*"
targets = ["openai"]
policy = "p"
[policy.p]
budget = "10%"
prior = { first_token_s = 1, token_s = 0.01, lag_s = 2 }
hours = ["22:00-24:00"]
[[client_key]]
name = "ios"
sha256 = "0000000000000000000000000000000000000000000000000000000000000000"
segment = "free"
trust_segment = "signed"
segment_secret = "env:SEGMENTS"
requests_per_minute = 60
"""
SECRETS = {"ADMIN": "s-admin", "THEIRS": "s-theirs", "SEGMENTS": "s-segments"}


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    path = tmp_path / "hedgerow.toml"
    path.write_text(FILE)
    return path


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from hedgerow.cli import main; main()", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)


def test_check_prints_what_a_file_comes_to_as_a_file_that_comes_to_the_same_without_a_secret(
    file: Path, tmp_path: Path
) -> None:
    done = run("check", str(file))
    assert (done.returncode, done.stderr) == (0, "")
    assert not any(secret in done.stdout for secret in SECRETS.values())
    printed = tomllib.loads(done.stdout)
    assert printed["policy"]["p"]["budget"] == 0.1
    again = tmp_path / "again.toml"
    again.write_text(done.stdout)
    assert load(again).policies == load(file).policies
    assert load(again).routes == load(file).routes
    as_json = json.loads(run("check", str(file), "--json").stdout)
    assert as_json["target"][0]["api_key"] == "(hidden)"
    assert as_json["gateway"]["admin_key"] == "(hidden)"


def test_check_says_where_a_file_is_wrong_and_exits_2(file: Path) -> None:
    file.write_text(FILE.replace('policy = "p"', 'policy = "q"'))
    done = run("check", str(file))
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{file}:11: route.policy = 'q' is not possible" in done.stderr
    missing = run("check", str(file) + ".not")
    assert missing.returncode == 2
    assert "No such file" in missing.stderr


def test_a_new_key_is_shown_once_and_its_hash_can_be_pasted(file: Path) -> None:
    done = run("key", "new", "web")
    assert done.returncode == 0
    key = done.stderr.strip().rpartition(" ")[2]
    assert key.startswith("hr-")
    assert len(key) > 40
    assert key not in done.stdout
    file.write_text(FILE + done.stdout)
    added = load(file).client_keys[-1]
    assert (added.name, added.sha256) == ("web", digest_of(key))
    assert run("key", "new", "a name").returncode == 2


def test_the_keys_of_a_file_are_listed(file: Path) -> None:
    done = run("key", "list", str(file))
    assert done.stdout.split("\t") == ["ios", "free", "60 requests/min", "000000000000\n"]


WRONG_FILES = {
    "another editor's": "# Gerät\n".encode("latin-1") + FILE.encode(),
    "a key that is not closed": FILE.replace('"env:THEIRS"', '"sk-SECRETSECRET').encode(),
    "a key under another name": FILE.replace('api_key = "env:THEIRS"', 'api_kye = "sk-SECRETSECRET"').encode(),
    "a key in an address": FILE.replace("https://api", "https://me:SECRETSECRET@api").encode(),
    "a folder": None,
}


@pytest.mark.parametrize("command", [("check",), ("serve",), ("key", "list")], ids=["check", "serve", "key list"])
@pytest.mark.parametrize("what", WRONG_FILES)
def test_a_file_that_cannot_be_used_is_said_in_one_line_without_what_stands_in_it(
    file: Path, command: tuple[str, ...], what: str
) -> None:
    file.unlink()
    if (data := WRONG_FILES[what]) is None:
        file.mkdir()
    else:
        file.write_bytes(data)
    done = run(*command, str(file))
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert str(file) in done.stderr
    assert "SECRETSECRET" not in done.stderr
