"""Several targets: backups prefer another one, limits belong to the account, and what one suffers leaves the others alone."""

import asyncio
from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from tests.gateway.running import SOON, Running
from tests.sdk.racing import QUICK, SLOW, eventually, outcomes, scripted

from hedgerow.testing.process import SandboxProcess

Start = Callable[..., Any]

CHAT = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


async def post(
    gateway: Running, case: str, *attempts: dict[str, Any], model: str = "m", **headers: str
) -> httpx2.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()} | scripted(case, *attempts)
    async with httpx2.AsyncClient(timeout=60.0) as client:
        return await client.post(f"{gateway.url}/v1/chat/completions", json=CHAT | {"model": model}, headers=named)


def target(name: str, sandbox: SandboxProcess, key: str | None = None, **fields: Any) -> dict[str, Any]:
    own = {} if key is None else {"api_key": key}
    return {"name": name, "dialect": "openai", "base_url": f"{sandbox.url}/v1", **own, **fields}


def route(*targets: str, model: str = "*") -> dict[str, Any]:
    return {"path": "/v1/*", "model": model, "targets": list(targets), "policy": "soon"}


async def test_backups_prefer_another_target_and_then_come_home(start: Start, hedgerow_sandbox: SandboxProcess) -> None:
    targets = [target("a", hedgerow_sandbox, "1"), target("b", hedgerow_sandbox, "2")]
    gateway = await start({"max_backups": 2}, target=targets, route=[route("a", "b")])
    got = await post(gateway, "t", SLOW, SLOW, {**QUICK, "text": "third"})
    assert "third" in got.text
    (event,) = gateway.hedger.events
    assert [attempt.target for attempt in event.attempts] == ["a", "b", "a"]
    assert got.headers["hedgerow-winner"] == "2 a"


async def test_the_price_follows_what_a_target_sets(start: Start, hedgerow_sandbox: SandboxProcess) -> None:
    dear = target("dear", hedgerow_sandbox, "1", set={"service_tier": "priority"})
    prices = [
        {"model": "m", "input": 5.0, "output": 10.0, "service_tier": "priority"},
        {"model": "m", "input": 1.0, "output": 2.0},
    ]
    gateway = await start(target=[target("a", hedgerow_sandbox, "1"), dear], route=[route("a", "dear")], price=prices)
    usage = {"usage": {"input_tokens": 1000, "output_tokens": 100}}
    await post(gateway, "t", SLOW, {**QUICK, **usage})
    await eventually(lambda: len(list(gateway.hedger.events)) == 1)
    (event,) = gateway.hedger.events
    assert event.attempts[1].service_tier == "priority"
    assert event.winner_cost_usd == pytest.approx((1000 * 5.0 + 100 * 10.0) / 1e6)


async def test_a_429_is_replaced_only_under_another_key(start: Start, hedgerow_sandbox: SandboxProcess) -> None:
    keys = [
        target("a", hedgerow_sandbox, "1"),
        target("same", hedgerow_sandbox, "1"),
        target("b", hedgerow_sandbox, "2"),
    ]
    gateway = await start({"budget": 1.0, "delay": 600.0}, target=keys, route=[route("a", "same", "b")])
    got = await post(gateway, "t", {"status": 429}, {**QUICK, "text": "elsewhere"})
    assert "elsewhere" in got.text
    (event,) = gateway.hedger.events
    assert [attempt.target for attempt in event.attempts] == ["a", "b"]
    gateway_alone = await start({"budget": 1.0, "delay": 600.0}, target=keys, route=[route("a", "same")])
    assert (await post(gateway_alone, "u", {"status": 429, "retry_after": 7}, QUICK)).headers["retry-after"] == "7"
    assert outcomes(hedgerow_sandbox, "u") == ["failed"]


async def test_what_one_route_is_told_of_limits_holds_for_all_routes_of_the_policy(
    start: Start, hedgerow_sandbox: SandboxProcess
) -> None:
    targets = [target("a", hedgerow_sandbox, "1"), target("b", hedgerow_sandbox, "2")]
    routes = [route("a", model="x"), route("b", "a", model="y")]
    gateway = await start({"budget": 1.0}, target=targets, route=routes)
    assert (await post(gateway, "t/x", {"status": 429}, model="x")).status_code == 429
    late = {"await_arrivals": 2, "first_token_s": 0.1}
    await post(gateway, "t/y", late, QUICK, model="y")  # limits are kept by model: y's are another matter
    assert [attempt.target for attempt in list(gateway.hedger.events)[-1].attempts] == ["b", "a"]
    await post(gateway, "t/y2", {"status": 429}, QUICK, model="y")
    await post(gateway, "t/y3", late, QUICK, model="y")
    event = list(gateway.hedger.events)[-1]
    assert [attempt.target for attempt in event.attempts] == ["b", "a"]  # b is held off, a is not


async def test_the_limits_of_a_client_whose_own_key_goes_through_are_its_own(
    start: Start, hedgerow_sandbox: SandboxProcess
) -> None:
    gateway = await start(
        {"budget": 1.0, "max_backups": 1}, target=[target("a", hedgerow_sandbox, "client")], route=[route("a")]
    )
    assert (await post(gateway, "t/1", {"status": 429}, authorization="Bearer one")).status_code == 429
    slow, case = {"first_token_s": 0.4}, "t/held"
    await post(gateway, case, slow, QUICK, authorization="Bearer one")
    assert len(outcomes(hedgerow_sandbox, case)) == 1
    await post(gateway, "t/other", {"await_arrivals": 2, "first_token_s": 0.1}, QUICK, authorization="Bearer two")
    assert len(outcomes(hedgerow_sandbox, "t/other")) == 2


async def test_a_target_that_swallows_everything_leaves_the_others_alone(
    start: Start, hedgerow_sandbox: SandboxProcess
) -> None:
    held: list[asyncio.StreamWriter] = []

    async def swallow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        held.append(writer)
        await reader.read(-1)

    server = await asyncio.start_server(swallow, "127.0.0.1", 0, backlog=512)
    hole = {
        "name": "hole",
        "dialect": "openai",
        "base_url": f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1",
        "api_key": "1",
    }
    routes = [route("hole", model="lost"), route("a")]
    gateway = await start({"max_backups": 0}, target=[hole, target("a", hedgerow_sandbox, "1")], route=routes)
    lost = [asyncio.ensure_future(post(gateway, f"lost/{n}", QUICK, model="lost")) for n in range(100)]
    await eventually(lambda: len(held) == 100)
    answers = await asyncio.gather(*(post(gateway, f"well/{n}", QUICK) for n in range(100)))
    assert {answer.status_code for answer in answers} == {200}
    assert not any(call.done() for call in lost)
    for call in lost:
        call.cancel()
    await asyncio.gather(*lost, return_exceptions=True)
    await eventually(lambda: gateway.hedger.stats()["in_flight"] == 0)
    await eventually(lambda: len(held) == 108)  # spare ones in place of the hundred that were cut off: 8, not more
    await gateway.house.connections.close()
    for writer in held:
        writer.close()
    await asyncio.gather(*(writer.wait_closed() for writer in held), return_exceptions=True)
    server.close()


async def test_lost_races_never_count_against_a_target(start: Start, hedgerow_sandbox: SandboxProcess) -> None:
    targets = [target("a", hedgerow_sandbox, "1"), target("b", hedgerow_sandbox, "2")]
    gateway = await start({"max_backups": 1}, target=targets, route=[route("a", "b")])
    for number in range(10):
        await post(gateway, f"t/{number}", SLOW, QUICK)
    assert gateway.hedger.stats()["refusals"] == {}
    events = list(gateway.hedger.events)
    assert {tuple(attempt.target for attempt in event.attempts) for event in events} == {("a", "b")}
    assert {event.attempts[0].outcome for event in events} == {"lost"}


async def test_a_share_of_calls_is_never_hedged_for_an_honest_comparison(
    start: Start, hedgerow_sandbox: SandboxProcess
) -> None:
    gateway = await start({**SOON, "control_share": 0.5})
    await asyncio.gather(*(post(gateway, f"t/{n}", {"first_token_s": 0.3}, QUICK) for n in range(60)))
    plans = [event.plan for event in gateway.hedger.events]
    assert 10 < plans.count("control") < 50
    alone = sum(len(outcomes(hedgerow_sandbox, f"t/{n}")) == 1 for n in range(60))
    assert alone >= plans.count("control")


async def test_what_a_provider_says_of_trying_again_reaches_the_client_after_several_attempts_too(
    start: Start, hedgerow_sandbox: SandboxProcess
) -> None:
    gateway = await start({"delay": 600.0})
    again = {"headers": {"x-should-retry": "true"}}
    got = await post(gateway, "t/500", {"status": 500, **again})
    assert len(outcomes(hedgerow_sandbox, "t/500")) == 3
    assert got.headers.get_list("x-should-retry") == ["true"]
    got = await post(gateway, "t/400", {"status": 400, **again})
    assert got.headers.get_list("x-should-retry") == ["true"]
