"""A route's `model`, and what a target sets, hold however a request names its model: its path, its body, another field, twice."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.gateway.attack.conftest import Three, shipped
from tests.gateway.attack.test_raw_requests import CLOSE, HOST, bare, post

Start = Callable[..., Awaitable[Three]]
CHAT, GEMINI = "/v1/chat/completions", "/v1beta/models/lite:generateContent"
LITE = "lite*"


@pytest.fixture
async def lite(behind: Start) -> Three:
    """Only models whose names begin with "lite" are served; OpenAI's target sets a tier."""
    targets = [target for target in shipped()["target"] if "like" not in target]
    targets[0]["set"] = {"service_tier": "default"}
    return await behind(
        target=[*targets, {"name": "azure", "dialect": "openai", "base_url": "https://api.openai.com", "api_key": "k"}],
        route=[
            {"path": "/v1/*", "model": LITE, "targets": ["openai"]},
            {"path": "/openai/*", "model": LITE, "targets": ["azure"]},
            {"path": "/v1/messages*", "model": LITE, "targets": ["anthropic"]},
            {"path": "/v1*/*", "model": LITE, "targets": ["gemini"]},
        ],
        policy={},
    )


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (CHAT, '{"model":"lite-1"}'),
        (CHAT, '{"model":"LITE-1","messages":[{"role":"user","content":"a \\"model\\": dear"}]}'),
        (CHAT, '{"model":"lite-1","models":["lite-2"],"fallbacks":["lite-3",{"model":"lite-4"}]}'),
        (CHAT, '{"model":"lite-1","tools":[{"type":"function","function":{"parameters":{"model":{"type":"string"}}}}]}'),
        (CHAT, '{"model":"lite-1","x":{"model":"not asked for"},"messages":[{"model":"nor that"}]}'),
        (CHAT, '{"model":"lite-1","model":"lite-2"}'),
        (CHAT, '{"model":"lite-1","text":"\\u0041"}'),
        ("/openai/deployments/lite-1/chat/completions", "{}"),
        ("/openai/deployments/lite-1/chat/completions", '{"model":"lite-2"}'),
        ("/v1/messages/batches", '{"requests":[{"params":{"model":"lite-1"}},{"params":{"model":"lite-2"}}]}'),
        (GEMINI, "{}"),
        ("/v1beta/models/lite:predict", "{}"),
        ("/v1beta/models/lite:batchEmbedContents", '{"requests":[{"model":"models/lite"}]}'),
    ],
)  # fmt: skip
async def test_models_that_fit_are_served(lite: Three, path: str, body: str) -> None:
    got = await lite.say(post(path.encode(), body=body.encode()))
    assert got.startswith(b"HTTP/1.1 200 "), got
    assert len(lite.reached) == 1


@pytest.mark.parametrize(
    ("path", "body"),
    [
        # the same name twice, of which a server may take either
        (CHAT, '{"model":"dear","model":"lite"}'),
        (CHAT, '{"model":"lite","model":"dear"}'),
        (CHAT, '{"mod\\u0065l":"dear","model":"lite"}'),
        (CHAT, '{"\\u006Dodel":"dear","\\u006dodel":"lite"}'),
        (CHAT, '{"Model":"dear","model":"lite"}'),
        (CHAT, '{"model":"dear","model" :"lite","x":' + "9" * 5_000 + "}"),
        (CHAT, '{"model":"dear","model":"lite","x":NaN}'),
        (CHAT, '{"model":"dear","model":"lite","x":"\\ud800"}'),
        (CHAT, '{"model":"dear","model":null}'),
        ("/v1/embeddings", '{"model":"dear","model":"lite"}'),
        ("/v1/responses", '{"model":"dear","model":"lite"}'),
        ("/v1/images/generations", '{"model":"dear","model":"lite"}'),
        ("/v1/messages", '{"model":"dear","model":"lite"}'),
        # others to fall back on, or to work with
        (CHAT, '{"model":"lite","models":["lite","dear"]}'),
        (CHAT, '{"model":"lite","models":"dear"}'),
        (CHAT, '{"model":"lite","fallbacks":["dear"]}'),
        (CHAT, '{"model":"lite","fallbacks":[{"lite":["dear"]}]}'),
        (CHAT, '{"models":["dear"]}'),
        ("/v1/messages", '{"model":"lite","fallbacks":[{"model":"dear"}]}'),
        ("/v1/messages", '{"model":"lite","tools":[{"type":"advisor_20260301","model":"dear"}]}'),
        ("/v1/messages/batches", '{"model":"lite","requests":[{"params":{"model":"lite"}},{"params":{"model":"dear"}}]}'),
        ("/v1/responses", '{"model":"lite","tools":[{"type":"image_generation","model":"dear"}]}'),
        ("/v1beta/models/lite:batchEmbedContents", '{"requests":[{"model":"models/dear"}]}'),
        # a model in the path, where the body's is not looked at
        ("/openai/deployments/dear/chat/completions", '{"model":"lite"}'),
        ("/openai/deployments/dear/embeddings", '{"model":"lite"}'),
        ("/openai/deployments/dear/images/generations", '{"model":"lite"}'),
        ("/openai/deployments/%64ear/responses", '{"model":"lite"}'),
        ("/v1/engines/dear/completions", '{"model":"lite"}'),
        ("/v1beta/models/dear:predict", '{"model":"lite"}'),
        ("/v1beta/models/dear:predictLongRunning", '{"model":"lite"}'),
        ("/v1beta/models/dear:batchGenerateContent", '{"model":"lite"}'),
        ("/v1beta/models/dear%3AgenerateAnswer", '{"model":"lite"}'),
        ("/v1beta/tunedModels/dear:generateContent", '{"model":"lite"}'),
        ("/v1beta/dynamic/dear:generateContent", '{"model":"lite"}'),
    ],
)  # fmt: skip
async def test_no_other_model_comes_through(lite: Three, path: str, body: str) -> None:
    got = await lite.say(post(path.encode(), body=body.encode()))
    assert got.startswith(b"HTTP/1.1 404 "), got
    assert not lite.reached


async def test_a_body_that_names_several_and_cannot_be_read_to_its_end_is_refused(lite: Three) -> None:
    body = b'{"model":"dear","model":"lite","x":' + b"[" * 1_010 + b"]" * 1_010 + b"}"
    got = await lite.say(post(body=body))
    assert got.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 404 ")), got
    assert not lite.reached


@pytest.mark.parametrize(
    "odd", ["NaN", "-Infinity", '"\\ud800"', "1e999", "9" * 400, "[" * 300 + "]" * 300, '"\\u0000"'], ids=range(7)
)
async def test_what_is_set_is_set_in_whatever_a_server_reads(lite: Three, odd: str) -> None:
    body = f'{{"model":"lite","service_tier":"priority","x":{odd}}}'
    got = await lite.say(post(body=body.encode()))
    assert got.startswith(b"HTTP/1.1 200 "), got
    assert json.loads(lite.providers["openai"].last_body)["service_tier"] == "default"


@pytest.mark.parametrize(
    "body", [b"\xef\xbb\xbf{}", "{}".encode("utf-16"), b"[{}]", b'{"a":1,}', b"", b"a=b"], ids=range(6)
)
async def test_what_cannot_be_set_goes_nowhere(behind: Start, body: bytes) -> None:
    targets: list[dict[str, Any]] = shipped()["target"]
    targets[0]["set"] = {"service_tier": "default"}
    three = await behind(target=targets)
    got = await three.say(post(body=body))
    assert got.startswith(b"HTTP/1.1 400 "), got
    assert b"unreadable_body" in got
    assert not three.reached


@pytest.mark.parametrize(
    ("path", "label"), [("/v1/files", "multipart/form-data; boundary=b"), ("/upload/v1beta/files", "application/json")]
)
async def test_nothing_is_laid_over_what_is_uploaded(behind: Start, path: str, label: str) -> None:
    targets: list[dict[str, Any]] = shipped()["target"]
    for target in targets:
        target["set"] = {"service_tier": "default"}
    three = await behind(target=targets)
    own = b"openai-version: 1\r\n" if path == "/v1/files" else b""
    lines = (HOST, CLOSE, own, f"content-type: {label}\r\n".encode(), b"content-length: 7\r\n")
    for body in (b'{"a":1}', b"no JSON"):
        three.forget()
        got = await three.say(bare(*lines, path=path.encode(), body=body))
        assert got.startswith(b"HTTP/1.1 200 "), got
        (provider,) = [provider for provider in three.providers.values() if provider.asked]
        assert provider.last_body == body
