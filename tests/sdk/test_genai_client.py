"""hedged(genai.Client()): what it keeps, what it refuses, and what both of its halves share."""

import asyncio
import gc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest
from google import genai
from google.genai import errors, types
from tests.sdk.genai_calls import SOON, asked, plain, racing
from tests.sdk.racing import QUICK, SLOW, eventually, outcomes

import hedgerow
from hedgerow.testing.process import SandboxProcess


async def test_both_halves_are_rescued_under_one_hedger(hedgerow_sandbox: SandboxProcess) -> None:
    client = racing(hedgerow_sandbox)
    whole = client.models.generate_content(**asked("g/sync", SLOW, {**QUICK, "text": "rescued"}))
    assert whole.text == "rescued"
    whole = await client.aio.models.generate_content(**asked("g/async", SLOW, {**QUICK, "text": "rescued"}))
    assert whole.text == "rescued"
    assert whole.usage_metadata is not None
    for case in ("g/sync", "g/async"):
        await eventually(lambda case=case: outcomes(hedgerow_sandbox, case) == ["disconnected", "completed"])
    hedger = hedgerow.hedger_of(client)
    assert hedgerow.hedger_of(client.aio) is hedgerow.hedger_of(client.models) is hedger
    await eventually(lambda: len(list(hedger.events)) == 2)
    events = list(hedger.events)
    assert [(event.dialect, event.model, event.winner) for event in events] == [("gemini", "gemini-2.5-flash", 1)] * 2


async def test_chats_embeddings_and_counts_are_hedged_too(hedgerow_sandbox: SandboxProcess) -> None:
    client = racing(hedgerow_sandbox)
    chat = client.aio.chats.create(model="gemini-2.5-flash")
    config = asked("g/chat", SLOW, {**QUICK, "text": "hello"})["config"]
    assert (await chat.send_message("hi", config=config)).text == "hello"
    config = {"http_options": asked("g/embed", SLOW, QUICK)["config"]["http_options"]}
    embedded = await client.aio.models.embed_content(model="e", contents=["a", "b"], config=config)
    assert embedded.embeddings is not None
    assert len(embedded.embeddings) == 2
    config = {"http_options": asked("g/count", SLOW, QUICK)["config"]["http_options"]}
    counted = await client.aio.models.count_tokens(model="m", contents="hello there", config=config)
    assert counted.total_tokens
    for case in ("g/chat", "g/embed", "g/count"):
        await eventually(lambda case=case: outcomes(hedgerow_sandbox, case) == ["disconnected", "completed"])


async def test_the_original_stays_unhedged_and_its_settings_are_kept(hedgerow_sandbox: SandboxProcess) -> None:
    retries = types.HttpRetryOptions(attempts=1)
    original = plain(hedgerow_sandbox, headers={"x-mine": "yes"}, timeout=7_000, retry_options=retries)
    client: Any = hedgerow.hedged(original, policy=SOON)
    assert isinstance(client, genai.Client)
    mine, theirs = client._api_client, original._api_client
    assert (mine.api_key, mine.vertexai, mine.project) == (theirs.api_key, theirs.vertexai, theirs.project)
    kept, given = mine._http_options, theirs._http_options
    assert (kept.headers, kept.timeout, kept.retry_options) == (given.headers, 7_000, retries)
    assert (kept.base_url, kept.api_version) == (given.base_url, given.api_version)
    await original.aio.models.generate_content(**asked("g/plain", {"first_token_s": 0.3}, QUICK))
    assert len(outcomes(hedgerow_sandbox, "g/plain")) == 1
    await original.aio.aclose()
    with pytest.raises(hedgerow.UnsupportedError):
        hedgerow.hedger_of(original)
    with pytest.raises(hedgerow.UnsupportedError, match="hedged already"):
        hedgerow.hedged(client)


async def test_neither_the_end_of_the_copy_nor_that_of_the_original_disturbs_the_other(
    hedgerow_sandbox: SandboxProcess,
) -> None:
    original = plain(hedgerow_sandbox)
    copy = hedgerow.hedged(original)
    call = original.aio.models.generate_content(**asked("g/o", {"first_token_s": 0.3, "text": "fine"}))
    running = asyncio.ensure_future(call)
    await eventually(lambda: hedgerow_sandbox.stats()["in_flight"] == 1)
    await copy.aio.aclose()
    del copy
    gc.collect()
    assert (await running).text == "fine"
    await original.aio.aclose()
    client = hedgerow.hedged(original, policy=SOON)
    del original
    gc.collect()
    assert client.models.generate_content(**asked("g/c", SLOW, {**QUICK, "text": "still"})).text == "still"


async def test_http_clients_of_ones_own_keep_their_hooks(hedgerow_sandbox: SandboxProcess) -> None:
    seen: list[str] = []

    async def hook(request: httpx2.Request) -> None:
        seen.append(request.url.path.rpartition(":")[2])

    async with httpx2.AsyncClient(event_hooks={"request": [hook]}, timeout=9.0) as own_async:
        with httpx2.Client(event_hooks={"request": [lambda request: seen.append(request.method)]}) as own:
            original = plain(hedgerow_sandbox, httpx_client=own, httpx_async_client=own_async)
            client = hedgerow.hedged(original, policy=SOON)
            client.models.generate_content(**asked("g/own/1", SLOW, QUICK))
            await client.aio.models.generate_content(**asked("g/own/2", SLOW, QUICK))
    assert seen == ["POST", "generateContent"]
    assert len(outcomes(hedgerow_sandbox, "g/own/2")) == 2


def test_one_client_serves_several_loops_and_threads(hedgerow_sandbox: SandboxProcess) -> None:
    client = racing(hedgerow_sandbox)

    def in_a_loop_of_its_own(number: int) -> str | None:
        call = client.aio.models.generate_content(**asked(f"g/loop/{number}", SLOW, {**QUICK, "text": f"t{number}"}))
        return asyncio.run(call).text

    assert in_a_loop_of_its_own(0) == "t0"
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(in_a_loop_of_its_own, range(1, 13))) == [f"t{number}" for number in range(1, 13)]
    assert hedgerow.hedger_of(client).stats()["requests"] == 13


async def test_vertex_with_a_key_is_hedged_at_its_own_paths(hedgerow_sandbox: SandboxProcess) -> None:
    options: Any = {"base_url": hedgerow_sandbox.url}
    client = hedgerow.hedged(genai.Client(vertexai=True, api_key="k", http_options=options), policy=SOON)
    answer = await client.aio.models.generate_content(**asked("g/vertex", SLOW, {**QUICK, "text": "rescued"}))
    assert (answer.text, client.vertexai) == ("rescued", True)


async def test_functions_that_the_sdk_calls_itself_are_called_once(hedgerow_sandbox: SandboxProcess) -> None:
    called: list[str] = []

    def sandbox_tool(note: str) -> str:
        """Takes a note."""
        called.append(note)
        return "noted"

    client = racing(hedgerow_sandbox)
    call = {"tool_calls": 1, "text": '{"note":"once"}', "first_token_s": 0.01}
    answer = await client.aio.models.generate_content(
        **asked("g/tools", SLOW, call, {**QUICK, "text": "done"}, tools=[sandbox_tool])
    )
    assert (answer.text, called) == ("done", ["once"])


async def test_errors_are_the_sdks_own(hedgerow_sandbox: SandboxProcess) -> None:
    client = racing(hedgerow_sandbox)
    with pytest.raises(errors.ClientError) as raised:
        await client.aio.models.generate_content(**asked("g/400", {"status": 400}))
    assert (raised.value.code, raised.value.status) == (400, "INVALID_ARGUMENT")
    with pytest.raises(errors.ServerError) as failed:
        client.models.generate_content(**asked("g/503", {"status": 503}))
    assert failed.value.status == "UNAVAILABLE"


@pytest.mark.parametrize("upstream_stream", [False, True])
def test_a_backup_goes_to_the_target_with_its_own_key_and_model(
    hedgerow_sandbox_factory: Callable[..., SandboxProcess], upstream_stream: bool
) -> None:
    here, there = hedgerow_sandbox_factory(time_scale=100.0), hedgerow_sandbox_factory()
    target = hedgerow.Target(base_url=there.url, api_key="theirs", set={"model": "gemini-x", "serviceTier": "priority"})
    client = racing(here, backup=target, upstream_stream=upstream_stream)
    answer = client.models.generate_content(**asked("g/target", {"first_token_s": 0.05, "text": "there"}))
    assert (answer.text, answer.model_version) == ("there", "gemini-x")
    assert outcomes(there, "g/target") == ["completed"]


def test_a_client_certificate_for_vertex_is_refused_with_the_fix(
    hedgerow_sandbox: SandboxProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    client: Any = plain(hedgerow_sandbox)
    monkeypatch.setattr(type(client._api_client), "_use_google_auth_sync", lambda _: True)
    with pytest.raises(hedgerow.UnsupportedError, match=r"httpx_client=httpx2\.Client"):
        hedgerow.hedged(client)


def test_classic_httpx_is_refused_with_the_reason(
    hedgerow_sandbox: SandboxProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = plain(hedgerow_sandbox)
    monkeypatch.setenv("GOOGLE_GENAI_HTTP_CLIENT", "httpx")
    for attempt in (lambda: hedgerow.hedged(client), hedgerow.gemini_http_options):
        with pytest.raises(hedgerow.UnsupportedError, match="unset GOOGLE_GENAI_HTTP_CLIENT"):
            attempt()


def test_settings_that_only_aiohttp_knows_are_refused_not_lost(hedgerow_sandbox: SandboxProcess) -> None:
    client = plain(hedgerow_sandbox, async_client_args={"ssl": False})
    with pytest.raises(hedgerow.UnsupportedError, match="async_client_args has ssl"):
        hedgerow.hedged(client)


def test_transports_that_belong_to_a_loop_are_refused_with_the_way_out(hedgerow_sandbox: SandboxProcess) -> None:
    mock = httpx2.MockTransport(lambda _: httpx2.Response(200))
    client = plain(hedgerow_sandbox, async_client_args={"transport": mock})
    with pytest.raises(hedgerow.UnsupportedError, match="wrap it yourself"):
        hedgerow.hedged(client)


def test_half_a_client_is_refused(hedgerow_sandbox: SandboxProcess) -> None:
    with pytest.raises(hedgerow.UnsupportedError, match=r"genai\.Client"):
        hedgerow.hedged(plain(hedgerow_sandbox).aio)


async def test_options_for_those_who_make_the_client_themselves(hedgerow_sandbox: SandboxProcess) -> None:
    given = types.HttpOptions(base_url=hedgerow_sandbox.url, headers={"x-mine": "yes"}, client_args={"verify": False})
    options = hedgerow.gemini_http_options(given, policy=SOON)
    assert given.client_args == {"verify": False}
    client = genai.Client(api_key="k", http_options=options)
    assert client.models.generate_content(**asked("g/opt/1", SLOW, {**QUICK, "text": "one"})).text == "one"
    answer = await client.aio.models.generate_content(**asked("g/opt/2", SLOW, {**QUICK, "text": "two"}))
    assert answer.text == "two"
    assert hedgerow.hedger_of(client).stats()["requests"] == 2


@pytest.mark.parametrize(
    "options",
    [
        types.HttpOptions(client_args={"mounts": {"all://": None}, "transport": httpx2.HTTPTransport()}),
        types.HttpOptions(httpx_client=httpx2.Client()),
    ],
)
def test_options_with_clients_or_transports_of_their_own_are_refused(options: types.HttpOptions) -> None:
    with pytest.raises(hedgerow.UnsupportedError, match=r"hedgerow\.hedged\(client\)"):
        hedgerow.gemini_http_options(options)


async def test_a_key_in_the_address_is_neither_kept_nor_told(
    hedgerow_sandbox: SandboxProcess, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", logger="hedgerow")
    transport = hedgerow.AsyncTransport(httpx2.AsyncHTTPTransport(), policy=SOON)
    url = f"{hedgerow_sandbox.url}/v1beta/models/gemini-x:generateContent?key=secret-key"
    async with httpx2.AsyncClient(transport=transport) as client:
        headers = asked("g/key", SLOW, QUICK)["config"]["http_options"]["headers"]
        answer = await client.post(url, json={"contents": [{"parts": [{"text": "hi"}]}]}, headers=headers)
        assert answer.status_code == 200
        with pytest.raises(httpx2.ConnectError) as raised:
            await client.post(url.replace(hedgerow_sandbox.url, "http://127.0.0.1:1"), json={"contents": [{}]})
        await eventually(lambda: len(list(hedgerow.hedger_of(client).events)) == 2)
        events = list(hedgerow.hedger_of(client).events)
    assert "secret-key" not in f"{events} {raised.value!r} {getattr(raised.value, '__notes__', [])} {caplog.text}"


@pytest.mark.parametrize("sync", [True, False])
async def test_the_sdks_own_retries_are_tries_of_one_request(hedgerow_sandbox: SandboxProcess, sync: bool) -> None:
    retries = types.HttpRetryOptions(attempts=3, initial_delay=0.01, max_delay=0.01)
    policy = hedgerow.Policy(trigger="off", budget="off", max_backups=2)
    client = hedgerow.hedged(plain(hedgerow_sandbox, retry_options=retries), policy=policy)
    case = f"g/retries/{sync}"
    asks = asked(case, {"status": 503})
    call = (
        asyncio.to_thread(client.models.generate_content, **asks)
        if sync
        else client.aio.models.generate_content(**asks)
    )
    with pytest.raises(errors.ServerError):
        await call
    assert 3 <= len(outcomes(hedgerow_sandbox, case)) <= 3 + 2
    hedger = hedgerow.hedger_of(client)
    await eventually(lambda: len(list(hedger.events)) == 3)
    assert [event.sdk_retry for event in hedger.events] == [0, 1, 2]


@pytest.mark.parametrize("failure", [{"cut_after": 0}, {"reset": True}, {"status": 529}, {"status": 502}])
@pytest.mark.parametrize("sync", [True, False])
async def test_what_the_sdk_does_not_repeat_is_replaced_though_it_has_tries_left(
    hedgerow_sandbox: SandboxProcess, failure: dict[str, Any], sync: bool
) -> None:
    retries = types.HttpRetryOptions(attempts=3, http_status_codes=[500])
    policy = hedgerow.Policy(trigger="off", budget="off")
    client = hedgerow.hedged(plain(hedgerow_sandbox, retry_options=retries), policy=policy)
    case = f"g/unrepeated/{sync}/{failure}"
    asks = asked(case, failure, {**QUICK, "text": "saved"})
    if sync:
        whole = await asyncio.to_thread(client.models.generate_content, **asks)
    else:
        whole = await client.aio.models.generate_content(**asks)
    assert whole.text == "saved"
    hedger = hedgerow.hedger_of(client)
    await eventually(lambda: len(list(hedger.events)) == 1)
    (event,) = hedger.events
    assert (event.sdk_retry, len(event.attempts)) == (0, 2)


async def test_a_deadline_counts_from_the_first_try(hedgerow_sandbox: SandboxProcess) -> None:
    retries = types.HttpRetryOptions(attempts=3, initial_delay=0.01, max_delay=0.01)
    policy = hedgerow.Policy(trigger="off", timeout_s=0.2)
    client = hedgerow.hedged(plain(hedgerow_sandbox, retry_options=retries), policy=policy)
    with pytest.raises(httpx2.ReadTimeout):
        await client.aio.models.generate_content(**asked("g/deadline", SLOW))
    await eventually(lambda: outcomes(hedgerow_sandbox, "g/deadline") == ["disconnected"])


def test_a_call_is_priced_by_its_model(hedgerow_sandbox: SandboxProcess) -> None:
    prices = [hedgerow.PriceRule(model="gemini-2.5-flash", input=1.0, output=2.0)]
    client = hedgerow.hedged(plain(hedgerow_sandbox), prices=prices)
    usage = client.models.generate_content(**asked("g/price", {"tokens": 10, "reasoning_tokens": 5})).usage_metadata
    assert usage is not None
    tokens = (usage.prompt_token_count, usage.candidates_token_count, usage.thoughts_token_count)
    assert tokens == (2, 10, 5)
    (event,) = hedgerow.hedger_of(client).events
    assert event.cost_low_usd == event.cost_high_usd == pytest.approx((2 * 1.0 + 15 * 2.0) / 1e6)


async def test_context_variables_reach_a_call_on_the_other_loop(hedgerow_sandbox: SandboxProcess) -> None:
    client = racing(hedgerow_sandbox)
    with hedgerow.context(segment="pro", hedge=False):
        await client.aio.models.generate_content(**asked("g/context", QUICK))
    await eventually(lambda: len(list(hedgerow.hedger_of(client).events)) == 1)
    (event,) = hedgerow.hedger_of(client).events
    assert (event.segment, event.plan) == ("pro", "hedge_off")


@pytest.mark.parametrize("half", ["client_args", "async_client_args"])
def test_http2_is_refused_in_either_half(hedgerow_sandbox: SandboxProcess, half: str) -> None:
    with pytest.raises(hedgerow.UnsupportedError, match="http2=False"):
        hedgerow.hedged(plain(hedgerow_sandbox, **{half: {"http2": True}}))
