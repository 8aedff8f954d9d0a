"""Wherever in hedgerow.toml a secret stands, by mistake or rightly: no message, repr or traceback shows it."""

import json
import os
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from hedgerow.cli.check import resolved_of
from hedgerow.errors import SettingError
from hedgerow.gateway.config import Config, load
from hedgerow.gateway.sections import (
    ClientKeySection,
    GatewaySection,
    PriceSection,
    RouteSection,
    SloSection,
    TargetSection,
)
from hedgerow.record.store_urls import store_of
from hedgerow.settings import Policy, Target

MARK = "SECRETSECRET"
SECRETS = {
    "a key": f"sk-{MARK}",
    "one of a gateway": f"hr-{MARK}-x_9",
    "one of Google": f"AIzaSy{MARK}9tSrke72PouQ",
    "a word and a key": f"Bearer {MARK}",
    "in an address": f"https://user:{MARK}@host.example/v1?key={MARK}#{MARK}",
    "of a database": f"postgres://user:{MARK}@host.example/db",
    "in its own words": f"password={MARK}",
}
NUMBER = 918273645546372819
PLACES: dict[tuple[str, ...], type] = {
    ("gateway",): GatewaySection,
    ("target",): TargetSection,
    ("route",): RouteSection,
    ("slo", "s"): SloSection,
    ("price",): PriceSection,
    ("client_key",): ClientKeySection,
}


def good() -> dict[str, Any]:
    return {
        "gateway": {"listen": "127.0.0.1:0", "admin_key": f"admin-{MARK}"},
        "target": [
            {
                "name": "t",
                "dialect": "openai",
                "base_url": "https://api.example/v1",
                "api_key": f"sk-{MARK}",
                "set": {"model": "gpt-4o", "user": MARK, "deep": {"token": MARK, "effort": "low", "n": 1}},
            }
        ],
        "route": [{"path": "/v1/*", "targets": ["t"], "policy": "p"}],
        "policy": {"p": {"budget": 0.1}},
        "slo": {"s": {"extra_cost": 0.1}},
        "price": [{"model": "m", "input": 1.0, "output": 1.0}],
        "client_key": [{"name": "c", "sha256": "0" * 64, "trust_segment": "signed", "segment_secret": MARK}],
    }


def odd_files() -> Iterator[tuple[str, dict[str, Any]]]:
    """A good file with each of its keys, and one that it does not know, replaced by each secret, bare and wrapped."""
    for place, section in PLACES.items():
        for name in (*section.model_fields, "api_kye", f"sk-{MARK}", MARK):  # type: ignore[attr-defined]
            yield from (_replaced((*place, name), odd) for odd in odd_values())
    for name in (*(row.name for row in Policy.table()), "rescue", "api_kye", MARK):
        yield from (_replaced(("policy", "p", name), odd) for odd in odd_values())
    for name in ("gateway", "target", "route", "policy", "slo", "price", "client_key", f"sk-{MARK}"):
        yield from (_replaced((name,), odd) for odd in odd_values())
    yield from (_replaced(("policy", f"sk-{MARK}"), odd) for odd in odd_values())
    yield from (_replaced(("slo", MARK), odd) for odd in odd_values())


def odd_values() -> Iterator[Any]:
    for secret in SECRETS.values():
        yield from (secret, [secret], {"x": secret}, {secret: 1}, [{secret: secret}])
    yield from (f"env:{SECRETS['a key']}", f"env:{MARK}_9tSrke72PouQMnMXa7e", NUMBER, [NUMBER], -NUMBER)


def _replaced(place: tuple[str, ...], odd: Any) -> tuple[str, dict[str, Any]]:
    file: Any = good()
    within = file
    for step in place[:-1]:
        within = within[step][0] if isinstance(within[step], list) else within[step]
    within[place[-1]] = odd
    return f"{place} = {odd!r}", file


def told_by(path: Path) -> str:
    """All that anybody is told of a file: as an error, in its traceback and what led to it, or as what it comes to."""
    try:
        config = load(path)
    except SettingError as error:
        said, link = ["".join(traceback.format_exception(error))], error
        while link is not None:
            said += [str(link), repr(link), repr(getattr(link, "value", None))]
            link = link.__cause__ or link.__context__  # type: ignore[assignment]
        return "\n".join(said)
    return told_of(config)


def told_of(config: Config) -> str:
    shown = resolved_of(config)
    return "\n".join([json.dumps(shown), tomli_w.dumps({"x": repr(shown)}), repr(config), *config.warnings])


def test_no_secret_is_told_wherever_it_stands(tmp_path: Path) -> None:
    path, seen = tmp_path / "hedgerow.toml", 0
    for what, file in odd_files():
        path.write_text(tomli_w.dumps(file))
        told = told_by(path)
        assert MARK not in told, what
        assert str(NUMBER) not in told, what
        seen += 1
    assert seen > 2000


LINES = [
    'api_key = "sk-{0}',
    "api_key = sk-{0}",
    "api_key = '{0}' x",
    'api_key = "\\q{0}"',
    'api_key "sk-{0}"',
    "sk-{0}",
    "sk-{0} = 1\nsk-{0} = 2",
    "{0} = 1\n[target.{0}]",
    'set = {{ "{0}" = 1, "{0}" = 2 }}',
    'set = {{ a = "{0}"',
    'set = ["{0}"',
    '[[{0}"',
    'api_key = """{0}',
    'api_key = "{0}\x01"',
    "a.b = 1\na.b.{0} = 2",
    "{0}é = 1",
    "api_key = 1979-{0}",
    "api_key = 0x{0}",
]


@pytest.mark.parametrize("line", LINES)
def test_a_line_that_is_no_toml_is_named_and_not_shown(line: str, tmp_path: Path) -> None:
    path = tmp_path / "hedgerow.toml"
    path.write_text("[[target]]\n" + line.format(MARK) + "\n")
    with pytest.raises(SettingError) as raised:
        load(path)
    told = "".join(traceback.format_exception(raised.value))
    assert MARK not in told
    assert raised.value.__context__ is None
    assert f"{path}:" in str(raised.value)
    assert "\n" not in str(raised.value)


UNREADABLE: dict[str, tuple[bytes, str]] = {
    "another editor's": ("# one\n# Gerät\n".encode("latin-1") + f'api_key = "{MARK}"'.encode(), ":2:"),
    "two bytes a character": (f'api_key = "{MARK}"'.encode("utf-16"), ":1:"),
    "half a character": (b"# one\n\xed\xa0\x80 " + MARK.encode(), ":2:"),
    "nested deeply": (b"x = " + b"[" * 100_000, ": file"),
    "a long number": (b"x = " + b"9" * 5000, ": file"),
    "a NUL": (b"x = 1\n\x00" + MARK.encode(), ":2:"),
    "an archive": (b"\x1f\x8b\x08\x00" + MARK.encode(), ":1:"),
}


@pytest.mark.parametrize(("data", "place"), UNREADABLE.values(), ids=UNREADABLE)
def test_a_file_that_cannot_be_read_is_said_in_a_line_that_names_it(data: bytes, place: str, tmp_path: Path) -> None:
    path = tmp_path / "hedgerow.toml"
    path.write_bytes(data)
    with pytest.raises(SettingError) as raised:
        load(path)
    assert f"{path}{place}" in str(raised.value)
    assert "\n" not in str(raised.value)
    assert MARK not in str(raised.value)


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path) -> None:
    path = tmp_path / "hedgerow.toml"
    path.write_bytes(b"\xef\xbb\xbf" + tomli_w.dumps(good()).replace("\n", "\r\n").encode())
    assert load(path).targets["t"].api_key == f"sk-{MARK}"


EMPTY = ["", " ", "\t", "env:", "env:UNSET_BY_ALL", "env:SET_BUT_EMPTY", "env:SET_TO_SPACE", "env: ", "env:a b"]


@pytest.mark.parametrize("empty", EMPTY)
@pytest.mark.parametrize("place", [("gateway", "admin_key"), ("target", "api_key"), ("client_key", "segment_secret")])
@pytest.mark.parametrize("trust", ["off", "signed"])
def test_an_empty_secret_is_refused_by_its_name(
    place: tuple[str, ...], empty: str, trust: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SET_BUT_EMPTY", "")
    monkeypatch.setenv("SET_TO_SPACE", " \t")
    _, file = _replaced(place, empty)
    file["client_key"][0]["trust_segment"] = trust
    path = tmp_path / "hedgerow.toml"
    path.write_text(tomli_w.dumps(file))
    with pytest.raises(SettingError, match=r"hedgerow\.toml:\d+: " + r"\.".join(place)) as raised:
        load(path)
    variable = empty.removeprefix("env:")
    assert variable not in ("SET_BUT_EMPTY", "SET_TO_SPACE", "UNSET_BY_ALL") or variable in str(raised.value)


def test_a_local_server_without_a_key_leaves_it_out(tmp_path: Path) -> None:
    file = good()
    del file["target"][0]["api_key"]
    path = tmp_path / "hedgerow.toml"
    path.write_text(tomli_w.dumps(file))
    assert load(path).targets["t"].api_key is None


@pytest.mark.parametrize(
    ("base_url", "api_key", "warned"),
    [
        ("http://provider.example/v1", "their-key", True),
        ("http://10.0.0.1:8000/v1", "client", True),
        ("http://[2001:db8::1]/v1", "their-key", True),
        ("http://127.0.0.1.provider.example/v1", "their-key", True),
        ("http://provider.example/v1", None, False),
        ("https://provider.example/v1", "their-key", False),
        ("http://127.0.0.1:8000/v1", "their-key", False),
        ("http://[::1]:8000/v1", "their-key", False),
        ("http://localhost:8000/v1", "their-key", False),
    ],
)
def test_a_key_that_goes_to_another_machine_in_plain_text_is_warned_of(
    base_url: str, api_key: str | None, warned: bool, tmp_path: Path
) -> None:
    file = good()
    file["target"][0] |= {"base_url": base_url, "api_key": api_key or "x"}
    if api_key is None:
        del file["target"][0]["api_key"]
    path = tmp_path / "hedgerow.toml"
    path.write_text(tomli_w.dumps(file))
    said = [warning for warning in load(path).warnings if "plain text" in warning]
    assert bool(said) is warned
    assert all(f"{path}:8:" in each or f"{path}:" in each for each in said)


@pytest.mark.skipif(sys.platform == "win32", reason="the bits of a file's mode are POSIX's")
@pytest.mark.parametrize(
    ("mode", "where", "warned"),
    [
        (0o644, "api_key", True),
        (0o604, "admin_key", True),
        (0o666, "segment_secret", True),
        (0o640, "api_key", False),
        (0o600, "api_key", False),
        (0o644, "client", False),
        (0o644, None, False),
    ],
)
def test_a_file_with_a_key_in_it_that_all_can_read_is_warned_of(
    mode: int, where: str | None, warned: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEPT_ELSEWHERE", "a key")
    file = good()
    for holder, name in (
        (file["gateway"], "admin_key"),
        (file["target"][0], "api_key"),
        (file["client_key"][0], "segment_secret"),
    ):
        holder[name] = "written out" if name == where else "env:KEPT_ELSEWHERE"
    if where == "client":
        file["target"][0]["api_key"] = "client"
    path = tmp_path / "hedgerow.toml"
    path.write_text(tomli_w.dumps(file))
    os.chmod(path, mode)
    said = [warning for warning in load(path).warnings if "chmod 600" in warning]
    assert len(said) == warned
    assert all(str(path) in each and "written out" not in each for each in said)


@pytest.mark.parametrize(
    "address", [SECRETS["of a database"], f"redis://:{MARK}@h:1/0", f"sqlite://{MARK}@h/x", f"http://[{MARK}"]
)
def test_an_address_of_a_store_shows_no_more_than_its_scheme(address: str, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"sqlite:///hedgerow\.db") as raised:
        store_of(address)
    assert MARK not in "".join(traceback.format_exception(raised.value))
    _, file = _replaced(("gateway", "events"), address)
    (tmp_path / "hedgerow.toml").write_text(tomli_w.dumps(file))
    with pytest.raises(SettingError, match=r"hedgerow\.toml:2: events|hedgerow\.toml:\d+: events"):
        load(tmp_path / "hedgerow.toml")


@pytest.mark.parametrize("url", [f"ftp://u:{MARK}@h/v1", f"https://u:{MARK}@h/v1?key={MARK}#{MARK}", f"//{MARK}"])
def test_a_targets_address_in_code_shows_neither_user_nor_query(url: str) -> None:
    with pytest.raises(SettingError) as raised:
        Target(base_url=url)
    assert MARK not in "".join(traceback.format_exception(raised.value)) + repr(raised.value.value)
    assert MARK not in repr(Target(base_url=f"https://u:{MARK}@h/v1?key={MARK}", api_key=MARK, set={"key": MARK}))


def test_what_is_harmless_is_shown(tmp_path: Path) -> None:
    (tmp_path / "hedgerow.toml").write_text(tomli_w.dumps(good()))
    (target,) = resolved_of(load(tmp_path / "hedgerow.toml"))["target"]
    assert target["base_url"] == "https://api.example/v1"
    hidden = "(hidden)"
    assert target["set"] == {"model": "gpt-4o", "user": hidden, "deep": {"token": hidden, "effort": "low", "n": 1}}
