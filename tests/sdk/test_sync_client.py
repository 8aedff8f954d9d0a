"""hedged(OpenAI()): synchronous callers get the same rescue, from any thread, with losers really closed."""

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import openai
import pytest
from openai import OpenAI
from tests.sdk.racing import PATIENCE_S, QUICK, SLOW, outcomes, scripted

import hedgerow
from hedgerow.testing.process import SandboxProcess
from hedgerow.transports.httpx2_private import async_twin

MESSAGES: Any = [{"role": "user", "content": "hi"}]


def plain(sandbox: SandboxProcess, **options: Any) -> OpenAI:
    return OpenAI(**{"base_url": f"{sandbox.url}/v1", "api_key": "k", "max_retries": 0, **options})


def racing(sandbox: SandboxProcess, *, options: dict[str, Any] | None = None, **settings: Any) -> OpenAI:
    """Hedged: a backup after 50 ms, whatever it costs, unless the settings say otherwise."""
    policy = hedgerow.Policy(**{"trigger": "first_token", "delay": 0.05, "budget": "off", **settings})
    return hedgerow.hedged(plain(sandbox, **(options or {})), policy=policy)


def ask(client: OpenAI, case: str, *attempts: dict[str, Any], **fields: Any) -> Any:
    return client.chat.completions.create(
        model="m", messages=MESSAGES, extra_headers=scripted(case, *attempts), **fields
    )


def eventually(condition: Callable[[], bool]) -> None:
    give_up_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < give_up_s
        time.sleep(0.01)


def test_a_slow_call_is_rescued_and_its_loser_closed(hedgerow_sandbox: SandboxProcess) -> None:
    client = racing(hedgerow_sandbox)
    answer = ask(client, "sync/whole", SLOW, {**QUICK, "text": "rescued"})
    assert answer.choices[0].message.content == "rescued"
    eventually(lambda: outcomes(hedgerow_sandbox, "sync/whole") == ["disconnected", "completed"])
    (event,) = hedgerow.hedger_of(client).events
    assert [attempt.outcome for attempt in event.attempts] == ["lost", "won"]


def test_a_slow_stream_is_rescued_and_its_loser_closed(hedgerow_sandbox: SandboxProcess) -> None:
    client = racing(hedgerow_sandbox)
    chunks = ask(client, "sync/stream", SLOW, {**QUICK, "text": "rescued"}, stream=True)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == "rescued"
    eventually(lambda: outcomes(hedgerow_sandbox, "sync/stream") == ["disconnected", "completed"])


def test_a_stream_left_early_is_closed(hedgerow_sandbox: SandboxProcess) -> None:
    client = racing(hedgerow_sandbox, trigger="off")
    with ask(client, "sync/left", {"first_token_s": 0.01, "tokens": 500, "token_s": 0.05}, stream=True) as chunks:
        next(iter(chunks))
    eventually(lambda: outcomes(hedgerow_sandbox, "sync/left") == ["disconnected"])
    eventually(lambda: [event.outcome for event in hedgerow.hedger_of(client).events] == ["caller_left"])


def test_errors_are_the_sdks_own(hedgerow_sandbox: SandboxProcess) -> None:
    with pytest.raises(openai.BadRequestError):
        ask(racing(hedgerow_sandbox), "sync/400", {"status": 400})


def test_a_request_that_runs_out_of_time_raises_the_sdks_time_out(hedgerow_sandbox: SandboxProcess) -> None:
    client = racing(hedgerow_sandbox, trigger="off", timeout_s=0.1, options={"max_retries": 2})
    with pytest.raises(openai.APITimeoutError):
        ask(client, "sync/deadline", SLOW)
    eventually(lambda: outcomes(hedgerow_sandbox, "sync/deadline") == ["disconnected"])


def test_many_threads_share_a_client(hedgerow_sandbox: SandboxProcess) -> None:
    client = racing(hedgerow_sandbox)
    with ThreadPoolExecutor(16) as pool:
        texts = list(pool.map(lambda k: ask(client, f"sync/threads/{k}", SLOW, {**QUICK, "text": f"t{k}"}), range(64)))
    assert [answer.choices[0].message.content for answer in texts] == [f"t{k}" for k in range(64)]
    eventually(lambda: hedgerow.hedger_of(client).losers_open == 0)
    assert threading.active_count() < 16


def test_context_variables_reach_the_call(hedgerow_sandbox: SandboxProcess) -> None:
    client = racing(hedgerow_sandbox)
    with hedgerow.context(segment="pro", hedge=False):
        ask(client, "sync/context", QUICK)
    eventually(lambda: [event.segment for event in hedgerow.hedger_of(client).events] == ["pro"])
    assert [event.plan for event in hedgerow.hedger_of(client).events] != ["hedge"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_has_a_loop_and_connections_of_its_own(hedgerow_sandbox: SandboxProcess) -> None:
    client = racing(hedgerow_sandbox)
    ask(client, "sync/parent", QUICK)

    def child() -> None:
        answer = ask(client, "sync/child", SLOW, {**QUICK, "text": "rescued"})
        assert answer.choices[0].message.content == "rescued"
        assert hedgerow.hedger_of(client).stats()["requests"] == 1

    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    process.join(PATIENCE_S)
    assert process.exitcode == 0
    ask(client, "sync/parent/again", QUICK)
    assert hedgerow.hedger_of(client).stats()["requests"] == 2


def test_tls_losers_are_closed_too(hedgerow_sandbox_factory: Callable[..., SandboxProcess]) -> None:
    sandbox = hedgerow_sandbox_factory(tls=True)
    client = racing(sandbox, options={"http_client": openai.DefaultHttpxClient(verify=False)})
    assert ask(client, "sync/tls", SLOW, {**QUICK, "text": "rescued"}).choices[0].message.content == "rescued"
    eventually(lambda: outcomes(sandbox, "sync/tls") == ["disconnected", "completed"])


def test_the_clients_settings_stay_in_force(hedgerow_sandbox: SandboxProcess) -> None:
    seen: list[str] = []
    http_client = openai.DefaultHttpxClient(
        event_hooks={"request": [lambda request: seen.append(request.headers["x-mine"])]},
        headers={"x-mine": "yes"},
        transport=httpx2.HTTPTransport(retries=3, limits=httpx2.Limits(max_connections=7), local_address="127.0.0.1"),
    )
    client = hedgerow.hedged(plain(hedgerow_sandbox, http_client=http_client))
    ask(client, "sync/settings", QUICK)
    assert seen == ["yes"]
    pool: Any = vars(async_twin(http_client._transport))["_pool"]
    assert (pool._retries, pool._max_connections, pool._local_address) == (3, 7, "127.0.0.1")


def test_a_body_from_a_generator_passes_unhedged(hedgerow_sandbox: SandboxProcess) -> None:
    body = b'{"model": "m", "messages": [{"role": "user", "content": "hi"}]}'
    transport = hedgerow.Transport(httpx2.HTTPTransport(), policy=hedgerow.Policy(budget="off"))
    with httpx2.Client(transport=transport) as client:
        response = client.post(
            f"{hedgerow_sandbox.url}/v1/chat/completions",
            content=iter([body[:10], body[10:]]),
            headers={"content-type": "application/json", **scripted("sync/generated", QUICK)},
        )
        assert response.status_code == 200
        eventually(lambda: [event.plan for event in transport.hedger.events] == ["body_not_replayable"])


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers that interrupt")
def test_an_interrupted_caller_leaves_nothing_behind(hedgerow_sandbox: SandboxProcess) -> None:
    client = racing(hedgerow_sandbox)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(KeyboardInterrupt):
            ask(client, "sync/interrupted", SLOW)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    eventually(lambda: set(outcomes(hedgerow_sandbox, "sync/interrupted")) == {"disconnected"})


def test_used_inside_its_own_thread_it_says_so_instead_of_waiting_for_ever(hedgerow_sandbox: SandboxProcess) -> None:
    client, said = racing(hedgerow_sandbox), list[BaseException]()

    def hook(_: object) -> None:
        try:
            ask(client, "sync/inside", QUICK)
        except BaseException as error:
            said.append(error)

    hedgerow.hedger_of(client).subscribe(hook)
    ask(client, "sync/hooked", QUICK)
    eventually(lambda: bool(said))
    assert "own thread" in str(said[0].__cause__ or said[0])


def test_a_trace_of_the_users_own_is_told_of_each_attempt(hedgerow_sandbox: SandboxProcess) -> None:
    told: list[str] = []
    soon = hedgerow.Policy(trigger="response", delay=0.05, budget="off")
    with httpx2.Client(transport=hedgerow.Transport(httpx2.HTTPTransport(), policy=soon)) as client:
        request = client.build_request(
            "POST",
            f"{hedgerow_sandbox.url}/v1/chat/completions",
            json={"model": "m", "messages": MESSAGES},
            headers=scripted("trace", SLOW, QUICK),
            extensions={"trace": lambda name, _info: told.append(name)},
        )
        assert client.send(request).status_code == 200
    assert told.count("connection.connect_tcp.started") == 2


def test_a_transport_that_does_more_than_its_settings_say_is_refused(hedgerow_sandbox: SandboxProcess) -> None:
    class Counting(httpx2.HTTPTransport):
        def handle_request(self, request: httpx2.Request) -> httpx2.Response:
            return super().handle_request(request)

    with pytest.raises(hedgerow.UnsupportedError, match="Counting cannot be hedged"):
        hedgerow.Transport(Counting())
    with (
        OpenAI(
            base_url=f"{hedgerow_sandbox.url}/v1", api_key="k", http_client=httpx2.Client(transport=Counting())
        ) as sdk,
        pytest.raises(hedgerow.UnsupportedError, match="Counting cannot be hedged"),
    ):
        hedgerow.hedged(sdk)
