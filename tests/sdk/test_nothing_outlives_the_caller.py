"""Programs end, threads and files are freed, and recording goes on, whatever becomes of loops, threads and clients."""

import asyncio
import gc
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import httpx2
import pytest
from openai import AsyncOpenAI, OpenAI
from tests.sdk.racing import PATIENCE_S, QUICK, scripted

import hedgerow
from hedgerow.testing.process import SandboxProcess

MESSAGES: Any = [{"role": "user", "content": "hi"}]
OPENING = """
import atexit, hedgerow, openai, sys, threading
url, headers = sys.argv[1], {"x-sandbox-case": sys.argv[2], "x-sandbox-script": sys.argv[3]}
sdk = hedgerow.hedged(openai.OpenAI(base_url=url, api_key="k", max_retries=0))
def call(**more):
    return sdk.chat.completions.create(model="m", messages=[{"role": "user", "content": "x"}], extra_headers=headers, **more)
"""


def run(
    program: str, sandbox: SandboxProcess, case: str, *attempts: dict[str, Any]
) -> subprocess.CompletedProcess[str]:
    """It has to end by itself, however slow the machine."""
    said = scripted(case, *attempts)
    arguments = [f"{sandbox.url}/v1", said["x-sandbox-case"], said["x-sandbox-script"]]
    return subprocess.run(
        [sys.executable, "-c", OPENING + program, *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S * 3,
        check=False,
    )


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    ("ends", "status"), [("pass", 0), ("del stream, pieces", 0), ("sys.exit(3)", 3), ("raise SystemExit(0)", 0)]
)
def test_a_program_with_an_unread_stream_ends(hedgerow_sandbox: SandboxProcess, ends: str, status: int) -> None:
    program = f"stream = call(stream=True)\npieces = iter(stream)\nnext(pieces)\n{ends}\n"
    done = run(program, hedgerow_sandbox, f"outlives/{ends}", {"first_token_s": 0.0, "token_s": 0.2, "tokens": 10_000})
    assert (done.returncode, done.stderr) == (status, "")


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    "program",
    [
        "threading.Thread(target=lambda: (threading.main_thread().join(), print(call().id))).start()",
        "call(); atexit.register(lambda: print(call().id))",
    ],
    ids=["after the main thread", "at exit"],
)
def test_a_call_goes_on_when_the_program_ends(hedgerow_sandbox: SandboxProcess, program: str) -> None:
    done = run(program, hedgerow_sandbox, f"late/{program[:9]}", {"first_token_s": 0.0})
    assert done.stdout.strip(), done.stderr
    assert done.returncode == 0


EACH = """
import asyncio, gc, os, time
from pathlib import Path
open_files = lambda: len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
held = lambda: (threading.active_count(), open_files())

async def clients(numbers):
    for number in numbers:
        sdk = hedgerow.hedged(openai.AsyncOpenAI(base_url=url, api_key="k"), events=EVENTS and EVENTS % number)
        await sdk.chat.completions.create(model="m", messages=[{"role": "user", "content": "x"}], extra_headers=headers)
    del sdk

def settled(most):
    for _ in range(1000):
        gc.collect()
        if all(now <= limit for now, limit in zip(held(), most)):
            return "freed"
        time.sleep(0.02)
    return f"{most} allowed, {held()} held: {[thread.name for thread in threading.enumerate()]}"

asyncio.run(clients(range(1)))
settled((2, open_files()))
threads, files = held()
asyncio.run(clients(range(1, 31)))
print(settled((threads + 2, files + 4)))
"""


@pytest.mark.timeout(240)
@pytest.mark.parametrize("scheme", ["sqlite", "jsonl", None])
def test_a_client_for_each_request_leaves_nothing_behind(
    hedgerow_sandbox: SandboxProcess, tmp_path: Path, scheme: str | None
) -> None:
    events = None if scheme is None else f"{scheme}:///{tmp_path}/%d.events"
    done = run(f"EVENTS = {events!r}\n{EACH}", hedgerow_sandbox, f"each/{scheme}", QUICK)
    assert done.stdout.strip() == "freed", done.stderr
    if scheme is not None:
        assert len([path for path in tmp_path.glob("*.events") if path.stat().st_size]) == 31


def test_what_a_closed_loop_has_left_is_recorded_in_the_next(hedgerow_sandbox: SandboxProcess) -> None:
    client = hedgerow.hedged(AsyncOpenAI(base_url=f"{hedgerow_sandbox.url}/v1", api_key="k"))
    hooks = list[Any]()
    hedgerow.hedger_of(client).subscribe(hooks.append)

    async def call(number: int) -> None:
        # A connection of the first loop would be of no use to the second, hedged or not.
        headers = {**scripted(f"closed/{number}", QUICK), "connection": "close"}
        await client.chat.completions.create(model="m", messages=MESSAGES, extra_headers=headers)

    async def last() -> None:
        await call(2)
        await hedgerow.hedger_of(client).aclose()

    loop = asyncio.new_event_loop()
    loop.run_until_complete(call(1))
    loop.close()
    asyncio.run(last())
    assert len(hooks) == len(list(hedgerow.hedger_of(client).events)) == 2


def test_events_that_no_loop_came_to_are_written_at_exit(hedgerow_sandbox: SandboxProcess, tmp_path: Path) -> None:
    program = (
        "import asyncio\n"
        f"sdk = hedgerow.hedged(openai.AsyncOpenAI(base_url=url, api_key='k'), events='jsonl:///{tmp_path}/calls.jsonl')\n"
        "loop = asyncio.new_event_loop()\nloop.run_until_complete(call())\nloop.close()\n"
    )
    done = run(program, hedgerow_sandbox, "exit/events", {"first_token_s": 0.0})
    assert done.returncode == 0, done.stderr
    assert len((tmp_path / "calls.jsonl").read_text().splitlines()) == 1


def test_streams_that_are_dropped_are_closed_in_silence(
    hedgerow_sandbox: SandboxProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    ignored = list[BaseException | None]()
    monkeypatch.setattr(sys, "unraisablehook", lambda found: ignored.append(found.exc_value))
    client = hedgerow.hedged(OpenAI(base_url=f"{hedgerow_sandbox.url}/v1", api_key="k", max_retries=0))

    def drop(thread: int) -> None:
        for number in range(10):
            script = scripted(f"drop/{thread}/{number}", {"first_token_s": 0.0, "token_s": 0.01, "tokens": 1000})
            for _ in client.chat.completions.create(model="m", messages=MESSAGES, stream=True, extra_headers=script):
                break

    threads = [threading.Thread(target=drop, args=(thread,)) for thread in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    gc.collect()
    hedgerow.hedger_of(client).close()
    assert not [
        error for error in ignored if not isinstance(error, ResourceWarning)
    ]  # those are of other tests' clients


def test_an_open_answer_outlives_the_client_and_the_transport_that_it_came_from(
    hedgerow_sandbox: SandboxProcess,
) -> None:
    script = scripted("outlives/transport", {"first_token_s": 0.0, "token_s": 0.02, "tokens": 10})
    client = httpx2.Client(transport=hedgerow.Transport(httpx2.HTTPTransport()))
    asked = {"model": "m", "messages": MESSAGES, "stream": True}
    request = client.build_request("POST", f"{hedgerow_sandbox.url}/v1/chat/completions", json=asked, headers=script)
    response = client.send(request, stream=True)
    del client
    gc.collect()
    assert b"[DONE]" in response.read()
