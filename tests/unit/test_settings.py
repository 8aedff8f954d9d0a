"""Settings: what a user may write, and what an impossible value is answered with."""

from pathlib import Path

import pytest

from hedgerow import Policy, SettingError, Target


def test_the_default_policy_is_hedging_inside_five_percent() -> None:
    policy = Policy()
    assert (policy.mode, policy.trigger, policy.delay) == ("act", "lag", "auto")
    assert (policy.budget, policy.max_backups, policy.upstream_stream) == (0.05, 2, False)
    assert policy.share == 0.05


@pytest.mark.parametrize(
    ("name", "value", "kept"),
    [
        ("budget", "5%", 0.05),
        ("budget", "off", "off"),
        ("budget_requests", "10 %", 0.1),
        ("timeout_s", "2s", 2.0),
        ("timeout_s", None, None),
        ("delay", "200ms", "200ms"),
        ("delay", 0, 0),
        ("window", "7d", "7d"),
        ("max_backups", 0, 0),
    ],
)
def test_values_are_read_as_users_write_them(name: str, value: object, kept: object) -> None:
    assert getattr(Policy(**{name: value}), name) == kept  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("mode", "watch", "act, observe"),
        ("trigger", "p95", "lag, first_token, response, off"),
        ("delay", -1, "seconds ≥ 0"),
        ("delay", "p0", "p95"),
        ("delay", True, "seconds"),
        ("window", 5, "from 20"),
        ("budget", 1.5, "0 to 1"),
        ("budget", float("nan"), "0 to 1"),
        ("max_backups", 5, "0 to 4"),
        ("max_backups", True, "0 to 4"),
        ("timeout_s", 0, "> 0"),
        ("first_token_timeout_s", "soon", "seconds"),
    ],
)
def test_an_impossible_value_is_named_with_the_range(name: str, value: object, allowed: str) -> None:
    with pytest.raises(SettingError) as raised:
        Policy(**{name: value})  # type: ignore[arg-type]
    assert name in str(raised.value)
    assert repr(value) in str(raised.value)
    assert allowed in str(raised.value)


def test_time_outs_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(SettingError, match="less than timeout_s = 2"):
        Policy(timeout_s=2, attempt_timeout_s=2)
    with pytest.raises(SettingError, match="budget_requests"):
        Policy(budget="off", budget_requests=0.1)


def test_every_setting_has_a_row_that_explains_it() -> None:
    for row in Policy.table():
        assert row.allowed
        assert row.meaning
        assert row.read(row.default, row) == row.default


def test_a_policy_is_loaded_from_toml(tmp_path: Path) -> None:
    file = tmp_path / "hedgerow.toml"
    file.write_text('[policy.interactive]\nbudget = "2%"\ntrigger = "response"\n[policy.batch]\ntrigger = "off"\n')
    assert Policy.load(file, "interactive") == Policy(budget=0.02, trigger="response")
    with pytest.raises(SettingError, match="interactive, batch"):
        Policy.load(file)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("[policy.a]\nbudget = 7\n", ":2: budget"),
        ("# x\n[policy.a]\n\nbudgte = 0.1\n", ":4: budgte"),
        ("[other]\nbudget = 1\n[policy.a]\ntimeout_s = 1\nattempt_timeout_s = 3\n", ":5: attempt_timeout_s"),
        ("[policy.a\n", ":1: policy"),
    ],
)
def test_a_wrong_file_is_answered_with_its_name_and_line(tmp_path: Path, text: str, place: str) -> None:
    file = tmp_path / "hedgerow.toml"
    file.write_text(text)
    with pytest.raises(SettingError) as raised:
        Policy.load(file, "a")
    assert f"{file}{place}" in str(raised.value)


def test_a_targets_key_is_never_printed() -> None:
    assert "secret" not in repr(Target(base_url="https://eu.example/v1", api_key="secret"))


@pytest.mark.parametrize("options", [{}, {"base_url": "eu.example"}, {"base_url": ""}])
def test_a_target_that_changes_nothing_or_is_no_url_is_refused(options: dict[str, str]) -> None:
    with pytest.raises(SettingError):
        Target(**options)  # type: ignore[arg-type]


def test_a_policy_of_a_gateways_file_is_loaded_as_well(tmp_path: Path) -> None:
    file = tmp_path / "hedgerow.toml"
    file.write_text('[policy.interactive]\nbudget = 0.02\nrescue = "off"\n')
    assert Policy.load(file, "interactive") == Policy(budget=0.02)
    file.write_text('[policy.interactive]\nbudget = 0.02\nrescue = "prefix"\n')
    with pytest.raises(SettingError, match=r"hedgerow\.toml:3: rescue = 'prefix'"):
        Policy.load(file, "interactive")
