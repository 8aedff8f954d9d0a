"""The hedged clients of the cases: made on request, closed after the test. Each case runs with the async and the sync SDK, and
with a plain SDK through the gateway, unless it is marked `async_only`, `sync_only` or `library_only` with the reason."""

import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from openai import AsyncOpenAI, DefaultAsyncHttpxClient, DefaultHttpxClient, OpenAI
from tests.cases.support import Handle, Hedge
from tests.cases.through_gateway import Gateways
from tests.sdk.adapters import Adapter, Speak, Speaker
from tests.sdk.racing import plain
from tests.sdk.threaded import Threaded

import hedgerow
from hedgerow.testing.process import SandboxProcess
from hedgerow.transports.httpx2_private import transports_of


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "hedge" in metafunc.fixturenames:
        metafunc.parametrize("hedge", _manners(metafunc.definition), indirect=True)


def _manners(case: pytest.Item) -> list[str]:
    manners = ["async", "sync", "gateway"]
    for mark, left_out in (("async_only", "sync"), ("sync_only", "async gateway"), ("library_only", "gateway")):
        if (alone := case.get_closest_marker(mark)) is not None:
            assert alone.kwargs["reason"]
            manners = [manner for manner in manners if manner not in left_out.split()]
    return manners


@pytest.fixture
async def hedge(
    request: pytest.FixtureRequest, hedgerow_sandbox: SandboxProcess, tmp_path: Path
) -> AsyncIterator[Hedge]:
    """Makes hedged clients of the sandbox that back a call up after 50 ms, whatever it costs, unless the settings say
    otherwise. `client`: the SDK client to hedge, in place of a plain one with `options`. `between`: stands between the race and
    the transport that really sends; a sync client's is the twin on hedgerow's own loop, since transports of other makes are
    refused there. Through the gateway neither makes sense."""
    sync = request.param == "sync"
    async with AsyncExitStack() as clients:
        if request.param == "gateway":
            yield Gateways(hedgerow_sandbox, tmp_path, clients).client
            return

        def make(
            *,
            backup: Any = None,
            clock: Any = None,
            client: AsyncOpenAI | OpenAI | None = None,
            options: Any = None,
            between: Callable[[Handle], Handle] | None = None,
            **settings: Any,
        ) -> Any:
            policy = hedgerow.Policy(**{"trigger": "first_token", "delay": 0.05, "budget": "off", **settings})
            bare = client or (_sync if sync else plain)(hedgerow_sandbox, **_with_cheap_http(options or {}, sync=sync))
            hedged: Any = hedgerow.hedged(bare, policy=policy, backup=backup, clock=clock)
            if between is not None:
                inner = transports_of((hedged if sync else bare)._client)[0]
                twin: Any = inner.twin() if isinstance(inner, hedgerow.Transport) else inner
                twin.handle_async_request = between(twin.handle_async_request)
            made = Threaded(hedged) if isinstance(hedged, OpenAI) else hedged
            clients.push_async_callback(made.close)
            return made

        yield make


@pytest.fixture(params=["library", "gateway"])
async def speak(
    request: pytest.FixtureRequest, hedgerow_sandbox: SandboxProcess, tmp_path: Path, adapter: Adapter, sync: bool
) -> AsyncIterator[Speak]:
    """Makes speakers (tests/sdk/adapters.py), hedged themselves or plain ones of a gateway, and closes them after the test."""
    async with AsyncExitStack() as speakers:
        gateways = Gateways(hedgerow_sandbox, tmp_path, speakers)

        def make(**settings: Any) -> Speaker:
            through = request.param == "gateway"
            hedged = partial(gateways.speaker, adapter) if through else partial(adapter.speaker, hedgerow_sandbox)
            speaker = hedged(sync=sync, **settings)
            speakers.push_async_callback(speaker.shut)
            return speaker

        yield make


def _sync(sandbox: SandboxProcess, **options: Any) -> OpenAI:
    limits = options.pop("limits", None)
    if limits is not None:
        options["http_client"] = DefaultHttpxClient(limits=limits)
    return OpenAI(**{"base_url": f"{sandbox.url}/v1", "api_key": "k", "max_retries": 0, **options})


def _with_cheap_http(options: dict[str, Any], *, sync: bool) -> dict[str, Any]:
    """An HTTP client that trusts no certificate authority: reading them all takes longer than most of these tests."""
    if "limits" in options:
        return options
    kind = DefaultHttpxClient if sync else DefaultAsyncHttpxClient
    return {"http_client": kind(verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)), **options}
