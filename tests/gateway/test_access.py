"""Who may call, how often and for how much, and what a request may say of itself."""

import asyncio
import hmac
import time
from collections.abc import Callable
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.cases.support import JumpingClock
from tests.gateway.running import Running
from tests.sdk.racing import QUICK, eventually, outcomes, scripted

from hedgerow.clock import SystemClock
from hedgerow.gateway.client_keys import Keyring, digest_of
from hedgerow.gateway.sections import ClientKeySection
from hedgerow.record.ids import uuid7
from hedgerow.record.sqlite_store import SqliteStore
from hedgerow.testing.process import SandboxProcess
from hedgerow.values.event import Event

Start = Callable[..., Any]

CHAT = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
PATHS = {"openai": "/v1/chat/completions", "anthropic": "/v1/messages", "gemini": "/v1beta/models/g:generateContent"}
PLACES = ["authorization", "x-api-key", "api-key", "x-goog-api-key", "hedgerow-key", "?key="]


def key(name: str = "ios-app", secret: str = "hr-secret", **fields: Any) -> dict[str, Any]:
    return {"name": name, "sha256": digest_of(secret), **fields}


async def post(gateway: Running, path: str = PATHS["openai"], body: Any = None, **headers: str) -> httpx2.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    async with httpx2.AsyncClient(timeout=30.0) as client:
        return await client.post(gateway.url + path, json=CHAT if body is None else body, headers=named)


@pytest.mark.parametrize("place", PLACES)
async def test_a_client_key_is_taken_wherever_an_sdk_puts_it(start: Start, place: str) -> None:
    gateway = await start(client_key=[key("web", "hr-other"), key()])
    if place == "?key=":
        got = await post(gateway, PATHS["openai"] + "?key=hr-secret")
    else:
        got = await post(gateway, **{place: "bearer hr-secret" if place == "authorization" else "hr-secret"})
    assert got.status_code == 200
    assert next(iter(gateway.hedger.events)).client_key == "ios-app"


@pytest.mark.parametrize("dialect", PATHS)
@pytest.mark.parametrize("presented", [{}, {"authorization": "Bearer hr-wrong"}, {"authorization": "hr-secret"}])
async def test_nobody_else_is_let_in_and_hears_so_in_the_clients_dialect(
    start: Start, hedgerow_sandbox: SandboxProcess, dialect: str, presented: dict[str, str]
) -> None:
    gateway = await start(client_key=[key()])
    got = await post(gateway, PATHS[dialect], **presented)
    assert got.status_code == 401
    error = got.json()["error"]
    field, value = {
        "openai": ("code", "invalid_api_key"),
        "anthropic": ("type", "authentication_error"),
        "gemini": ("status", "UNAUTHENTICATED"),
    }[dialect]
    assert error[field] == value
    assert "client key" in error["message"]
    assert hedgerow_sandbox.stats()["started"] == 0


async def test_requests_per_minute_are_counted_and_refilled(start: Start) -> None:
    clock = JumpingClock()
    gateway = await start(client_key=[key(requests_per_minute=3), key("web", "hr-web")], clock=clock)
    statuses = [(await post(gateway, authorization="Bearer hr-secret")).status_code for _ in range(4)]
    assert statuses == [200, 200, 200, 429]
    refused = await post(gateway, authorization="Bearer hr-secret")
    assert 1 <= int(refused.headers["retry-after"]) <= 20
    assert "3 requests per minute" in refused.json()["error"]["message"]
    assert (await post(gateway, authorization="Bearer hr-web")).status_code == 200
    clock.jump(21.0)
    assert (await post(gateway, authorization="Bearer hr-secret")).status_code == 200


async def test_a_day_costs_no_more_than_its_cap_and_the_sdk_is_told_not_to_try_again(start: Start) -> None:
    prices = [{"model": "m", "input": 1000.0, "output": 1000.0}]
    gateway = await start(client_key=[key(usd_per_day=0.02)], price=prices)
    script = scripted("cap", {**QUICK, "usage": {"input_tokens": 10, "output_tokens": 15}})
    assert (await post(gateway, authorization="Bearer hr-secret", **script)).status_code == 200
    await eventually(lambda: len(list(gateway.hedger.events)) == 1)
    refused = await post(gateway, authorization="Bearer hr-secret")
    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "insufficient_quota")
    assert refused.headers["x-should-retry"] == "false"
    assert 0 < int(refused.headers["retry-after"]) <= 86_400


async def test_what_a_key_has_spent_today_outlives_the_gateway(start: Start, tmp_path: Path) -> None:
    prices = [{"model": "m", "input": 1000.0, "output": 1000.0}]
    settings = {"listen": "127.0.0.1:0", "events": f"sqlite:///{tmp_path}/events.db"}
    script = scripted("cap", {**QUICK, "usage": {"input_tokens": 10, "output_tokens": 15}})
    keys, clock = [key(usd_per_day=0.04), key("web", "hr-web", usd_per_day=0.04)], JumpingClock()
    for answered in (True, True, False):
        gateway = await start(client_key=keys, price=prices, gateway=settings, clock=clock)
        got = await post(gateway, authorization="Bearer hr-secret", **script)
        assert (got.status_code == 200) is answered
        await gateway.close()
    gateway = await start(client_key=keys, price=prices, gateway=settings, clock=clock)
    assert (await post(gateway, authorization="Bearer hr-web")).status_code == 200
    assert (await post(gateway, authorization="Bearer hr-secret")).status_code == 429
    clock.jump(86_400.0)
    assert (await post(gateway, authorization="Bearer hr-secret")).status_code == 200


def test_each_worker_remembers_its_share_of_what_all_have_spent(tmp_path: Path) -> None:
    clock, store = SystemClock(), SqliteStore(tmp_path / "events.db")
    at = clock.utc()
    for client_key, usd, when in [
        ("app", 0.03, at),
        ("app", 0.03, at),
        ("web", 1.0, at),
        ("app", 9.0, at - timedelta(days=1)),
    ]:
        told: dict[str, Any] = {"id": uuid7(when), "at": when, "client_key": client_key, "cost_high_usd": usd}
        store.append(Event(dialect="openai_chat", outcome="answered", **told))
    store.flush()
    sections = [ClientKeySection(name="app", sha256=digest_of("hr-app"), usd_per_day=cap) for cap in (0.061, 0.059)]
    for section, admitted in zip(sections, (True, False), strict=True):
        keyring = Keyring(share=0.5, clock=clock)
        keyring.renew([section])
        keyring.remember(store)
        owner = keyring.owner_of("hr-app")
        assert owner is not None
        assert (owner.admit() is None) is admitted
    store.close()


@pytest.mark.parametrize(
    ("trust", "said", "segment"),
    [
        ("off", "pro", "free"),
        ("header", "pro", "pro"),
        ("header", None, "free"),
        ("signed", "pro", "free"),
        ("signed", "right", "pro"),
        ("signed", "expired", "free"),
        ("signed", "forged", "free"),
    ],
)
async def test_a_segment_is_believed_as_far_as_the_file_says(
    start: Start, trust: str, said: str | None, segment: str
) -> None:
    def signed(expiry: float, secret: str = "s3cret") -> str:
        text = f"pro.{int(expiry)}"
        return f"{text}.{hmac.new(secret.encode(), text.encode(), sha256).hexdigest()}"

    now = time.time()
    words = {"right": signed(now + 60), "expired": signed(now - 60), "forged": signed(now + 60, "guess")}
    gateway = await start(client_key=[key(segment="free", trust_segment=trust, segment_secret="s3cret")])
    headers = {} if said is None else {"hedgerow_segment": words.get(said, said)}
    await post(gateway, authorization="Bearer hr-secret", **headers)
    assert next(iter(gateway.hedger.events)).segment == segment


async def test_only_the_policys_segments_are_hedged(start: Start, hedgerow_sandbox: SandboxProcess) -> None:
    keys = [key(segment="pro"), key("web", "hr-web", segment="free")]
    gateway = await start({"segments": ["pro"]}, client_key=keys)
    for secret, case in (("hr-secret", "s/pro"), ("hr-web", "s/free")):
        script = scripted(case, {"first_token_s": 0.5}, QUICK)
        assert (await post(gateway, authorization=f"Bearer {secret}", **script)).status_code == 200
    assert [len(outcomes(hedgerow_sandbox, case)) for case in ("s/pro", "s/free")] == [2, 1]


async def test_a_request_may_ask_not_to_be_hedged_and_name_its_deadline(
    start: Start, hedgerow_sandbox: SandboxProcess
) -> None:
    gateway = await start()
    got = await post(gateway, hedgerow_hedge="off", **scripted("off", {"first_token_s": 0.4}, QUICK))
    assert got.headers["hedgerow-reason"] == "hedge_off"
    assert len(outcomes(hedgerow_sandbox, "off")) == 1
    await post(gateway, hedgerow_deadline_ms="3800")
    assert [event.deadline_s for event in gateway.hedger.events] == [None, 3.8]
    for wrong in ("soon", "0", "-1", "nan", "inf"):
        assert (await post(gateway, hedgerow_deadline_ms=wrong)).status_code == 400


async def test_what_is_too_large_is_refused_before_it_is_sent_on(
    start: Start, hedgerow_sandbox: SandboxProcess
) -> None:
    gateway = await start(gateway={"listen": "127.0.0.1:0", "max_body": "10kB"})
    assert (await post(gateway, body={**CHAT, "x": "y" * 20_000})).status_code == 413
    assert (await post(gateway, x_large="y" * 70_000)).status_code == 431

    async def endless() -> Any:
        for _ in range(100):
            yield b" " * 1000

    async with httpx2.AsyncClient() as client:
        got = await client.post(gateway.url + PATHS["openai"], content=endless())
    assert got.status_code == 413
    assert hedgerow_sandbox.stats()["started"] == 0
    assert (await post(gateway)).status_code == 200


async def admin(gateway: Running, **headers: str) -> int:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    async with httpx2.AsyncClient() as client:
        return (await client.get(gateway.url + "/admin/stats", headers=named)).status_code


async def test_without_an_admin_key_only_this_very_machine_may_look_inside(start: Start) -> None:
    gateway = await start()
    assert await admin(gateway) == 200
    assert await admin(gateway, host="localhost:8700") == 200
    for headers in (
        {"host": "rebound.example"},
        {"host": "127.0.0.1.rebound.example:8700"},
        {"x_forwarded_for": "10.0.0.7"},
        {"forwarded": "for=10.0.0.7"},
    ):
        assert await admin(gateway, **headers) in (403, 421)


async def test_with_an_admin_key_whoever_has_it_may(start: Start) -> None:
    gateway = await start(gateway={"listen": "127.0.0.1:0", "admin_key": "a-key"})
    assert await admin(gateway) == 403
    assert await admin(gateway, authorization="Bearer wrong") == 403
    assert await admin(gateway, authorization="Bearer a-key", x_forwarded_for="10.0.0.7") == 200


async def test_a_client_that_does_not_come_to_the_point_loses_its_connection(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hedgerow.gateway.patience.HEAD_S", 0.3)
    gateway = await start()
    port = int(gateway.url.rpartition(":")[2])
    for said in (b"", b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nx-slow: "):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(said)
        assert await asyncio.wait_for(reader.read(), 20.0) == b""
        writer.close()
    async with httpx2.AsyncClient() as client:  # a connection that is kept between two calls is another matter
        for _ in range(2):
            assert (await client.get(gateway.url + "/healthz")).status_code == 200
            await asyncio.sleep(0.5)
