"""HttpxTransport and AsyncHttpxTransport: clients of classic httpx get the same rescue, and see nothing but httpx."""

import asyncio
import base64
import gc
import re
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx
import httpx2
import pytest
from openai import APITimeoutError, AsyncOpenAI, OpenAI
from openai._base_client import AsyncAPIClient, SyncAPIClient
from tests.cases.support import NEVER_S, closed_port
from tests.sdk.classic import Classic, body
from tests.sdk.racing import QUICK, SLOW, eventually, outcomes, scripted
from tests.sdk.threaded import in_thread

import hedgerow
from hedgerow.testing.process import SandboxProcess

Make = Callable[..., Classic]
LONG = {"first_token_s": 0.01, "token_s": 0.05, "tokens": 500}
ANSWER = b"HTTP/1.1 200 Just so\r\nX-Case: A\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}"


@pytest.fixture(params=[False, True], ids=["async", "sync"])
async def classic(request: pytest.FixtureRequest) -> AsyncIterator[Make]:
    """Makes hedged clients, and closes them after the test."""
    async with AsyncExitStack() as made:

        def make(**settings: Any) -> Classic:
            caller = Classic(sync=request.param, **settings)
            made.push_async_callback(caller.shut)
            return caller

        yield make


@asynccontextmanager
async def answering(unix: str | None = None) -> AsyncIterator[tuple[str, list[bytes]]]:
    """A server that gives every connection one answer: its address, and what it was asked."""
    asked: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
        asked.append(head + (await reader.readexactly(int(length[1])) if length else b""))
        writer.write(ANSWER)
        await writer.drain()
        writer.close()

    if unix is None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    else:
        server, address = await asyncio.start_unix_server(answer, unix), unix
    async with server:
        yield address, asked


async def test_a_slow_call_is_rescued_and_its_loser_closed(classic: Make, hedgerow_sandbox: SandboxProcess) -> None:
    caller = classic()
    answer = await caller.post(hedgerow_sandbox.url, "x/1", SLOW, {**QUICK, "text": "rescued"})
    assert type(answer) is httpx.Response
    assert answer.json()["choices"][0]["message"]["content"] == "rescued"
    assert (answer.reason_phrase, answer.http_version) == ("OK", "HTTP/1.1")
    assert answer.elapsed.total_seconds() > 0
    await eventually(lambda: outcomes(hedgerow_sandbox, "x/1") == ["disconnected", "completed"])
    hedger = hedgerow.hedger_of(caller.client)
    assert hedger is caller.transport.hedger
    (event,) = hedger.events
    assert [attempt.outcome for attempt in event.attempts] == ["lost", "won"]


async def test_a_primary_that_comes_first_after_all_wins(classic: Make, hedgerow_sandbox: SandboxProcess) -> None:
    late = {"await_arrivals": 2, "first_token_s": 0.2, "text": "first after all"}
    answer = await classic(max_backups=1).post(hedgerow_sandbox.url, "x/2", late, SLOW)
    assert answer.json()["choices"][0]["message"]["content"] == "first after all"
    await eventually(lambda: outcomes(hedgerow_sandbox, "x/2") == ["completed", "disconnected"])


async def test_when_both_fail_the_answer_is_the_primarys(classic: Make, hedgerow_sandbox: SandboxProcess) -> None:
    answer = await classic(max_backups=1).post(hedgerow_sandbox.url, "x/3", {"status": 503}, {"status": 500})
    assert (answer.status_code, answer.headers["hedgerow-attempts"]) == (503, "2")
    with pytest.raises(httpx.HTTPStatusError):
        answer.raise_for_status()


async def test_the_sdks_retries_are_tries_of_one_request(classic: Make, hedgerow_sandbox: SandboxProcess) -> None:
    """As an SDK makes them: one after another in one task or thread, each saying its number."""
    caller, url = classic(max_backups=1), f"{hedgerow_sandbox.url}/v1/chat/completions"
    script = scripted("x/4", *[{"status": 500, "before_headers_s": 0.8}] * 4)  # late: replaced at once

    def headers(number: int) -> dict[str, str]:
        return {**script, "x-stainless-retry-count": str(number)}

    def both() -> list[httpx.Response]:
        return [caller.client.post(url, json=body(), headers=headers(number)) for number in range(2)]

    if caller.sync:
        answers = await in_thread(both)
    else:
        answers = [await caller.client.post(url, json=body(), headers=headers(number)) for number in range(2)]
    assert [answer.status_code for answer in answers] == [500, 500]
    assert len(outcomes(hedgerow_sandbox, "x/4")) == 3  # the second try has no backup left


async def test_the_time_outs_of_the_client_are_httpxs(classic: Make, hedgerow_sandbox: SandboxProcess) -> None:
    caller = classic(max_backups=0)
    with pytest.raises(httpx.ReadTimeout) as raised:
        await caller.post(hedgerow_sandbox.url, "x/5", SLOW, timeout=httpx.Timeout(NEVER_S, read=0.2))
    assert isinstance(raised.value.__cause__, httpx2.ReadTimeout)
    assert raised.value.request.url == f"{hedgerow_sandbox.url}/v1/chat/completions"
    await eventually(lambda: outcomes(hedgerow_sandbox, "x/5") == ["disconnected"])


async def test_a_deadline_is_a_time_out_of_httpx(classic: Make, hedgerow_sandbox: SandboxProcess) -> None:
    with pytest.raises(httpx.ReadTimeout, match=r"timeout_s = 0\.2 s"):
        await classic(trigger="off", timeout_s=0.2).post(hedgerow_sandbox.url, "x/6", SLOW)
    await eventually(lambda: outcomes(hedgerow_sandbox, "x/6") == ["disconnected"])


async def test_errors_of_several_attempts_ride_along_as_notes(classic: Make) -> None:
    with pytest.raises(httpx.ConnectError) as raised:
        await classic(max_backups=1).post(f"http://127.0.0.1:{closed_port()}", "x/7")
    assert any("ConnectError" in note for note in raised.value.__notes__)


async def test_a_full_pool_says_so_by_name(classic: Make, hedgerow_sandbox: SandboxProcess) -> None:
    caller = classic(trigger="off", inner={"limits": httpx.Limits(max_connections=1)})
    busy = asyncio.ensure_future(caller.post(hedgerow_sandbox.url, "x/8", {"await_arrivals": 2, "text": "late"}))
    await eventually(lambda: hedgerow_sandbox.stats()["in_flight"] == 1)
    with pytest.raises(httpx.PoolTimeout, match=r"waited 0\.1 s for a connection: 1 of 1 busy"):
        await caller.post(hedgerow_sandbox.url, "x/9", timeout=httpx.Timeout(NEVER_S, pool=0.1))
    async with httpx.AsyncClient() as other:  # lets the busy one go
        await other.post(
            f"{hedgerow_sandbox.url}/v1/chat/completions", json=body(), headers=scripted("x/8", QUICK, QUICK)
        )
    assert (await busy).status_code == 200


async def test_a_stream_cut_in_the_middle_is_an_error_of_httpx(classic: Make, hedgerow_sandbox: SandboxProcess) -> None:
    cut = {"first_token_s": 0.0, "token_s": 0.0, "tokens": 9, "cut_after": 5}
    with pytest.raises(httpx.RemoteProtocolError):
        await classic(trigger="off").post(hedgerow_sandbox.url, "x/10", cut, json=body(stream=True))


async def test_a_body_that_cannot_be_replayed_passes_unhedged(classic: Make, hedgerow_sandbox: SandboxProcess) -> None:
    caller = classic()
    parts = [b'{"model":"m","messages":[{"role":"user",', b'"content":"hi"}]}']

    async def drawn() -> AsyncIterator[bytes]:
        for part in parts:
            yield part

    content: Any = iter(parts) if caller.sync else drawn()
    answer = await caller.post(
        hedgerow_sandbox.url, "x/11", {"first_token_s": 0.2, "text": "whole"}, content=content, json=None
    )
    assert answer.json()["choices"][0]["message"]["content"] == "whole"
    assert len(outcomes(hedgerow_sandbox, "x/11")) == 1
    assert [event.plan for event in caller.transport.hedger.events] == ["body_not_replayable"]


async def test_a_form_with_files_is_sent_as_httpx_writes_it(classic: Make) -> None:
    async with answering() as (url, asked):
        answer = await classic().post(url, "x/12", json=None, files={"file": ("a.txt", b"content")})
        assert answer.status_code == 200
        assert b"Content-Type: multipart/form-data" in asked[0]
        assert b'filename="a.txt"\r\nContent-Type: text/plain\r\n\r\ncontent\r\n' in asked[0]


async def test_headers_and_address_go_and_come_as_they_are(classic: Make) -> None:
    caller = classic()
    async with answering() as (url, asked):
        given = f"{url}/v1/a%2Fb%20c?q=%5B1%5D&r=[2]&e="
        sent = caller.client.get
        answer = await (
            in_thread(sent, given, headers={"X-Mine": "ü".encode()})
            if caller.sync
            else sent(given, headers={"X-Mine": "ü".encode()})
        )
        assert (answer.reason_phrase, dict(answer.headers.raw)[b"X-Case"]) == ("Just so", b"A")
        assert answer.request.url == given
        first, *lines = asked[0].split(b"\r\n")
        assert first == b"GET " + httpx.URL(given).raw_path + b" HTTP/1.1"
        assert "X-Mine: ü".encode() in lines


async def test_a_certificate_is_checked_as_the_transport_says(
    classic: Make, hedgerow_sandbox_factory: Callable[..., SandboxProcess]
) -> None:
    sandbox = hedgerow_sandbox_factory(tls=True)
    trusting = ssl.create_default_context(cadata=await asyncio.to_thread(sandbox.certificate))
    answer = await classic(inner={"verify": trusting}).post(sandbox.url, "x/13", SLOW, {**QUICK, "text": "rescued"})
    assert answer.json()["choices"][0]["message"]["content"] == "rescued"
    await eventually(lambda: outcomes(sandbox, "x/13") == ["disconnected", "completed"])
    with pytest.raises(httpx.ConnectError, match="certificate"):
        await classic(max_backups=0).post(sandbox.url, "x/14", QUICK)


async def test_calls_go_through_the_transports_proxy(classic: Make) -> None:
    async with answering() as (url, asked):
        proxy = httpx.Proxy(url, auth=("user", "secret"), headers={"X-For": "proxy"})
        caller = classic(inner={"proxy": proxy})
        assert (await caller.post("http://provider.invalid", "x/15")).status_code == 200
        head = asked[0].decode()
        assert head.startswith("POST http://provider.invalid/v1/chat/completions HTTP/1.1\r\n")
        assert f"Proxy-Authorization: Basic {base64.b64encode(b'user:secret').decode()}\r\n" in head
        assert "X-For: proxy\r\n" in head


@pytest.mark.skipif(not hasattr(asyncio, "start_unix_server"), reason="no sockets with a path on this system")
async def test_calls_go_to_the_transports_socket(classic: Make, tmp_path: Any) -> None:
    async with answering(f"{tmp_path}/socket") as (path, asked):
        assert (await classic(inner={"uds": path}).post("http://provider.invalid", "x/16")).status_code == 200
        assert b"Host: provider.invalid\r\n" in asked[0]


@pytest.mark.parametrize("manner", ["closed", "dropped"])
async def test_a_stream_left_early_is_closed(hedgerow_sandbox: SandboxProcess, manner: str) -> None:
    caller = Classic(sync=False, trigger="off")
    request = caller.client.build_request(
        "POST",
        f"{hedgerow_sandbox.url}/v1/chat/completions",
        json=body(stream=True),
        headers=scripted("x/17", LONG),
    )
    answer = await caller.client.send(request, stream=True)
    chunks = answer.aiter_bytes()
    assert await anext(chunks)
    await answer.aclose() if manner == "closed" else None
    del answer, chunks
    gc.collect()
    await eventually(lambda: outcomes(hedgerow_sandbox, "x/17") == ["disconnected"])
    await caller.shut()


@pytest.mark.parametrize("manner", ["closed", "dropped"])
async def test_a_stream_left_early_in_a_thread_is_closed(hedgerow_sandbox: SandboxProcess, manner: str) -> None:
    caller = Classic(sync=True, trigger="off")

    def leave() -> None:
        request = caller.client.build_request(
            "POST",
            f"{hedgerow_sandbox.url}/v1/chat/completions",
            json=body(stream=True),
            headers=scripted("x/18", LONG),
        )
        answer = caller.client.send(request, stream=True)
        assert next(answer.iter_bytes())
        if manner == "closed":
            answer.close()

    await in_thread(leave)
    await eventually(lambda: outcomes(hedgerow_sandbox, "x/18") == ["disconnected"])
    await caller.shut()


async def test_a_caller_whose_own_time_is_over_leaves_nothing_running(hedgerow_sandbox: SandboxProcess) -> None:
    caller = Classic(sync=False, max_backups=1)
    call = asyncio.ensure_future(caller.post(hedgerow_sandbox.url, "x/19", SLOW, SLOW))
    await eventually(lambda: hedgerow_sandbox.stats()["in_flight"] == 2)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(call, 0.05)
    await eventually(lambda: outcomes(hedgerow_sandbox, "x/19") == ["disconnected", "disconnected"])
    await eventually(lambda: [event.outcome for event in caller.transport.hedger.events] == ["caller_left"])
    await caller.shut()


async def test_a_stream_is_handed_on_as_it_comes(hedgerow_sandbox: SandboxProcess) -> None:
    caller = Classic(sync=False, trigger="off")
    never_ends = {"first_token_s": 0.01, "token_s": 0.0, "tokens": 5, "stall": {"after": 4, "s": NEVER_S}}
    url = f"{hedgerow_sandbox.url}/v1/chat/completions"
    async with caller.client.stream(
        "POST", url, json=body(stream=True), headers=scripted("x/20", never_ends)
    ) as answer:
        async for line in answer.aiter_lines():
            if '"content"' in line:
                break
    await eventually(lambda: outcomes(hedgerow_sandbox, "x/20") == ["disconnected"])
    await caller.shut()


@pytest.mark.parametrize("sync", [False, True], ids=["async", "sync"])
async def test_an_sdk_that_retries_its_own_time_out_is_refused_at_once_and_says_it_timed_out(
    hedgerow_sandbox: SandboxProcess, monkeypatch: pytest.MonkeyPatch, sync: bool
) -> None:
    """As openai 1 and anthropic 0 do, whose loops of tries know httpx's errors only."""
    kind: Any = SyncAPIClient if sync else AsyncAPIClient
    newer = kind.request

    def older(self: Any, *args: Any, **options: Any) -> Any:
        return newer(self, *args, **options)

    monkeypatch.setattr(kind, "request", older)
    inside = httpx.Client() if sync else httpx.AsyncClient()
    sdk: Any = (OpenAI if sync else AsyncOpenAI)(
        base_url=f"{hedgerow_sandbox.url}/v1", api_key="k", max_retries=1, http_client=inside
    )
    client = hedgerow.hedged(sdk, policy=hedgerow.Policy(trigger="off", timeout_s=0.2))
    create, fields = client.chat.completions.create, {**body(), "extra_headers": scripted("x/21", SLOW)}
    with pytest.raises(APITimeoutError) as raised:
        await (in_thread(create, **fields) if sync else create(**fields))
    assert isinstance(raised.value.__cause__, httpx.ReadTimeout)
    assert "tries of the SDK included" in str(raised.value.__cause__)
    await eventually(lambda: outcomes(hedgerow_sandbox, "x/21") == ["disconnected"])
    await (in_thread(client.close) if sync else client.close())
