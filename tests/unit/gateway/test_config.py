"""hedgerow.toml: what it comes to, and that each complaint names file, line, value and what is allowed."""

from pathlib import Path

import pytest

from hedgerow.errors import SettingError
from hedgerow.gateway.config import load

GOOD = """\
[gateway]
listen = "127.0.0.1:0"
max_body = "5MB"

[[target]]
name = "openai"
dialect = "openai"
base_url = "https://api.openai.com/v1"
api_key = "env:THEIR_KEY"

[[target]]
name = "openai-priority"
like = "openai"
set = { service_tier = "priority" }

[[route]]
path = "/v1/chat/completions"
model = "gpt-*"
targets = ["openai", "openai-priority"]
policy = "interactive"

[policy.interactive]
budget = "5%"
rescue = "off"

[slo.interactive]
full_response_p99_s = 7.0

[[price]]
model = "my-model"
input = 0.4
output = 1.6

[[client_key]]
name = "ios-app"
sha256 = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
requests_per_minute = 600
"""


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("THEIR_KEY", "sk-theirs")

    def write(text: str = GOOD) -> Path:
        path = tmp_path / "hedgerow.toml"
        path.write_text(text)
        return path

    return write


def test_what_a_good_file_comes_to(written) -> None:
    config = load(written())
    assert (config.host, config.port, config.only_here, config.gateway.max_body) == ("127.0.0.1", 0, True, 5_000_000)
    plain, priority = config.targets["openai"], config.targets["openai-priority"]
    assert (plain.api_key, priority.api_key, priority.base_url) == ("sk-theirs", "sk-theirs", plain.base_url)
    assert (plain.set, priority.set) == ({}, {"service_tier": "priority"})
    policy = config.policies["interactive"]
    assert (policy.share, policy.control_share) == (0.05, 0.02)
    assert config.slos["interactive"].full_response_p99_s == 7.0
    assert config.prices[0].output == 1.6
    assert config.warnings == ()
    assert "sk-theirs" not in repr(config)


def test_a_route_without_a_policy_has_the_default_one(written) -> None:
    config = load(written(GOOD.replace('policy = "interactive"\n', "")))
    assert config.routes[0].policy == "default"
    assert config.policies["default"].share == 0.05


WRONG = {
    "a key that does not exist": ('max_body = "5MB"', 'max_bodies = "5MB"', 3, "max_bodies", "spelling"),
    "a size that is none": ('max_body = "5MB"', 'max_body = "big"', 3, "max_body", "20MB"),
    "a dialect that does not exist": ('dialect = "openai"', 'dialect = "opneai"', 7, "'opneai'", "'anthropic'"),
    "an address that is none": (
        '"https://api.openai.com/v1"',
        '"api.openai.com"',
        8,
        "api.openai.com",
        "http or https",
    ),
    "an address with a key in it": (
        "api.openai.com/v1",
        "api.openai.com/v1?key=x",
        8,
        "it has a query",
        "without query",
    ),
    "a variable that is not set": ("env:THEIR_KEY", "env:NOBODYS_KEY", 9, "NOBODYS_KEY", "export NOBODYS_KEY"),
    "like nothing": ('like = "openai"', 'like = "other"', 13, "'other'", "another target (openai)"),
    "like itself": ('like = "openai"', 'like = "openai-priority"', 13, "openai-priority", "circle"),
    "a second of the same name": ('name = "openai-priority"', 'name = "openai"', 12, "'openai'", "no other has"),
    "a target that does not exist": ('"openai-priority"]', '"elsewhere"]', 19, "elsewhere", "openai-priority"),
    "a policy that does not exist": ('policy = "interactive"', 'policy = "other"', 20, "'other'", "interactive"),
    "a setting that does not exist": ('budget = "5%"', 'bugdet = "5%"', 23, "bugdet", "spelling"),
    "a share of more than 1": ('budget = "5%"', "budget = 5", 23, "budget = 5", "0 to 1"),
    "a rescue that is not there": ('rescue = "off"', 'rescue = "prefix"', 24, "prefix", "off"),
    "a limit below 0": ("full_response_p99_s = 7.0", "full_response_p99_s = -1", 27, "-1", "greater than 0"),
    "a price below 0": ("input = 0.4", "input = -0.4", 31, "-0.4", "greater than or equal to 0"),
    "a price without output": ("output = 1.6\n", "", 29, "price.output", "must be given"),
    "a hash that is none": ("0123456789abcdef" * 4, "secret", 36, "(a text, not shown)", "[0-9a-f]{64}"),
    "a port that is none": ("127.0.0.1:0", "127.0.0.1", 2, "127.0.0.1", "HOST:PORT"),
    "too many workers": ('max_body = "5MB"', "workers = 0", 3, "workers = 0", "greater than or equal to 1"),
    "no toml": ("[[price]]", "[[price", 29, "Expected ']]'", "TOML"),
}


@pytest.mark.parametrize(("old", "new", "line", "value", "allowed"), WRONG.values(), ids=WRONG)
def test_a_complaint_names_file_line_value_and_what_is_allowed(
    written, old: str, new: str, line: int, value: str, allowed: str
) -> None:
    assert old in GOOD
    path = written(GOOD.replace(old, new, 1))
    with pytest.raises(SettingError) as raised:
        load(path)
    said = str(raised.value)
    assert str(path) in said
    assert f"{path}:{line}:" in said
    assert value in said
    assert allowed in said


def test_a_clients_key_never_goes_to_a_foreign_address(written) -> None:
    text = GOOD.replace('"env:THEIR_KEY"', '"client"')
    assert load(written(text)).targets["openai-priority"].passes_keys_through
    foreign = 'like = "openai"\nbase_url = "https://elsewhere.example/v1"'
    with pytest.raises(SettingError, match=r"at https://api\.openai\.com/v1 only"):
        load(written(text.replace('like = "openai"', foreign)))


def test_backups_speak_the_dialect_of_their_primary(written) -> None:
    text = GOOD.replace('like = "openai"\n', 'dialect = "anthropic"\nbase_url = "https://api.anthropic.com"\n')
    with pytest.raises(SettingError, match="one dialect: openai speaks openai"):
        load(written(text))


def test_open_doors_and_written_keys_are_warned_of(written) -> None:
    text = GOOD.replace("127.0.0.1:0", "0.0.0.0:8700").replace("env:THEIR_KEY", "sk-written-out")
    keyless = text[: text.index("[[client_key]]")]
    first, second, *_ = load(written(keyless)).warnings
    assert "no [[client_key]]" in first
    assert "hedgerow.toml:2" in first
    assert "written out" in second
    assert all("sk-written" not in warning for warning in load(written(keyless)).warnings)


def test_a_segment_that_is_signed_needs_a_secret(written, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEGMENT_SECRET", "s3cret")
    assert load(written(GOOD + 'trust_segment = "signed"\nsegment_secret = "env:SEGMENT_SECRET"\n'))
    with pytest.raises(SettingError, match="segment_secret"):
        load(written(GOOD + 'trust_segment = "signed"\n'))


def test_what_this_version_does_not_have_is_refused_not_ignored(written) -> None:
    with pytest.raises(SettingError, match="shared_state"):
        load(written(GOOD.replace("[[target]]", 'shared_state = "redis://localhost"\n[[target]]', 1)))
