"""The hedged clients of the cases: made on request, closed after the test. Each case runs with the async and the sync SDK, unless
it is marked `async_only` with the reason."""

import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest
from openai import AsyncOpenAI, DefaultAsyncHttpxClient, DefaultHttpxClient, OpenAI
from tests.cases.support import Hedge
from tests.sdk.racing import plain
from tests.sdk.threaded import Threaded

import hedgerow
from hedgerow.testing.process import SandboxProcess

# What these try out is the async client's own: cancelled tasks, its pool, its transport, a fleet of a hundred callers. The
# synchronous side of closing and leaving has its tests in tests/sdk/test_sync_client.py and test_matrix.py.
ASYNC_ONLY = ("test_08", "test_09", "test_12", "test_13", "test_14", "test_16", "test_19")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "hedge" in metafunc.fixturenames:
        module = metafunc.module.__name__.rpartition(".")[2]
        alone = module.startswith(ASYNC_ONLY) or metafunc.definition.get_closest_marker("async_only")
        metafunc.parametrize("hedge", ["async"] if alone else ["async", "sync"], indirect=True)


@pytest.fixture
async def hedge(request: pytest.FixtureRequest, hedgerow_sandbox: SandboxProcess) -> AsyncIterator[Hedge]:
    """Makes hedged clients of the sandbox that back a call up after 50 ms, whatever it costs, unless the settings say
    otherwise. `client`: the SDK client to hedge, in place of a plain one with `options`."""
    sync = request.param == "sync"
    async with AsyncExitStack() as clients:

        def make(
            *,
            backup: Any = None,
            clock: Any = None,
            client: AsyncOpenAI | None = None,
            options: Any = None,
            **settings: Any,
        ) -> Any:
            policy = hedgerow.Policy(**{"trigger": "first_token", "delay": 0.05, "budget": "off", **settings})
            bare = client or (_sync if sync else plain)(hedgerow_sandbox, **_with_cheap_http(options or {}, sync=sync))
            hedged: Any = hedgerow.hedged(bare, policy=policy, backup=backup, clock=clock)
            made = Threaded(hedged) if isinstance(hedged, OpenAI) else hedged
            clients.push_async_callback(made.close)
            return made

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
