"""Models and efforts that one client invents make no model cold that another uses: answered or not, in every API."""

from collections.abc import Callable
from typing import Any

import httpx2
import orjson
import pytest
from tests.gateway.running import Running
from tests.gateway.upstreams import Bare, answer, bare_upstream

from hedgerow.gateway.client_keys import digest_of
from hedgerow.statistics import registry

Start = Callable[..., Any]

MOST, JSON = 20, "content-type: application/json"
SAY: list[Any] = [{"role": "user", "content": "hi"}]
CHOICE = {"index": 0, "message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}
CHAT = {"object": "chat.completion", "choices": [CHOICE], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}
PART: dict[str, Any] = {"type": "text", "text": "hello"}
MESSAGE = {"type": "message", "role": "assistant", "content": [PART], "stop_reason": "end_turn"}
RESPONSE = {
    "object": "response",
    "status": "completed",
    "output": [{"type": "message", "content": [{"type": "output_text", "text": "hello"}]}],
}
CONTENT = {"candidates": [{"content": {"parts": [{"text": "hello"}]}, "finishReason": "STOP"}]}
Asked = tuple[str, dict[str, Any], dict[str, str]]


def chat(name: str) -> Asked:
    return "/v1/chat/completions", {"model": name, "messages": SAY}, {}


def effort(name: str) -> Asked:
    return "/v1/chat/completions", {"model": "m", "messages": SAY, "reasoning_effort": name}, {}


def response(name: str) -> Asked:
    return "/v1/responses", {"model": name, "input": "hi", "store": False}, {}


def message(name: str) -> Asked:
    return "/v1/messages", {"model": name, "max_tokens": 9, "messages": SAY}, {"anthropic-version": "2023-06-01"}


def content(name: str) -> Asked:
    return f"/v1beta/models/{name}:generateContent", {"contents": [{"parts": [{"text": "hi"}]}]}, {}


ASKED: dict[str, tuple[str, Callable[[str], Asked], dict[str, Any]]] = {
    "chat": ("openai", chat, CHAT),
    "effort": ("openai", effort, CHAT),
    "responses": ("openai", response, RESPONSE),
    "messages": ("anthropic", message, MESSAGE),
    "gemini": ("gemini", content, CONTENT),
}


class Provider(Bare):
    """Answers what asks for `real`; everything else as well, or with a 404. refuses: with a 404."""

    refuses = False
    whole: bytes = b""

    async def reply(self, request: bytes, writer: Any) -> bool:
        if b"real" in request or not self.refuses:
            writer.write(answer(self.whole, JSON))
        else:
            writer.write(answer(b'{"error": {"message": "no such model"}}', JSON, status="404 Not Found"))
        await writer.drain()
        return False


@pytest.mark.parametrize(("greedy", "refuses"), [("a", False), ("a", True), ("b", True)])
@pytest.mark.parametrize(("dialect", "of", "whole"), ASKED.values(), ids=ASKED)
async def test_a_warm_model_stays_warm_whatever_another_key_asks_for(
    start: Start,
    monkeypatch: pytest.MonkeyPatch,
    dialect: str,
    of: Callable[[str], Asked],
    whole: dict[str, Any],
    greedy: str,
    refuses: bool,
) -> None:
    monkeypatch.setattr(registry, "MOST_KEYS", MOST)
    async with bare_upstream(provider := Provider()):
        provider.refuses, provider.whole = refuses, orjson.dumps(whole)
        base_url = f"{provider.url}/v1" if dialect == "openai" else provider.url
        gateway: Running = await start(
            {"delay": "p95+1s"},
            target=[{"name": "t", "dialect": dialect, "base_url": base_url, "api_key": "their-key"}],
            route=[{"path": "*", "targets": ["t"], "policy": "soon"}],
            client_key=[{"name": name, "sha256": digest_of(name)} for name in "ab"],
        )
        async with httpx2.AsyncClient(timeout=30.0) as client:

            async def ask(name: str, key: str) -> httpx2.Response:
                path, body, headers = of(name)
                return await client.post(f"{gateway.url}{path}", json=body, headers=headers | {"hedgerow-key": key})

            for _ in range(25):
                warm = await ask("real", "b")
            assert (warm.status_code, warm.headers["hedgerow-reason"]) == (200, "hedge")
            for number in range(3 * MOST):
                assert (await ask(f"invented-{number}", greedy)).status_code == (404 if refuses else 200)
            assert (await ask("real", "b")).headers["hedgerow-reason"] == "hedge"
        keys: Any = gateway.hedger.stats()["keys"]
        assert len(keys) == (1 if refuses else MOST)
