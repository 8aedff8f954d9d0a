"""The private attributes of google-genai that transports/genai_client.py relies on: an upgrade that moves them fails here."""

import inspect
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest
from google import genai
from google.genai import _api_client
from tests.sdk.genai_calls import plain

from hedgerow.testing.process import SandboxProcess

STUB = """
class _Refused:
    def __init__(self, *_, **__): raise AssertionError("a hedged call went through aiohttp")
class ClientResponse: ...
class ClientConnectorError(Exception): ...
class ClientConnectorDNSError(Exception): ...
class ClientOSError(Exception): ...
class ServerDisconnectedError(Exception): ...
class ClientSession(_Refused):
    def _request(self, method, url, *, ssl=None): ...
class TCPConnector(_Refused): ...
class ClientTimeout(_Refused): ...
"""
CALL = """
import asyncio, sys
import hedgerow
from google.genai import _api_client
from tests.sdk.genai_calls import SOON, asked, plain
class Sandbox: url = sys.argv[1]
there = sys.argv[2] != "none"
assert _api_client.has_aiohttp is there
original = plain(Sandbox())
assert bool(original._api_client._use_aiohttp()) is there
client = hedgerow.hedged(original, policy=SOON)
async def call():
    scripts = {"first_token_s": 5.0}, {"first_token_s": 0.01, "text": "rescued"}
    print((await client.aio.models.generate_content(**asked("aio/1", *scripts))).text)
    print("".join([c.text or "" async for c in await client.aio.models.generate_content_stream(**asked("aio/2", *scripts))]))
asyncio.run(call())
print(hedgerow.hedger_of(client).stats()["backup_wins"])
"""


def test_a_client_has_an_inner_half_with_two_http_clients(hedgerow_sandbox: SandboxProcess) -> None:
    client: Any = plain(hedgerow_sandbox)
    api = client._api_client
    assert isinstance(api._httpx_client, httpx2.Client)
    assert isinstance(api._async_httpx_client, httpx2.AsyncClient)
    assert isinstance(api._http_options, genai.types.HttpOptions)
    assert (api.api_key, api._aiohttp_sessions, api._async_httpx_client._per_loop) == ("secret-key", {}, True)
    assert (api._use_google_auth_sync(), api._use_google_auth_async()) == (False, False)
    assert api._async_httpx_client._loop_clients == {}
    assert api._use_aiohttp() is _api_client.has_aiohttp
    assert client.aio._api_client is client.models._api_client is api


def test_the_inner_half_is_made_by_a_method_that_a_subclass_may_replace() -> None:
    sentinel: Any = object()

    class Other(genai.Client):
        @staticmethod
        def _get_api_client(**_: object) -> Any:
            return sentinel

        def __del__(self) -> None: ...

    client: Any = Other()
    assert client._api_client is client.aio._api_client is client.models._api_client is sentinel
    assert hasattr(client, "_debug_config")


def test_retries_are_made_under_one_method_and_responses_refer_to_their_own_iterators() -> None:
    assert inspect.iscoroutinefunction(_api_client.BaseApiClient._async_request)
    assert inspect.isfunction(_api_client.BaseApiClient._request)
    response = _api_client.HttpResponse({}, response_stream=None)
    assert aiter(response) is response
    assert inspect.isasyncgenfunction(type(response).async_segments)


@pytest.mark.parametrize("how", ["none", "stub", "real"])
def test_with_or_without_aiohttp_installed_hedged_calls_go_through_httpx2(
    hedgerow_sandbox: SandboxProcess, tmp_path: Path, how: str
) -> None:
    if how == "real":
        pytest.importorskip("aiohttp", reason="the real one is not installed; a module of its name stands in")
    else:
        (tmp_path / "aiohttp.py").write_text(STUB if how == "stub" else "raise ImportError")
    here = str(Path(__file__).parents[2])
    path = os.pathsep.join([str(tmp_path), here, *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", CALL, hedgerow_sandbox.url, how],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": path},
        check=False,
        timeout=240,
    )
    assert done.stdout.split() == ["rescued", "rescued", "2"], done.stderr
