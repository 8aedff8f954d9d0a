"""A call leaves only for a target that speaks its API: every request that an SDK can make, and what contradicts itself."""

import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from google import genai
from tests.gateway.attack.conftest import Three

from hedgerow.gateway.recognition import ONLY, OWNER, Recognised, recognised
from hedgerow.values.request import WireRequest

CALL = re.compile(r"_(get|post|put|delete|patch|get_api_list)\(\s*(?:path_template\(\s*)?f?\"(/[^\"?]*)")
PATH = re.compile(r"path = '([^']*)'")
FIELD = re.compile(r"\{[^}]*\}")
METHODS = {"get_api_list": "GET"}
OF_GOOGLES_VERTEX = ("publishers", "projects", "reasoningEngines")


def sources(package: str) -> Iterator[str]:
    spec = find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    for file in Path(spec.origin).parent.rglob("*.py"):
        if "tests" not in file.parts:
            yield file.read_text()


def stainless_calls(package: str) -> list[tuple[str, str]]:
    """Method and path of every call in the sources of an SDK that Stainless makes."""
    found = {
        (METHODS.get(method, method.upper()), FIELD.sub("an-id", path))
        for source in sources(package)
        for method, path in CALL.findall(source)
    }
    return sorted(found)


def googles_calls() -> list[tuple[str, str]]:
    paths = {FIELD.sub("an-id", path) for source in sources("google.genai") for path in PATH.findall(source)}
    filled = {path.replace("an-id", "models/an-id", 1) if path.startswith("an-id") else path for path in paths}
    return sorted(("POST" if ":" in path else "GET", path) for path in filled if path not in ("/", "test/path"))


def requests_of(api: str, url: str) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Method, address and headers, as the SDK itself makes them."""
    if api == "gemini":
        for version in ("v1", "v1beta"):
            client: Any = genai.Client(api_key="k", http_options={"base_url": url, "api_version": version})._api_client
            for method, path in googles_calls():
                built = client._build_request(method.lower(), path, {}, None)
                yield method, built.url, dict(built.headers)
        return
    options = openai._models.FinalRequestOptions if api == "openai" else anthropic._models.FinalRequestOptions
    sdk: Any = (
        openai.OpenAI(api_key="k", base_url=f"{url}/v1")
        if api == "openai"
        else anthropic.Anthropic(api_key="k", base_url=url)
    )
    for method, path in stainless_calls(api):
        built = sdk._build_request(options.construct(method=method.lower(), url=path), retries_taken=0)
        yield method, str(built.url), dict(built.headers)


@pytest.mark.parametrize("api", ["openai", "anthropic", "gemini"])
async def test_whatever_an_sdk_can_ask_reaches_no_foreign_provider(three: Three, api: str) -> None:
    asked, served = 0, 0
    async with httpx2.AsyncClient(timeout=60.0) as client:
        for method, url, headers in requests_of(api, three.gateway.url):
            three.forget()
            body = {"content": b"{}"} if method in ("POST", "PUT", "PATCH") else {}
            headers.pop("content-length", None)
            got = await client.request(method, url, headers=headers, **body)
            assert set(three.reached) <= {api}, f"{method} {url} went to {three.reached}"
            assert got.status_code in (200, 404), f"{method} {url}: {got.text}"
            assert (got.status_code == 200) == bool(three.reached)
            asked, served = asked + 1, served + got.status_code // 200 % 2
    assert asked > 40
    assert served >= 8


def bare(method: str, path: str) -> Recognised:
    """What is known by the path alone."""
    return recognised(WireRequest(method=method, path=path, headers=(), body=None), frozenset(), key_in_query=False)


def test_the_lists_of_paths_agree_with_the_sdks() -> None:
    """A path that an SDK asks for is one that its API may have by our lists; and no name stands in two lists by mistake."""
    for api in ("openai", "anthropic"):
        version = "/v1" if api == "openai" else ""
        for method, path in stainless_calls(api):
            seen = bare(method, version + path)
            assert api in seen.apis, f"{method} {path} is taken for {seen.apis}"
    for _, path in googles_calls():
        if not path.startswith(OF_GOOGLES_VERTEX):
            seen = recognised(
                WireRequest(method="GET", path=f"/v1/{path}", headers=(), body=None), frozenset(), key_in_query=False
            )
            assert "gemini" in seen.apis, f"{path} is taken for {seen.apis}"
    names = [name for owned in ONLY.values() for name in owned.split()]
    assert len(names) == len(set(names))
    assert set(names) <= set(OWNER)


VERSION, GOOG = ("anthropic-version", "2023-06-01"), ("x-goog-api-client", "google-genai-sdk/3")
CHAT, MESSAGES = "/v1/chat/completions", "/v1/messages"
GEMINI = "/v1/models/g:generateContent"


@pytest.mark.parametrize(
    ("method", "path", "headers", "status", "goes_to"),
    [
        # path and headers agree, or only one of them speaks
        ("POST", CHAT, [], 200, "openai"),
        ("POST", MESSAGES, [], 200, "anthropic"),
        ("POST", GEMINI, [], 200, "gemini"),
        ("POST", CHAT, [("x-goog-api-key", "k")], 200, "openai"),  # where a client puts its key says nothing
        ("POST", MESSAGES, [VERSION, ("authorization", "Bearer t")], 200, "anthropic"),
        ("GET", "/v1/models", [VERSION], 200, "anthropic"),
        ("GET", "/v1/models", [GOOG], 200, "gemini"),
        ("GET", "/v1/models", [("x-goog-api-key", "k")], 200, "gemini"),
        ("GET", "/v1/models?key=k", [], 200, "gemini"),
        ("GET", "/v1/models", [("user-agent", "OpenAI/Python 3.0")], 200, "openai"),
        ("GET", "/v1/models", [("openai-version", "2020-10-01")], 200, "openai"),
        ("GET", "/v1/models/ft:gpt-4o:acme::a1", [("user-agent", "AsyncOpenAI/Python 3.0")], 200, "openai"),
        ("POST", "/v1/messages/batches", [VERSION], 200, "anthropic"),
        ("GET", "/v1/files", [VERSION], 200, "anthropic"),
        # nothing says which, or all say something else
        ("GET", "/v1/models", [], 400, None),
        ("GET", "/v1/files", [("authorization", "Bearer t")], 400, None),
        ("POST", GEMINI, [VERSION], 400, None),
        ("POST", MESSAGES, [GOOG], 400, None),
        ("POST", CHAT, [VERSION], 400, None),
        ("POST", CHAT, [GOOG], 400, None),
        ("POST", MESSAGES, [("openai-organization", "org")], 400, None),
        ("GET", "/v1/models", [VERSION, GOOG], 400, None),
        # an API that is known, and no route of it
        ("POST", "/v1/organizations/invites", [VERSION], 404, None),
        ("POST", "/v1/fine_tuning/jobs", [], 404, None),
        ("POST", "/v1/images/generations", [], 404, None),
        ("POST", "/v1beta/tunedModels", [GOOG], 404, None),
        ("DELETE", "/v1/organization/users/u", [], 404, None),
    ],
)
async def test_the_api_is_recognised_first(
    three: Three, method: str, path: str, headers: list[tuple[str, str]], status: int, goes_to: str | None
) -> None:
    async with httpx2.AsyncClient(timeout=60.0) as client:
        body = {"content": b'{"model":"gpt-x"}'} if method == "POST" else {}
        said = {"user-agent": "curl/8", **dict(headers)}
        got = await client.request(method, three.gateway.url + path, headers=said, **body)
    assert got.status_code == status, got.text
    assert three.reached == ([goes_to] if goes_to else [])
    if status == 400:
        named = {name for name, _ in headers} & {"anthropic-version", "x-goog-api-client", "openai-organization"}
        assert all(name in got.text for name in named) if named else "anthropic-version" in got.text


async def test_a_provider_gets_its_own_key_and_no_other(three: Three) -> None:
    for path, api in ((CHAT, "openai"), (MESSAGES, "anthropic"), (GEMINI, "gemini")):
        three.forget()
        async with httpx2.AsyncClient(timeout=60.0) as client:
            await client.post(three.gateway.url + path, content=b'{"model":"gpt-x"}', headers={"x-api-key": "clients"})
        assert f"key-of-{api}" in three.last_head
        assert "clients" not in three.last_head
        assert three.last_head.count("key-of-") == 1
