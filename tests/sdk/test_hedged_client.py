"""hedged(AsyncOpenAI()): what it keeps, what it refuses, where it sends, what it tells."""

import asyncio
import gc
import json
import subprocess
import sys
import warnings
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import httpx2
import openai
import pandas
import pytest
from openai import AsyncOpenAI, DefaultAsyncHttpxClient, OpenAI
from tests.sdk.racing import QUICK, SLOW, ask, eventually, limits, outcomes, plain, racing, scripted, stream

import hedgerow
from hedgerow.testing.process import SandboxProcess
from hedgerow.transports.httpx2_private import pool_of, transports_of

SOON = hedgerow.Policy(trigger="first_token", delay=0.05, budget="off")
MOCK = httpx2.MockTransport(lambda _: httpx2.Response(200))
MESSAGES = [{"role": "user", "content": "hi"}]


async def test_a_slow_call_is_rescued_and_its_loser_closed(hedgerow_sandbox: SandboxProcess) -> None:
    async with racing(hedgerow_sandbox) as client:
        assert await ask(client, "rescue/1", SLOW, {**QUICK, "text": "rescued"}) == "rescued"
        assert await stream(client, "rescue/2", SLOW, {**QUICK, "text": "rescued"}) == "rescued"
        for case in ("rescue/1", "rescue/2"):
            await eventually(lambda case=case: outcomes(hedgerow_sandbox, case) == ["disconnected", "completed"])


async def test_embeddings_are_hedged_too(hedgerow_sandbox: SandboxProcess) -> None:
    async with racing(hedgerow_sandbox) as client:
        answer = await client.embeddings.create(
            model="e",
            input=["a", "b"],
            extra_headers={"x-sandbox-case": "e/1", "x-sandbox-script": '[{"first_token_s":5},{"first_token_s":0.01}]'},
        )
        assert len(answer.data) == 2
        await eventually(lambda: outcomes(hedgerow_sandbox, "e/1") == ["disconnected", "completed"])


async def test_the_original_client_stays_unhedged_and_the_pool_is_shared(hedgerow_sandbox: SandboxProcess) -> None:
    async with plain(hedgerow_sandbox, limits=limits(3)) as original:
        client = hedgerow.hedged(original, policy=SOON)
        assert await ask(client, "hedged/1", SLOW, QUICK)
        assert await ask(original, "plain/1", {"first_token_s": 0.2}, QUICK)
        assert len(outcomes(hedgerow_sandbox, "plain/1")) == 1
        with pytest.raises(hedgerow.UnsupportedError):
            hedgerow.hedger_of(original)
        assert pool_of(transports_of(original._client)[0])[1] == 3


async def test_dropping_the_hedged_copy_leaves_the_originals_calls_alone(hedgerow_sandbox: SandboxProcess) -> None:
    async with plain(hedgerow_sandbox) as original:
        copy = hedgerow.hedged(original)
        running = asyncio.ensure_future(ask(original, "o/1", {"first_token_s": 0.3, "text": "fine"}))
        await eventually(lambda: hedgerow_sandbox.stats()["in_flight"] == 1)
        del copy
        gc.collect()
        assert await running == "fine"


async def test_settings_of_the_client_stay_in_force(hedgerow_sandbox: SandboxProcess) -> None:
    seen: list[str] = []

    async def hook(request: httpx2.Request) -> None:
        seen.append(request.headers["x-mine"])

    http_client = DefaultAsyncHttpxClient(event_hooks={"request": [hook]}, max_redirects=3)
    original = AsyncOpenAI(
        base_url=f"{hedgerow_sandbox.url}/v1",
        api_key="k",
        timeout=7.0,
        max_retries=1,
        http_client=http_client,
        default_headers={"x-mine": "yes"},
    )
    async with hedgerow.hedged(original) as client:
        assert (client.timeout, client.max_retries) == (7.0, 1)
        assert client._client.max_redirects == 3
        assert client._client.follow_redirects is True
        await ask(client, "hooks/1", {})
        assert seen == ["yes"]
        assert hedgerow.hedger_of(client.with_options(timeout=1.0)) is hedgerow.hedger_of(client)


async def test_mounts_and_proxies_are_wrapped_each_and_keep_their_routes(hedgerow_sandbox: SandboxProcess) -> None:
    used: list[str] = []

    class Noting(httpx2.AsyncHTTPTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            used.append(request.url.path)
            return await super().handle_async_request(request)

    http_client = DefaultAsyncHttpxClient(mounts={"all://127.0.0.1": Noting(), "all://elsewhere": None})
    original = AsyncOpenAI(base_url=f"{hedgerow_sandbox.url}/v1", api_key="k", http_client=http_client)
    async with hedgerow.hedged(original, policy=SOON) as client:
        await ask(client, "mount/1", SLOW, QUICK)
        assert used == ["/v1/chat/completions"] * 2


async def test_a_read_time_out_of_the_sdk_stays_the_sdks(hedgerow_sandbox: SandboxProcess) -> None:
    async with hedgerow.hedged(plain(hedgerow_sandbox, timeout=0.1), policy=hedgerow.Policy(max_backups=0)) as client:
        with pytest.raises(openai.APITimeoutError):
            await ask(client, "t/1", SLOW)


async def test_the_deadline_is_the_sdks_time_out_and_is_not_retried(hedgerow_sandbox: SandboxProcess) -> None:
    original = plain(hedgerow_sandbox, max_retries=2)
    async with hedgerow.hedged(original, policy=hedgerow.Policy(trigger="off", timeout_s=0.2)) as client:
        with pytest.raises(openai.APITimeoutError) as raised:
            await ask(client, "d/1", SLOW)
        assert any("timeout_s = 0.2" in note for note in raised.value.__notes__)
        await eventually(lambda: outcomes(hedgerow_sandbox, "d/1") == ["disconnected"])
        chunks = await client.chat.completions.create(
            model="m",
            messages=MESSAGES,
            stream=True,
            extra_headers={
                "x-sandbox-case": "d/2",
                "x-sandbox-script": '[{"first_token_s":0.01,"token_s":0.1,"tokens":99}]',
            },
        )
        with pytest.raises(openai.APITimeoutError):
            async for _ in chunks:
                pass
        await eventually(lambda: outcomes(hedgerow_sandbox, "d/2") == ["disconnected"])


async def test_a_full_pool_says_so_by_name(hedgerow_sandbox: SandboxProcess) -> None:
    timeout = httpx2.Timeout(5.0, pool=0.1)
    async with hedgerow.hedged(plain(hedgerow_sandbox, limits=limits(1), timeout=timeout)) as client:
        busy = asyncio.ensure_future(ask(client, "p/1", {"first_token_s": 30.0}))
        await eventually(lambda: hedgerow_sandbox.stats()["in_flight"] == 1)
        with pytest.raises(openai.APITimeoutError) as raised:
            await ask(client, "p/2", {})
        assert "waited 0.1 s for a connection: 1 of 1 busy" in str(raised.value.__cause__)
        busy.cancel()


async def test_backups_go_to_the_target_with_its_own_key_and_body(
    hedgerow_sandbox_factory: Callable[..., SandboxProcess],
) -> None:
    here, there = hedgerow_sandbox_factory(time_scale=100.0), hedgerow_sandbox_factory()
    target = hedgerow.Target(base_url=f"{there.url}/v1", api_key="theirs", set={"service_tier": "priority"})
    async with racing(here, backup=target) as client:
        answer = await client.chat.completions.create(
            model="m", messages=MESSAGES, extra_headers=scripted("b/1", {"first_token_s": 0.05, "text": "there"})
        )
        assert answer.choices[0].message.content == "there"
        assert answer.service_tier == "priority"
        await eventually(lambda: outcomes(here, "b/1") == ["disconnected"])
        assert outcomes(there, "b/1") == ["completed"]
        (event,) = hedgerow.hedger_of(client).events
        assert [attempt.target for attempt in event.attempts] == ["127.0.0.1", httpx2.URL(there.url).netloc.decode()]


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: OpenAI(api_key="k", http_client=httpx2.Client(transport=MOCK)), "could not be closed"),
        (object, "builtins.object cannot be hedged"),
        (lambda: hedgerow.hedged(AsyncOpenAI(api_key="k")), "hedged already"),
        (httpx2.AsyncClient, "supported is"),
    ],
)
async def test_what_cannot_be_hedged_is_refused_with_the_reason(make: object, reason: str) -> None:
    with pytest.raises(hedgerow.UnsupportedError, match=reason):
        hedgerow.hedged(make())  # type: ignore[operator]


async def test_events_must_be_a_store(hedgerow_sandbox: SandboxProcess) -> None:
    with pytest.raises(hedgerow.SettingError, match=r"events = \(an address mysql:…, not shown\)"):
        hedgerow.hedged(plain(hedgerow_sandbox), events="mysql://x")  # type: ignore[arg-type]


async def test_events_may_go_to_a_file_which_analyze_and_export_read(
    hedgerow_sandbox: SandboxProcess, tmp_path: Path
) -> None:
    policy = hedgerow.Policy(trigger="first_token", delay=1.0, budget="off")
    client = hedgerow.hedged(plain(hedgerow_sandbox), policy=policy, events=f"sqlite:///{tmp_path}/events.db")
    await asyncio.gather(
        *(ask(client, f"filed/{number}", SLOW if number == 5 else QUICK, QUICK) for number in range(30))
    )
    await hedgerow.hedger_of(client).aclose()  # type: ignore[union-attr]
    await client.close()
    command = [sys.executable, "-c", "from hedgerow.cli import main; main()"]
    done = await asyncio.to_thread(
        subprocess.run, [*command, "analyze", tmp_path / "events.db", "--json"], capture_output=True, check=True
    )
    found = json.loads(done.stdout)
    assert found["rows_read"] == 29
    assert list(found["rows_rejected"].values()) == [1]  # the primary that was cancelled
    for name in ("out.parquet", "out.csv", "out.jsonl"):
        await asyncio.to_thread(
            subprocess.run,
            [*command, "export", f"sqlite:///{tmp_path}/events.db", "--to", tmp_path / name],
            capture_output=True,
            check=True,
        )
    requests, attempts = (pandas.read_parquet(tmp_path / f"out{part}.parquet") for part in ("", "-attempts"))
    assert (len(requests), len(attempts)) == (30, 31)
    assert set(attempts.id) == set(requests.id)
    assert requests.stream.dtype == bool
    assert len(pandas.read_csv(tmp_path / "out.csv")) == 30
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 30


async def test_a_transport_of_ones_own_client(hedgerow_sandbox: SandboxProcess) -> None:
    transport = hedgerow.AsyncTransport(httpx2.AsyncHTTPTransport(), policy=SOON)
    async with httpx2.AsyncClient(transport=transport) as client:
        answer = await client.post(
            f"{hedgerow_sandbox.url}/v1/chat/completions",
            json={"model": "m", "messages": MESSAGES},
            headers={
                "x-sandbox-case": "own/1",
                "x-sandbox-script": '[{"first_token_s":5},{"first_token_s":0.01,"text":"hi"}]',
            },
        )
        assert answer.json()["choices"][0]["message"]["content"] == "hi"
        assert (await client.get(f"{hedgerow_sandbox.url}/v1/models")).status_code == 200
        plans = [event.plan for event in hedgerow.hedger_of(client).events]
        assert plans == ["hedge", "not_safe:endpoint"]


async def test_a_body_that_cannot_be_replayed_passes_through_unhedged(hedgerow_sandbox: SandboxProcess) -> None:
    async def body() -> AsyncIterator[bytes]:
        yield b'{"model":"m","messages":[{"role":"user","content":"hi"}],'
        yield b'"stream":false}'

    transport = hedgerow.AsyncTransport(httpx2.AsyncHTTPTransport(), policy=SOON)
    async with httpx2.AsyncClient(transport=transport) as client:
        answer = await client.post(
            f"{hedgerow_sandbox.url}/v1/chat/completions",
            content=body(),
            headers={"x-sandbox-case": "gen/1", "x-sandbox-script": '[{"first_token_s":0.2,"text":"whole"}]'},
        )
        assert answer.json()["choices"][0]["message"]["content"] == "whole"
        assert len(outcomes(hedgerow_sandbox, "gen/1")) == 1
        (event,) = hedgerow.hedger_of(client).events
        assert event.plan == "body_not_replayable"


@pytest.mark.parametrize("raw", ["not json at all", '{"choices": 7}', "data: {broken\n\ndata: [DONE]\n\n", ""])
async def test_garbage_from_a_provider_is_passed_on_not_lost(hedgerow_sandbox: SandboxProcess, raw: str) -> None:
    async with racing(hedgerow_sandbox, delay=5.0) as client:
        answer = await client.chat.completions.with_raw_response.create(
            model="m",
            messages=MESSAGES,
            extra_headers={"x-sandbox-case": f"g/{len(raw)}", "x-sandbox-script": json.dumps([{"raw_body": raw}])},
        )
        assert answer.http_response.text == raw


async def test_the_sdks_own_time_out_in_mid_stream_comes_through_as_it_is(hedgerow_sandbox: SandboxProcess) -> None:
    stalls = {"first_token_s": 0.0, "token_s": 0.0, "tokens": 9, "stall": {"after": 2, "s": 30.0}}
    async with racing(hedgerow_sandbox, trigger="off", max_backups=0) as client:
        chunks = await client.chat.completions.create(
            model="m",
            messages=MESSAGES,
            stream=True,
            extra_headers=scripted("mid", stalls),
            timeout=httpx2.Timeout(30.0, read=0.5),
        )
        with pytest.raises(openai.APITimeoutError):
            async for _ in chunks:
                pass
        (event,) = hedgerow.hedger_of(client).events
        assert (event.outcome, event.attempts[0].error) == ("failed", "ReadTimeout")


def test_importing_hedgerow_loads_no_http_client() -> None:
    names = ("httpx2", "httpx", "pydantic", "genai_prices", "openai", "orjson")
    code = f"import hedgerow, sys; print([name for name in {names} if name in sys.modules])"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )


def test_the_private_attributes_we_rely_on_are_there() -> None:
    """When an upgrade moves them, this is the test that says so."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        client = httpx2.AsyncClient(mounts={"all://x": httpx2.AsyncHTTPTransport()})
    assert client._transport is client._transport_for_url(httpx2.URL("http://y"))
    assert next(iter(client._mounts.values())) is client._transport_for_url(httpx2.URL("http://x"))
    pool = client._transport._pool  # type: ignore[attr-defined]
    assert (pool._http2, pool._max_connections, pool.connections) == (False, 100, [])
    assert isinstance(AsyncOpenAI(api_key="k")._client, httpx2.AsyncClient)
