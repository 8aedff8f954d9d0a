"""Who may ask /admin/stats: with a key whoever brings it, without one programs of this machine only, if the file lets them."""

from pathlib import Path
from typing import Any

import pytest
import tomli_w

from hedgerow.errors import SettingError
from hedgerow.gateway.admin import may_administer
from hedgerow.gateway.client_keys import digest_of
from hedgerow.gateway.config import Config, load

HOST = ("host", "127.0.0.1:8700")


def config(folder: Path, listen: str = "127.0.0.1:0", *, keys: bool = False, **gateway: Any) -> Config:
    file: dict[str, Any] = {
        "gateway": {"listen": listen, **gateway},
        "target": [{"name": "t", "dialect": "openai", "base_url": "https://api.example/v1"}],
        "route": [{"path": "/*", "targets": ["t"]}],
        "client_key": [{"name": "c", "sha256": digest_of("hr-x")}] if keys else [],
    }
    (folder / "hedgerow.toml").write_text(tomli_w.dumps(file))
    return load(folder / "hedgerow.toml")


def scope(*headers: tuple[str, str], client: Any = ("127.0.0.1", 5), version: str = "1.1") -> dict[str, Any]:
    pairs = [(name.encode(), value.encode("latin-1")) for name, value in headers]
    return {"headers": pairs, "client": client, "http_version": version}


OPEN = [
    ({}, True),
    ({"listen": "[::1]:0"}, True),
    ({"listen": "localhost:0"}, True),
    ({"listen": "0.0.0.0:0"}, False),
    ({"listen": "127.0.0.1.example.com:0"}, False),
    ({"keys": True}, False),
    ({"keys": True, "admin": "loopback"}, True),
    ({"listen": "0.0.0.0:0", "admin": "loopback"}, True),
    ({"listen": "0.0.0.0:0", "keys": True, "admin": "loopback"}, True),
    ({"admin": "off"}, False),
    ({"admin": "loopback", "admin_key": "s3cret"}, False),
]


@pytest.mark.parametrize(("settings", "open_"), OPEN)
def test_without_a_key_the_file_says_whether_this_machine_may_ask(
    settings: dict[str, Any], open_: bool, tmp_path: Path
) -> None:
    assert may_administer(config(tmp_path, **settings), scope(HOST)) is open_


@pytest.mark.parametrize("admin", ["auto", "loopback", "off"])
@pytest.mark.parametrize("keys", [True, False])
def test_with_a_key_whoever_brings_it_may_ask_unless_it_is_off(admin: str, keys: bool, tmp_path: Path) -> None:
    settings = config(tmp_path, "0.0.0.0:0", keys=keys, admin=admin, admin_key="s3cret")
    far = {"client": ("203.0.113.7", 5)}
    right = ("authorization", "bearer s3cret")
    assert may_administer(settings, scope(("host", "gw.example"), ("via", "1.1 p"), right, **far)) is (admin != "off")
    for wrong in ("", "Bearer", "Bearer ", "Bearer s3cre", "s3cret", "Basic s3cret", "Bearer \xff"):
        assert not may_administer(settings, scope(HOST, ("authorization", wrong)))
    assert not may_administer(settings, scope(HOST))


WAYS = [
    "forwarded",
    "via",
    "x-forwarded-for",
    "x-forwarded-proto",
    "x-forwarded-host",
    "x-forwarded-port",
    "x-forwarded-server",
    "x-forwarded-prefix",
    "x-forwarded-client-cert",
    "x-forwarded",
    "x-real-ip",
    "x-client-ip",
    "x-clientip",
    "x-client-cert",
    "cf-connecting-ip",
    "cf-ray",
    "cf-visitor",
    "true-client-ip",
    "fastly-client-ip",
    "fastly-ssl",
    "x-cluster-client-ip",
    "x-original-url",
    "x-original-host",
    "x-original-forwarded-for",
    "x-envoy-external-address",
    "x-envoy-original-path",
    "x-azure-clientip",
    "x-arr-log-id",
    "x-appengine-user-ip",
    "fly-client-ip",
    "x-nf-client-connection-ip",
    "x-vercel-forwarded-for",
    "cloudfront-viewer-address",
    "x-amz-cf-id",
    "x-amzn-trace-id",
    "x-remote-addr",
    "x-remote-ip",
    "x-proxyuser-ip",
    "wl-proxy-client-ip",
    "proxy-connection",
    "tailscale-user-login",
    "ngrok-trace-id",
    "cdn-loop",
    "x-varnish",
    "x-true-client-ip",
    "x-sucuri-clientip",
    "x_forwarded_for",
    "X-Forwarded-For",
    "forwarded-for",
    "client-ip",
    "x-rewrite-url",
    "x-host",
    "x-scheme",
    "x-cloud-trace-context",
    "x-request-start",
]


@pytest.mark.parametrize("value", ["203.0.113.7", "127.0.0.1", ""])
@pytest.mark.parametrize("way", WAYS)
def test_what_somebody_has_passed_on_is_not_from_here(way: str, value: str, tmp_path: Path) -> None:
    for settings in ({}, {"keys": True, "admin": "loopback"}):
        assert not may_administer(config(tmp_path, **settings), scope(HOST, (way, value)))


@pytest.mark.parametrize(
    "asked",
    [
        scope(("host", "gateway.example")),
        scope(("host", "127.0.0.1.gateway.example")),
        scope(("host", "localhost.gateway.example:8700")),
        scope(("host", "[::ffff:192.0.2.1]:8700")),
        scope(("host", "")),
        scope(),
        scope(HOST, ("host", "gateway.example")),
        scope(("host", "gateway.example"), HOST),
        scope(HOST, client=("192.0.2.1", 5)),
        scope(HOST, client=("::ffff:192.0.2.1", 5)),
        scope(HOST, client=None),
        scope(HOST, version="1.0"),
        scope(HOST, ("origin", "https://page.example")),
        scope(HOST, ("origin", "null")),
        scope(HOST, ("sec-fetch-site", "cross-site")),
    ],
)
def test_what_is_not_certainly_from_here_is_refused(asked: dict[str, Any], tmp_path: Path) -> None:
    assert not may_administer(config(tmp_path, "0.0.0.0:0", admin="loopback"), asked)


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.0.2:8700", "localhost:8700", "[::1]:8700", "::1", "[::ffff:127.0.0.1]:1"]
)
@pytest.mark.parametrize("peer", ["127.0.0.1", "::1", "::ffff:127.0.0.1"])
def test_a_program_of_this_machine_is_answered(host: str, peer: str, tmp_path: Path) -> None:
    asked = scope(("host", host), ("user-agent", "curl/8"), ("accept", "*/*"), client=(peer, 5))
    assert may_administer(config(tmp_path), asked)


@pytest.mark.parametrize("admin", ["on", "", True, 1, ["loopback"]])
def test_other_words_are_refused(admin: object, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"gateway\.admin"):
        config(tmp_path, admin=admin)
