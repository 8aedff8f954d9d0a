"""Transports and clients of the wrong kind are refused with the class that belongs there; what an SDK client was told is kept."""

import asyncio
import subprocess
import sys
from typing import Any

import httpx
import httpx2
import openai
import pytest
from anthropic import Anthropic
from openai import AsyncAzureOpenAI, AsyncOpenAI, OpenAI

import hedgerow
from hedgerow.settings import SettingError
from hedgerow.transports.targets import request_for

URL = "http://127.0.0.1:9/"


async def _through(client: Any) -> None:
    async with client:
        await client.get(URL)


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: hedgerow.AsyncTransport(httpx2.HTTPTransport()), "hedgerow.Transport"),
        (lambda: hedgerow.Transport(httpx2.AsyncHTTPTransport()), "hedgerow.AsyncTransport"),
        (lambda: hedgerow.AsyncTransport(httpx2.AsyncHTTPTransport), "AsyncHTTPTransport is a class"),
        (
            lambda: hedgerow.AsyncTransport(httpx2.AsyncClient()),
            "httpx2.AsyncClient(transport=hedgerow.AsyncTransport(…))",
        ),
        (lambda: hedgerow.Transport(None), "no transport"),
        (lambda: hedgerow.Transport(httpx.HTTPTransport()), "hedgerow.HttpxTransport"),
        (lambda: hedgerow.HttpxTransport(httpx2.HTTPTransport()), "hedgerow.Transport"),
        (
            lambda: httpx2.Client(transport=hedgerow.HttpxTransport(httpx.HTTPTransport())).get(URL),
            "hedgerow.Transport",
        ),
        (
            lambda: httpx.Client(transport=hedgerow.Transport(httpx2.HTTPTransport())).get(URL),
            "hedgerow.HttpxTransport",
        ),
        (
            lambda: asyncio.run(_through(httpx2.AsyncClient(transport=hedgerow.Transport(httpx2.HTTPTransport())))),
            "hedgerow.AsyncTransport",
        ),
        (
            lambda: httpx2.Client(transport=hedgerow.AsyncTransport(httpx2.AsyncHTTPTransport())).get(URL),
            "hedgerow.Transport",
        ),
        (
            lambda: asyncio.run(_through(httpx.AsyncClient(transport=hedgerow.HttpxTransport(httpx.HTTPTransport())))),
            "hedgerow.AsyncHttpxTransport",
        ),
    ],
)
def test_the_error_names_the_class_that_belongs_there(make: Any, named: str) -> None:
    with pytest.raises(hedgerow.UnsupportedError) as refused:
        make()
    assert named in str(refused.value)


def test_httpx2_under_the_name_of_httpx_is_no_classic_httpx() -> None:
    program = (
        "import sys, httpx2; sys.modules['httpx'] = httpx2\n"
        "import hedgerow, openai, anthropic\n"
        "for make in (openai.OpenAI, openai.AsyncOpenAI, anthropic.Anthropic, anthropic.AsyncAnthropic):\n"
        "    hedgerow.hedged(make(api_key='k'))\n"
        "hedgerow.AsyncTransport(httpx2.AsyncHTTPTransport())\n"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=True)


class Tenant(OpenAI):
    """A subclass with an argument of its own, which the SDK's copy() does not know."""

    def __init__(self, tenant: str) -> None:
        super().__init__(api_key="k", max_retries=5, _strict_response_validation=True)
        self.tenant = tenant


def test_a_client_keeps_what_it_was_told() -> None:
    plain = Tenant("t-1")
    assert plain.chat.completions
    copied = hedgerow.hedged(plain)
    assert isinstance(copied, Tenant)
    assert (copied.tenant, copied.max_retries, copied._strict_response_validation) == ("t-1", 5, True)
    assert copied.chat.completions._client is copied
    assert plain.chat.completions._client is plain
    assert hedgerow.hedger_of(copied.with_options(timeout=3.0) if type(plain) is OpenAI else copied)


@pytest.mark.parametrize("make", [OpenAI, AsyncOpenAI, Anthropic])
def test_options_of_a_hedged_client_can_still_be_changed(make: Any) -> None:
    copied = hedgerow.hedged(make(api_key="k")).with_options(max_retries=7)
    assert copied.max_retries == 7
    assert hedgerow.hedger_of(copied)
    assert type(copied).__name__ == make.__name__


def _sent(target: hedgerow.Target, url: str, **headers: str) -> httpx2.Request:
    return request_for(target, httpx2.Request("POST", url, headers=headers, content=b"{}"), b"{}")


AZURE = "https://home.openai.azure.com/openai/deployments/d/chat/completions?api-version=2024-10-21"
OPENAI = "https://api.openai.com/v1/chat/completions"


def test_the_query_of_a_targets_address_goes_along_and_wins() -> None:
    target = hedgerow.Target(
        base_url="https://b.openai.azure.com/openai/deployments/e?api-version=2025-01-01", api_key="kb"
    )
    sent = _sent(target, AZURE, **{"api-key": "ka"})
    assert str(sent.url) == "https://b.openai.azure.com/openai/deployments/e/chat/completions?api-version=2025-01-01"
    assert sent.headers["api-key"] == "kb"


def test_a_key_goes_where_the_target_looks_for_it() -> None:
    to_openai = _sent(hedgerow.Target(base_url="https://api.openai.com/v1", api_key="kb"), AZURE, **{"api-key": "ka"})
    assert (to_openai.headers["authorization"], "api-key" in to_openai.headers) == ("Bearer kb", False)
    assert "api-version" not in to_openai.url.params
    azure = "https://b.openai.azure.com/openai/deployments/e?api-version=1"
    to_azure = _sent(hedgerow.Target(base_url=azure, api_key="kb"), OPENAI, authorization="Bearer ka")
    assert (to_azure.headers["api-key"], "authorization" in to_azure.headers) == ("kb", False)
    same_kind = _sent(
        hedgerow.Target(base_url="https://eu.example/v1", api_key="kb"), OPENAI, authorization="Bearer ka"
    )
    assert same_kind.headers["authorization"] == "Bearer kb"


def test_an_address_with_a_fragment_is_refused() -> None:
    with pytest.raises(SettingError, match="fragment"):
        hedgerow.Target(base_url="https://eu.example/v1#x")


async def test_a_replacement_goes_with_a_fresh_key() -> None:
    asked: list[str] = []
    keys = iter(["first", "second", "third"])

    async def key() -> str:
        return next(keys)

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(request.headers["authorization"])
        if len(asked) == 1:
            return httpx2.Response(500, json={"error": {"message": "boom"}})
        return httpx2.Response(
            200, json={"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": []}
        )

    inside = httpx2.AsyncClient(transport=httpx2.MockTransport(answer))
    sdk = AsyncOpenAI(api_key=key, base_url="http://127.0.0.1:9/v1", http_client=inside, max_retries=0)
    client = hedgerow.hedged(sdk, policy=hedgerow.Policy(budget="off", trigger="off"))
    await client.chat.completions.create(model="m", messages=[{"role": "user", "content": "x"}])
    assert asked == ["Bearer first", "Bearer second"]


def test_azure_clients_are_taken_too() -> None:
    client = AsyncAzureOpenAI(azure_endpoint="https://a.openai.azure.com", api_key="k", api_version="1")
    assert hedgerow.hedger_of(hedgerow.hedged(client))
    assert isinstance(hedgerow.hedged(client), openai.AsyncAzureOpenAI)
