"""What the gateway writes down: a line per request, events, and bodies only where the file says so."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import orjson
import pytest
from tests.gateway.running import GatewayProcess, Running, config_of
from tests.sdk.racing import QUICK, eventually, outcomes, scripted

from hedgerow.record.sqlite_store import SqliteStore
from hedgerow.testing.process import SandboxProcess

SECRET = "a secret of the caller's"
CHAT = {"model": "m", "messages": [{"role": "user", "content": SECRET}]}


async def post(url: str, case: str = "r", *attempts: dict[str, Any], stream: bool = False) -> httpx2.Response:
    headers = scripted(case, *(attempts or [QUICK])) | {"authorization": "Bearer clients-key", "openai-beta": "x=1"}
    async with httpx2.AsyncClient(timeout=30.0) as client:
        return await client.post(f"{url}/v1/chat/completions?a=b", json=CHAT | {"stream": stream}, headers=headers)


def tables(folder: Path, record: object) -> dict[str, Any]:
    return {"gateway": {"listen": "127.0.0.1:0", "events": f"sqlite:///{folder}/calls.db", "record_bodies": record}}


async def test_by_default_no_content_and_no_key_is_written_anywhere(start: Callable[..., Any], tmp_path: Path) -> None:
    gateway: Running = await start(**tables(tmp_path, False))
    answer = (await post(gateway.url, "r", QUICK | {"text": "a secret of the model's"})).text
    assert "a secret of the model's" in answer
    await eventually(lambda: len(list(gateway.house.store)) == 1)
    written = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    for secret in (SECRET, "a secret of the model's", "clients-key"):
        assert secret.encode() not in written


@pytest.mark.parametrize("record", [True, "all"])
async def test_requests_are_kept_for_replay_without_their_keys_and_answers_only_on_request(
    start: Callable[..., Any], tmp_path: Path, record: object
) -> None:
    gateway: Running = await start(**tables(tmp_path, record))
    await post(gateway.url, "r/1", QUICK | {"text": "whole"})
    await post(gateway.url, "r/2", QUICK | {"text": "streamed"}, stream=True)
    path = tmp_path / "calls.bodies.jsonl"
    await eventually(lambda: path.exists() and path.read_text().count("\n") == 2)
    whole, streamed = (json.loads(line) for line in path.read_text().splitlines())
    assert whole["body"] == CHAT | {"stream": False}
    assert (whole["path"], whole["query"], whole["headers"]["openai-beta"]) == ("/v1/chat/completions", "a=b", "x=1")
    assert {whole["id"], streamed["id"]} == {event.id for event in gateway.house.store}
    assert "clients-key" not in path.read_text()
    assert path.stat().st_mode & 0o077 == 0
    if record == "all":
        assert whole["answer"]["choices"][0]["message"]["content"] == "whole"
        assert streamed["answer_text"].endswith("data: [DONE]\n\n")
    else:
        assert not any(name.startswith("answer") for name in whole | streamed)


BODIES = {
    "a long number": (b'{"x": 123456789012345678901234567890}', {"body": {"x": 123456789012345678901234567890}}),
    "several lines": (b'{"x":\r\n1}', {"body": {"x": 1}}),
    "no JSON": (b"plain\ntext", {"body_text": "plain\ntext"}),
    "no text": (b"\xff\x00", {"body_base64": "/wA="}),
    "nothing": (b"", {"body_text": ""}),
    "half a character": (b'{"x":"\\ud800"}', {"body_text": '{"x":"\\ud800"}'}),
    "a NUL": (b"a\x00b", {"body_text": "a\x00b"}),
    "two values": (b"1,2", {"body_text": "1,2"}),
    "a bracket that closes ours": (b"1],[2", {"body_text": "1],[2"}),
    "a long number between lines": (
        b'{"x":\n123456789012345678901234567890}',
        {"body": {"x": 123456789012345678901234567890}},
    ),
    "a name twice": (b'{"x":1,\r"x":2}', {"body": {"x": 2}}),
}
NESTED = {depth: b"[" * depth + b"\n" + b"]" * depth for depth in (254, 300, 1023, 1024, 1025, 100_000)}


@pytest.mark.parametrize(("body", "kept"), BODIES.values(), ids=BODIES)
async def test_whatever_a_body_is_it_is_kept_on_one_line(
    start: Callable[..., Any], tmp_path: Path, body: bytes, kept: dict[str, Any]
) -> None:
    gateway: Running = await start(**tables(tmp_path, True))
    async with httpx2.AsyncClient() as client:
        await client.post(f"{gateway.url}/v1/uploads", content=body)
    path = tmp_path / "calls.bodies.jsonl"
    await eventually(lambda: path.exists() and path.read_bytes().endswith(b"\n"))
    (line,) = path.read_text().splitlines()
    assert kept.items() <= json.loads(line).items()


async def test_no_body_ends_the_recording_of_those_that_follow(start: Callable[..., Any], tmp_path: Path) -> None:
    gateway: Running = await start(**tables(tmp_path, True))
    odd = [body for body, _ in BODIES.values()] + list(NESTED.values())
    async with httpx2.AsyncClient(timeout=30.0) as client:
        for body in odd:
            await client.post(f"{gateway.url}/v1/uploads", content=body)
            await client.post(f"{gateway.url}/v1/uploads", content=b'{"after": true}')
    path = tmp_path / "calls.bodies.jsonl"
    await eventually(lambda: path.exists() and path.read_bytes().count(b"\n") == 2 * len(odd))
    lines = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    assert [line["body"] for line in lines[1::2]] == [{"after": True}] * len(odd)
    assert gateway.house.unwritable == {"events": 0, "bodies": 0}


async def test_what_cannot_be_written_is_counted_where_the_administrator_looks(
    start: Callable[..., Any], tmp_path: Path
) -> None:
    gateway: Running = await start(**tables(tmp_path, True))
    await post(gateway.url)
    gateway.house.store.append("no event")  # type: ignore[arg-type]
    gateway.house.store.flush()  # type: ignore[attr-defined]
    async with httpx2.AsyncClient() as client:
        stats = (await client.get(f"{gateway.url}/admin/stats")).json()
    assert stats["unwritable"] == {"events": 1, "bodies": 0}


@pytest.mark.parametrize("headers", [{"x-stainless-retry-count": "9" * digits} for digits in (9, 20, 400, 5000)])
@pytest.mark.parametrize("most", [5, 2**63, 2**70, 10**30, -(2**70)])
async def test_numbers_that_no_call_can_have_are_no_reason_to_lose_its_event(
    start: Callable[..., Any], tmp_path: Path, headers: dict[str, str], most: int
) -> None:
    gateway: Running = await start(**tables(tmp_path, False))
    headers = headers | scripted("n", QUICK)
    async with httpx2.AsyncClient(timeout=30.0) as client:
        got = await client.post(f"{gateway.url}/v1/chat/completions", json=CHAT | {"max_tokens": most}, headers=headers)
    assert got.status_code == 200
    await eventually(lambda: len(list(gateway.house.store)) == 1)
    (event,) = gateway.house.store
    assert event.max_output_tokens == (5 if most == 5 else None)


@pytest.mark.parametrize("name", ["a\r\nset-cookie: a=b\r\nx", "\x00", "\x7f", "ü\u2028", "n" * 50_000, "😀", "a\tb"])
async def test_a_field_of_any_name_is_answered_and_adds_no_header(start: Callable[..., Any], name: str) -> None:
    gateway: Running = await start()
    async with httpx2.AsyncClient(timeout=30.0) as client:
        got = await client.post(
            f"{gateway.url}/v1/chat/completions", json=CHAT | {name: 1}, headers=scripted("n", QUICK)
        )
    assert got.status_code == 200
    assert "set-cookie" not in got.headers
    assert len(got.headers["hedgerow-reason"]) <= 200


def test_a_policy_of_any_name_keeps_its_state_inside_its_folder(
    hedgerow_sandbox: SandboxProcess, tmp_path: Path
) -> None:
    names = ["plain-1.0", "with space", "../outside", "a/b", "nul\x00", "ü" * 20]
    config = config_of(
        hedgerow_sandbox,
        gateway={"listen": "127.0.0.1:0", "state": str(tmp_path / "state")},
        route=[{"path": f"/{number}/*", "targets": ["openai"], "policy": name} for number, name in enumerate(names)],
    )
    config["policy"] = {name: {} for name in names}
    (tmp_path / "in").mkdir()
    with GatewayProcess(tmp_path / "in", config) as gateway:
        assert gateway.close() == 0
    kept = sorted(path.name for path in (tmp_path / "state").iterdir())
    assert len(kept) == len(names)
    assert {"plain-1.0.0-of-1.json", "with space.0-of-1.json"} <= set(kept)
    assert {path.name for path in tmp_path.iterdir()} == {"in", "state"}


async def test_a_request_whose_client_has_left_is_kept_as_well(
    start: Callable[..., Any], hedgerow_sandbox: SandboxProcess, tmp_path: Path
) -> None:
    gateway: Running = await start(**tables(tmp_path, True))
    asked = asyncio.ensure_future(post(gateway.url, "left", {"first_token_s": 30.0}))
    await eventually(lambda: len(outcomes(hedgerow_sandbox, "left")) > 0)
    asked.cancel()
    await asyncio.wait([asked])
    path = tmp_path / "calls.bodies.jsonl"
    await eventually(
        lambda: path.exists() and path.read_bytes().endswith(b"\n")
    )  # it is made a moment before it is written
    assert json.loads(path.read_text())["body"] == CHAT | {"stream": False}


async def test_events_are_in_the_store_with_route_policy_and_costs(start: Callable[..., Any], tmp_path: Path) -> None:
    prices = [{"model": "m", "input": 1.0, "output": 2.0}]
    gateway: Running = await start(**tables(tmp_path, False), price=prices)
    await post(gateway.url, "r", {"first_token_s": 5.0}, QUICK)
    await eventually(lambda: len(list(gateway.house.store)) == 1)
    (event,) = SqliteStore(tmp_path / "calls.db")
    assert (event.route, event.policy, event.measured_at) == ("/v1/*", "soon", "gateway")
    assert [(attempt.target, attempt.outcome) for attempt in event.attempts] == [("openai", "lost"), ("openai", "won")]
    assert event.winner_cost_usd is not None
    assert event.cost_high_usd is not None
    assert 0 < event.winner_cost_usd < event.cost_high_usd


async def test_a_line_per_request_tells_how_it_went_and_nothing_of_what_it_said(
    launch: Callable[..., GatewayProcess],
) -> None:
    gateway = launch(options=["--log-requests"])
    got = await post(gateway.url)
    await eventually(lambda: any(line.startswith("{") for line in gateway.log))
    (line,) = [json.loads(line) for line in gateway.log if line.startswith("{")]
    assert (line["id"], line["outcome"], line["route"]) == (got.headers["hedgerow-id"], "answered", "/v1/*")
    assert line["attempts"] == [["openai", "primary", "won", 200]]
    assert SECRET not in "\n".join(gateway.log)
