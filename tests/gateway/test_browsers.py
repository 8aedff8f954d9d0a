"""Browsers: preflights, what pages may read, and which pages a gateway without client keys refuses."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
import tomli_w
from tests.gateway.raw_client import CHAT
from tests.gateway.running import Running, config_of

from hedgerow.errors import SettingError
from hedgerow.gateway.client_keys import digest_of
from hedgerow.gateway.config import load
from hedgerow.testing.process import SandboxProcess

Start = Callable[..., Awaitable[Running]]
PAGE = "https://app.example"
PATHS = ["/v1/chat/completions", "/v1/messages", "/v1beta/models/g:generateContent"]
BODIES: dict[str, Any] = {
    PATHS[1]: CHAT | {"max_tokens": 9},
    PATHS[2]: {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]},
}
KEYS: list[dict[str, Any]] = [{"name": "web", "sha256": digest_of("hr-secret")}]
PREFLIGHT = {
    "origin": PAGE,
    "access-control-request-method": "POST",
    "access-control-request-headers": "authorization,content-type,x-stainless-retry-count",
}


def gateway_with(**settings: Any) -> dict[str, Any]:
    return {"listen": "127.0.0.1:0", **settings}


async def ask(gateway: Running, path: str = PATHS[0], method: str = "POST", **headers: str) -> httpx2.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    async with httpx2.AsyncClient(timeout=60.0) as client:
        body = {"json": BODIES.get(path, CHAT)} if method == "POST" else {}
        return await client.request(method, gateway.url + path, headers=named, **body)


@pytest.mark.parametrize("path", PATHS)
async def test_a_preflight_is_answered_without_a_key_and_goes_no_further(start: Start, path: str) -> None:
    gateway = await start(gateway=gateway_with(cors_origins=[PAGE]), client_key=KEYS)
    async with httpx2.AsyncClient() as client:
        got = await client.options(gateway.url + path, headers=PREFLIGHT)
        other = await client.options(gateway.url + path, headers=PREFLIGHT | {"origin": "https://app.example.evil"})
    assert got.status_code == 204
    assert got.headers["access-control-allow-origin"] == PAGE
    assert got.headers["access-control-allow-headers"] == PREFLIGHT["access-control-request-headers"]
    assert "POST" in got.headers["access-control-allow-methods"]
    assert got.headers["vary"] == "origin"
    assert other.status_code == 403
    assert "access-control-allow-origin" not in other.headers
    assert not list(gateway.hedger.events)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("key", ["hr-secret", "wrong"])
async def test_answers_and_errors_can_be_read_by_the_page(start: Start, path: str, key: str) -> None:
    gateway = await start(gateway=gateway_with(cors_origins=[PAGE]), client_key=KEYS)
    got = await ask(gateway, path, origin=PAGE, x_api_key=key)
    assert got.status_code == (200 if key == "hr-secret" else 401)
    assert got.headers["access-control-allow-origin"] == PAGE
    assert "hedgerow-id" in got.headers["access-control-expose-headers"]
    other = await ask(gateway, path, origin="https://other.example", x_api_key=key)
    assert "access-control-allow-origin" not in other.headers


async def test_any_page_may_call_with_a_key_where_the_file_says_so(start: Start) -> None:
    gateway = await start(gateway=gateway_with(cors_origins=["*"]), client_key=KEYS)
    got = await ask(gateway, origin="https://anywhere.example", x_api_key="hr-secret")
    assert (got.status_code, got.headers["access-control-allow-origin"]) == (200, "*")


async def test_without_the_setting_no_answer_speaks_of_origins(start: Start) -> None:
    gateway = await start(client_key=KEYS)
    got = await ask(gateway, origin=PAGE, x_api_key="hr-secret")
    assert got.status_code == 200
    assert not [name for name in got.headers if name.startswith("access-control") or name == "vary"]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"host": "localhost"}, 200),
        ({"host": "[::1]:8700"}, 200),
        ({"host": "gateway.lan:8700"}, 200),
        ({"host": "GATEWAY.lan"}, 200),
        ({"host": "rebound.example"}, 421),
        ({"host": "localhost.evil.example"}, 421),
        ({"host": "10.0.0.1"}, 421),
        ({"origin": PAGE}, 200),
        ({"origin": "https://other.example"}, 403),
        ({"origin": "http://app.example"}, 403),
        ({"origin": "null"}, 403),
        ({"sec_fetch_site": "cross-site"}, 403),
        ({"sec_fetch_site": "same-origin"}, 200),
        ({"sec_fetch_site": "none"}, 200),
    ],
)
async def test_a_gateway_without_keys_on_the_loopback_is_for_programs(
    start: Start, headers: dict[str, str], status: int
) -> None:
    gateway = await start(gateway=gateway_with(cors_origins=[PAGE], hosts=["gateway.lan"]))
    got = await ask(gateway, **headers)
    assert got.status_code == status, got.text
    if status == 421:
        assert "hosts in [gateway]" in got.text
    assert len(list(gateway.hedger.events)) == (status == 200)


@pytest.mark.parametrize(
    ("origin", "keys"),
    [
        ("https://app.example/", True),
        ("https://app.example/page", True),
        ("app.example", True),
        ("https://*.example", True),
        ("https://App.example", True),
        ("null", True),
        ("", True),
        ("*", False),
    ],
)
def test_what_is_no_origin_is_refused_with_its_line(
    hedgerow_sandbox: SandboxProcess, tmp_path: Path, origin: str, keys: bool
) -> None:
    tables = config_of(hedgerow_sandbox, gateway=gateway_with(cors_origins=[origin]))
    file = tmp_path / "hedgerow.toml"
    file.write_text(tomli_w.dumps(tables | ({"client_key": KEYS} if keys else {})))
    with pytest.raises(SettingError, match=r"hedgerow\.toml:\d+.*cors_origins"):
        load(file)
