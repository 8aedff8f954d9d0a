"""Clients that are not Python's: curl, and OpenAI's JavaScript SDK. They change an address and nothing else."""

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.gateway.raw_client import CHAT
from tests.gateway.running import GatewayProcess
from tests.sdk.racing import SLOW, outcomes, scripted

from hedgerow.gateway.client_keys import digest_of
from hedgerow.testing.process import SandboxProcess

Launch = Callable[..., GatewayProcess]

JS = Path(__file__).parents[1] / "js"
QUICK = {"first_token_s": 0.01, "text": "one two three"}
RESCUED = [SLOW, {**QUICK, "text": "rescued"}]
ALONE = {"trigger": "off"}  # a busy machine would need a backup where the test is about none
PATIENCE_S = 60.0

curl_is_here = pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl on this machine")
node_is_here = pytest.mark.skipif(
    shutil.which("node") is None or not (JS / "node_modules" / "openai").is_dir(),
    reason="OpenAI's JavaScript SDK is not installed: it needs node and npm, and `npm ci` in tests/js",
)
each_way = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


def curl(gateway: GatewayProcess, headers: dict[str, str], *options: str, **fields: Any) -> str:
    """One chat completion; what curl prints."""
    named = [part for name, value in headers.items() for part in ("-H", f"{name}: {value}")]
    body = ["-H", "content-type: application/json", "-d", json.dumps(CHAT | fields)]
    url = f"{gateway.url}/v1/chat/completions"
    return _said(["curl", "--silent", "--show-error", "--noproxy", "*", *options, *named, *body, url])


def sdk(gateway: GatewayProcess, headers: dict[str, str], **options: Any) -> dict[str, Any]:
    """One chat completion of the JavaScript SDK: its text, or its error."""
    asked = {"baseURL": f"{gateway.url}/v1", "headers": headers, **options}
    return json.loads(_said(["node", str(JS / "call.mjs"), json.dumps(asked)]))


def _said(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@curl_is_here
def test_curl_gets_an_answer(launch: Launch) -> None:
    answer = json.loads(curl(launch(), scripted("curl", QUICK)))
    assert answer["choices"][0]["message"]["content"] == "one two three"


@curl_is_here
def test_curl_gets_a_stream_event_by_event(launch: Launch) -> None:
    head, _, said = curl(launch(ALONE), scripted("curl", QUICK), "-N", "-i", stream=True).partition("\n\n")
    assert "content-type: text/event-stream" in head
    assert "hedgerow-attempts: 1" in head
    events = [line for line in said.splitlines() if line]
    assert events[-1] == "data: [DONE]"
    chunks = [json.loads(event.removeprefix("data: ")) for event in events[:-1]]
    assert "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks) == "one two three"


@curl_is_here
def test_curl_without_a_key_is_told_so(launch: Launch, hedgerow_sandbox: SandboxProcess) -> None:
    gateway = launch(client_key=[{"name": "web", "sha256": digest_of("hr-secret")}])
    said = curl(gateway, {}, "-w", "\n%{http_code}")
    body, _, status = said.rpartition("\n")
    assert (status, json.loads(body)["error"]["code"]) == ("401", "invalid_api_key")
    assert hedgerow_sandbox.stats()["started"] == 0
    assert "choices" in curl(gateway, {"authorization": "Bearer hr-secret"})


@curl_is_here
def test_curl_is_rescued_and_told_by_whom(launch: Launch, hedgerow_sandbox: SandboxProcess) -> None:
    said = curl(launch(), scripted("curl", *RESCUED), "-i")
    assert "rescued" in said
    assert "hedgerow-winner: 1 openai" in said
    assert outcomes(hedgerow_sandbox, "curl") == ["disconnected", "completed"]


@node_is_here
@each_way
def test_the_javascript_sdk_gets_an_answer(launch: Launch, stream: bool) -> None:
    assert sdk(launch(), scripted("js", QUICK), stream=stream) == {"text": "one two three"}


@node_is_here
@each_way
def test_the_javascript_sdk_is_rescued(launch: Launch, hedgerow_sandbox: SandboxProcess, stream: bool) -> None:
    assert sdk(launch(), scripted("js", *RESCUED), stream=stream) == {"text": "rescued"}
    assert outcomes(hedgerow_sandbox, "js") == ["disconnected", "completed"]


@node_is_here
@each_way
def test_the_javascript_sdk_sees_a_429_and_when_to_come_back(
    launch: Launch, hedgerow_sandbox: SandboxProcess, stream: bool
) -> None:
    got = sdk(launch(ALONE), scripted("js", {"status": 429, "retry_after": 7}), stream=stream)
    assert (got["error"], got["status"], got["retryAfter"]) == ("RateLimitError", 429, "7")
    assert outcomes(hedgerow_sandbox, "js") == ["failed"]


@node_is_here
def test_the_javascript_sdk_raises_what_ends_a_stream(launch: Launch) -> None:
    cut = {"first_token_s": 0.0, "token_s": 0.0, "tokens": 9, "cut_after": 5}
    got = sdk(launch(ALONE), scripted("js", cut), stream=True)
    assert "broke off" in got["message"]
