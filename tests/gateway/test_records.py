"""What the gateway writes down: a line per request, events, and bodies only where the file says so."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.gateway.running import GatewayProcess, Running
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
}


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


async def test_a_request_whose_client_has_left_is_kept_as_well(
    start: Callable[..., Any], hedgerow_sandbox: SandboxProcess, tmp_path: Path
) -> None:
    gateway: Running = await start(**tables(tmp_path, True))
    asked = asyncio.ensure_future(post(gateway.url, "left", {"first_token_s": 30.0}))
    await eventually(lambda: len(outcomes(hedgerow_sandbox, "left")) > 0)
    asked.cancel()
    await asyncio.wait([asked])
    path = tmp_path / "calls.bodies.jsonl"
    await eventually(lambda: path.exists() and json.loads(path.read_text())["body"] == CHAT | {"stream": False})


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
