"""What a client key may spend in a day: calls that come at once, unknown prices, restarts and clocks."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.gateway.raw_client import CHAT
from tests.gateway.running import Running
from tests.gateway.upstreams import Bare, answer, bare_upstream
from tests.sdk.racing import eventually

from hedgerow.clock import ManualClock
from hedgerow.gateway.client_keys import ClientKey, digest_of
from hedgerow.gateway.sections import ClientKeySection

Start = Callable[..., Awaitable[Running]]
KEY = {"x-api-key": "hr-secret"}
PRICE = [{"model": "m", "input": 1.0, "output": 10.0}]
USED = b'{"id":"c","model":"m","choices":[{"index":0,"message":{"content":"hi"},"finish_reason":"stop"}],"usage":%b}'
ONE_USD = b'{"prompt_tokens":10,"completion_tokens":100000,"total_tokens":100010}'
DIALECTS = {
    "openai": ("/v1/chat/completions", CHAT | {"max_tokens": 100_000}),
    "anthropic": ("/v1/messages", CHAT | {"max_tokens": 100_000}),
    "gemini": (
        "/v1beta/models/m:generateContent",
        {"contents": [{"parts": [{"text": "hi"}]}], "generationConfig": {"maxOutputTokens": 100_000}},
    ),
}


def key(**settings: Any) -> dict[str, Any]:
    return {"name": "web", "sha256": digest_of("hr-secret"), "usd_per_day": 2.5, **settings}


@dataclass
class Late(Bare):
    """Answers when it is told to; each answer costs what was set aside."""

    go: asyncio.Event = field(default_factory=asyncio.Event)

    async def reply(self, request: bytes, writer: asyncio.StreamWriter) -> bool:
        await self.go.wait()
        return await super().reply(request, writer)


async def ask(gateway: Running, path: str, body: Any, method: str = "POST") -> httpx2.Response:
    async with httpx2.AsyncClient(timeout=60.0) as client:
        return await client.request(method, gateway.url + path, json=body, headers=KEY)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_calls_that_come_at_once_set_aside_what_they_may_cost(start: Start, dialect: str) -> None:
    async with bare_upstream(Late()) as provider:
        assert isinstance(provider, Late)
        provider.answers = [answer(USED % ONE_USD, "content-type: application/json")]
        target = {"name": "t", "dialect": dialect, "base_url": provider.url, "api_key": "k"}
        gateway = await start(
            {"max_backups": 0},
            target=[target],
            route=[{"path": "*", "targets": ["t"], "policy": "soon"}],
            client_key=[key()],
            price=PRICE,
        )
        calls = [asyncio.ensure_future(ask(gateway, *DIALECTS[dialect])) for _ in range(10)]
        done, _ = await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
        while len(done) < 8:
            done, _ = await asyncio.wait(calls, timeout=0.05)
        assert {call.result().status_code for call in done} == {429}
        assert all("retry-after" in call.result().headers for call in done)
        provider.go.set()
        await asyncio.gather(*calls)
        assert len(provider.asked) == 2


async def test_what_was_set_aside_is_free_again_once_the_cost_is_known(start: Start) -> None:
    async with bare_upstream() as provider:
        cheap = b'{"prompt_tokens":10,"completion_tokens":10,"total_tokens":20}'
        provider.answers = [answer(USED % cheap, "content-type: application/json")]
        target = {"name": "t", "dialect": "openai", "base_url": provider.url, "api_key": "k"}
        route = [{"path": "*", "targets": ["t"], "policy": "soon"}]
        gateway = await start({"max_backups": 0}, target=[target], route=route, client_key=[key()], price=PRICE)
        for _ in range(6):
            assert (await ask(gateway, *DIALECTS["openai"])).status_code == 200
            list(gateway.hedger.events)


@pytest.mark.parametrize(
    ("settings", "method", "path", "status"),
    [
        ({}, "POST", "/v1/chat/completions", 403),
        ({}, "POST", "/v1/images/generations", 403),
        ({}, "POST", "/v1/batches", 403),
        ({}, "GET", "/v1/models", 200),
        ({}, "POST", "/v1/moderations", 200),
        ({"unknown_cost_usd": 0.05}, "POST", "/v1/chat/completions", 200),
        ({"unknown_cost_usd": 0.05}, "POST", "/v1/images/generations", 200),
        ({"unknown_cost_usd": 0.0}, "POST", "/v1/batches", 200),
    ],
)
async def test_a_call_of_unknown_price_counts_what_the_key_says_or_is_refused(
    start: Start, settings: dict[str, Any], method: str, path: str, status: int
) -> None:
    async with bare_upstream() as provider:
        target = {"name": "t", "dialect": "openai", "base_url": provider.url, "api_key": "k"}
        route = [{"path": "*", "targets": ["t"], "policy": "soon"}]
        gateway = await start(target=[target], route=route, client_key=[key(**settings)])
        got = await ask(gateway, path, CHAT | {"model": "nobody-knows"}, method)
        assert got.status_code == status, got.text
        assert len(provider.asked) == (status == 200)
        if status == 403:
            assert "unknown_cost_usd" in got.text


async def test_what_is_refused_later_sets_nothing_aside(start: Start) -> None:
    async with bare_upstream() as provider:
        target = {"name": "t", "dialect": "openai", "base_url": provider.url, "api_key": "k"}
        route = [{"path": "*", "targets": ["t"], "policy": "soon"}]
        gateway = await start({"max_backups": 0}, target=[target], route=route, client_key=[key()], price=PRICE)
        async with httpx2.AsyncClient(timeout=60.0) as client:
            for path, headers, status in (
                ("/v1/chat/completions", {"hedgerow-deadline-ms": "no time"}, 400),
                ("/nope", {"anthropic-version": "1"}, 404),
            ):
                got = await client.post(gateway.url + path, json=DIALECTS["openai"][1], headers=KEY | headers)
                assert got.status_code == status, got.text
        owner = gateway.house.keyring.owner_of("hr-secret")
        assert owner is not None
        assert owner.reserve("one", 2.0) is None
        assert owner.reserve("two", 0.4) is None  # 2.4 of 2.5: nothing else is set aside
        owner.release("one")
        owner.release("two")


def section(**settings: Any) -> ClientKeySection:
    return ClientKeySection(**key(**settings))


def test_an_unknown_price_counts_at_the_end_as_it_was_set_aside() -> None:
    owner = ClientKey(section(unknown_cost_usd=1.0), share=1.0, clock=ManualClock())
    for number in range(3):
        assert owner.admit() is None
        assert owner.reserve(f"e{number}", None) is None
        owner.settle(f"e{number}", None)
    assert owner.admit() is not None


def test_a_call_alone_is_let_in_while_anything_is_left() -> None:
    owner = ClientKey(section(), share=1.0, clock=ManualClock())
    assert owner.reserve("dear", 99.0) is None
    assert owner.reserve("cheap", 0.1) is not None
    owner.release("dear")
    assert owner.reserve("cheap", 0.1) is None


def test_several_workers_share_a_day() -> None:
    owner = ClientKey(section(), share=0.5, clock=ManualClock())
    assert owner.reserve("a", 0.7) is None
    assert owner.reserve("b", 0.7) is not None


class Backwards(ManualClock):
    """A clock that can be set."""

    day = datetime(2026, 12, 1, tzinfo=UTC)

    def utc(self) -> datetime:
        return self.day


def test_a_clock_that_is_set_back_clears_nothing() -> None:
    clock = Backwards()
    owner = ClientKey(section(), share=1.0, clock=clock)
    owner.spent(3.0)
    assert owner.admit() is not None
    clock.day -= timedelta(days=1)
    assert owner.admit() is not None
    clock.day += timedelta(days=2)
    assert owner.admit() is None


async def test_a_restart_keeps_what_was_spent_at_unknown_prices_too(start: Start, tmp_path: Path) -> None:
    async with bare_upstream() as provider:
        target = {"name": "t", "dialect": "openai", "base_url": provider.url, "api_key": "k"}
        settings = {
            "target": [target],
            "route": [{"path": "*", "targets": ["t"], "policy": "soon"}],
            "client_key": [key(unknown_cost_usd=2.0)],
            "gateway": {"listen": "127.0.0.1:0", "events": f"sqlite:///{tmp_path}/events.db"},
        }
        unpriced = CHAT | {"model": "nobody-knows"}
        first = await start({"max_backups": 0}, **settings)
        for status in (200, 200, 429):
            assert (await ask(first, "/v1/chat/completions", unpriced)).status_code == status
            list(first.hedger.events)
        await first.close()
        second = await start({"max_backups": 0}, **settings)
        assert (await ask(second, "/v1/chat/completions", unpriced)).status_code == 429
        assert len(provider.asked) == 2


NOTHING = b'{"object":"list","data":[]}'
FREE = [("GET", "/v1/models"), ("POST", "/v1/moderations"), ("DELETE", "/v1/files/f"), ("POST", "/v1/files")]


@pytest.mark.parametrize("limit", [{"usd_per_day": 2.5}, {}])
async def test_a_restart_counts_nothing_for_calls_that_cost_nothing(
    start: Start, tmp_path: Path, limit: dict[str, float]
) -> None:
    """limit: of the key before the restart; free calls are free, whether or not anything was counted then."""
    async with bare_upstream() as provider:
        provider.answers = [answer(NOTHING, "content-type: application/json")]
        named = {name: value for name, value in key(unknown_cost_usd=2.0).items() if name != "usd_per_day"}
        settings: dict[str, Any] = {
            "target": [{"name": "t", "dialect": "openai", "base_url": provider.url, "api_key": "k"}],
            "route": [{"path": "*", "targets": ["t"], "policy": "soon"}],
            "client_key": [named | limit],
            "gateway": {"listen": "127.0.0.1:0", "events": f"sqlite:///{tmp_path}/events.db"},
        }
        first = await start({"max_backups": 0}, **settings)
        for method, path in FREE * 2:
            assert (await ask(first, path, CHAT, method)).status_code == 200
        assert [event.counted_usd for event in first.hedger.events] == [0.0] * 8
        await first.close()
        second = await start({"max_backups": 0}, **settings | {"client_key": [key(unknown_cost_usd=2.0)]})
        owner = second.house.keyring.owner_of("hr-secret")
        assert owner is not None
        assert owner.reserve("e", 2.49) is None
        assert owner.reserve("f", 0.02) is not None
        assert owner.retry_after_s == 0.0


async def test_a_restart_counts_what_was_counted_before_it(start: Start, tmp_path: Path) -> None:
    async with bare_upstream() as provider:
        provider.answers = [answer(USED.replace(b',"usage":%b', b""), "content-type: application/json")]
        settings: dict[str, Any] = {
            "target": [{"name": "t", "dialect": "openai", "base_url": provider.url, "api_key": "k"}],
            "route": [{"path": "*", "targets": ["t"], "policy": "soon"}],
            "client_key": [key()],
            "price": PRICE,
            "gateway": {"listen": "127.0.0.1:0", "events": f"sqlite:///{tmp_path}/events.db"},
        }
        first = await start({"max_backups": 0}, **settings)
        for _ in range(2):
            assert (await ask(first, *DIALECTS["openai"])).status_code == 200
            list(first.hedger.events)
        before = first.house.keyring.owner_of("hr-secret")
        await first.close()
        second = await start({"max_backups": 0}, **settings)
        after = second.house.keyring.owner_of("hr-secret")
        assert before is not None
        assert after is not None
        assert 2.0 < before._spent_usd == pytest.approx(after._spent_usd)


@pytest.mark.parametrize(
    ("path", "body", "times"),
    [
        ("/v1/chat/completions", {"max_tokens": 1_000, "n": 100}, 100),
        ("/v1/chat/completions", {"max_tokens": 1_000, "n": "100"}, 100),
        ("/v1/chat/completions", {"max_tokens": 1_000, "best_of": 20, "n": 2}, 20),
        ("/v1/chat/completions", {"max_completion_tokens": 1, "max_tokens": 100_000}, 100),
        ("/v1/chat/completions", {"max_tokens": 1, "n_predict": 100_000}, 100),
        ("/v1/chat/completions", {"max_tokens": "100000"}, 100),
        ("/v1/messages", {"max_tokens": "100000"}, 100),
        ("/v1/responses", {"max_output_tokens": "100000"}, 100),
        ("/v1beta/models/m:generateContent", {"generationConfig": {"maxOutputTokens": "100000"}}, 100),
        ("/v1beta/models/m:generateContent", {"generation_config": {"max_output_tokens": 100, "candidate_count": 8}}, 0.8),
    ],
)  # fmt: skip
async def test_all_that_is_asked_for_is_set_aside(start: Start, path: str, body: dict[str, Any], times: float) -> None:
    async with bare_upstream(Late()) as provider:
        dialect = {"/v1/m": "anthropic", "/v1be": "gemini"}.get(path[:5], "openai")
        gateway = await start(
            {"max_backups": 0},
            target=[{"name": "t", "dialect": dialect, "base_url": provider.url, "api_key": "k"}],
            route=[{"path": "*", "targets": ["t"], "policy": "soon"}],
            client_key=[key()],
            price=PRICE,
        )
        call = asyncio.ensure_future(ask(gateway, path, {"model": "m", **body}))
        await eventually(lambda: bool(provider.asked))
        owner = gateway.house.keyring.owner_of("hr-secret")
        assert owner is not None
        assert owner._reserved_usd == pytest.approx(times * 0.01, rel=0.01)
        call.cancel()
        assert isinstance(provider, Late)
        provider.go.set()


@pytest.mark.parametrize(
    "path", ["/v1/batches/new", "/v1/fine_tuning/jobs", "/v1/images/generations", "/v1/audio/speech", "/v1/completions"]
)
async def test_the_price_of_a_model_is_none_of_a_call_that_is_not_paid_by_its_answer(start: Start, path: str) -> None:
    async with bare_upstream() as provider:
        target = {"name": "t", "dialect": "openai", "base_url": provider.url, "api_key": "k"}
        route = [{"path": "*", "targets": ["t"], "policy": "soon"}]
        gateway = await start(target=[target], route=route, client_key=[key()], price=PRICE)
        assert (await ask(gateway, path, {"model": "m"})).status_code == 403
        assert not provider.asked
