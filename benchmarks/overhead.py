"""What hedgerow adds to a call that is never late, and to the start of a program. No thresholds: it prints, you judge.

python benchmarks/overhead.py --count 5000
"""

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence

import httpx2

import hedgerow
from hedgerow.policy.gate import Place
from hedgerow.race.upstream import ConnectionNotes
from hedgerow.values.request import WireRequest

PATH = "/v1/chat/completions"
TEXT_BYTES = 900
REQUEST = json.dumps({"model": "m", "messages": [{"role": "user", "content": "x" * TEXT_BYTES}]}).encode()
ANSWER = json.dumps(
    {
        "id": "x",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [
            {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "x" * TEXT_BYTES}}
        ],
        "usage": {"prompt_tokens": 225, "completion_tokens": 225, "total_tokens": 450},
    }
).encode()
HEADERS = {"content-type": "application/json"}
# Late enough never to happen, and yet the timer is armed and called off with every call, as in real use.
NEVER_LATE = hedgerow.Policy(trigger="first_token", delay=5)
# The first calls open connections and fill caches.
SHARE_OF_WARM_UP = 10
IMPORT_RUNS = 11


def main() -> None:
    """Reads the options and prints the three measurements."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=5000, help="calls of each kind")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.count < 1:
        parser.error(f"--count {options.count} is not possible: allowed is 1 or more calls")
    if options.serve:
        asyncio.run(serve())
        return
    asyncio.run(compare_over_loopback(options.count))
    asyncio.run(time_the_engine(options.count))
    time_the_import()


class OneAnswer(asyncio.Protocol):
    """The least a server can do: the same answer to every request, on a connection that stays open."""

    HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(ANSWER)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport, self.received = transport, bytearray()

    def data_received(self, data: bytes) -> None:
        self.received += data
        if self.received.endswith(REQUEST):
            self.received.clear()
            self.transport.write(self.HEAD + ANSWER)


async def serve() -> None:
    """Serves until stdin ends, that is until whoever started it is gone; the port is the first line of stdout."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(OneAnswer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


async def compare_over_loopback(count: int) -> None:
    """Bare httpx2 and hedged httpx2, call by call in turn: what the machine does meanwhile hits both."""
    command = [sys.executable, __file__, "--serve"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        url = f"http://127.0.0.1:{server.stdout.readline().strip()}{PATH}"
        hedging = hedgerow.AsyncTransport(httpx2.AsyncHTTPTransport(), policy=NEVER_LATE)
        async with (
            httpx2.AsyncClient(transport=httpx2.AsyncHTTPTransport()) as bare,
            httpx2.AsyncClient(transport=hedging) as hedged,
        ):
            warm_up = max(1, count // SHARE_OF_WARM_UP)
            pairs = [(await timed(bare, url), await timed(hedged, url)) for _ in range(warm_up + count)][warm_up:]
        server.stdin.close()
    bare_us, hedged_us = (statistics.median(times) * 1e6 for times in zip(*pairs, strict=True))
    added_us = statistics.median(late - early for early, late in pairs) * 1e6
    print(f"one call over loopback, {len(REQUEST)} bytes out, {len(ANSWER)} back, median of {count:,}:")
    print(f"  bare httpx2    {bare_us:7.0f} µs")
    print(f"  hedged         {hedged_us:7.0f} µs   × {hedged_us / bare_us:.2f}")
    print(f"  added          {added_us:7.0f} µs   (median of the paired differences)")


async def timed(client: httpx2.AsyncClient, url: str) -> float:
    """Seconds of one call, read to its end."""
    began_s = time.perf_counter()
    response = await client.post(url, content=REQUEST, headers=HEADERS)
    took_s = time.perf_counter() - began_s
    assert response.status_code == 200
    assert len(response.content) == len(ANSWER)
    return took_s


class AnswerInMemory:
    """A response that is there already."""

    status = 200
    headers: Sequence[tuple[bytes, bytes]] = ((b"content-type", b"application/json"),)

    def __init__(self) -> None:
        self._left = [ANSWER]

    async def read(self) -> bytes:
        return self._left.pop() if self._left else b""

    async def close(self) -> None:
        """Nothing is open."""


class CallInMemory:
    """A call without a network: what is left is the engine."""

    async def open(self, target: int, notes: ConnectionNotes, _body: bytes | None) -> AnswerInMemory:
        assert target == 0
        notes.connected(reused=True)
        return AnswerInMemory()

    def failure_of(self, error: Exception) -> object:
        raise error

    def attempt_time_out(self, message: str) -> Exception:
        return TimeoutError(message)

    def deadline_error(self, message: str) -> Exception:
        return TimeoutError(message)


async def time_the_engine(count: int) -> None:
    """Classify, plan, race, record and tune, with nothing to wait for."""
    hedger = hedgerow.Hedger(NEVER_LATE, (Place(name="memory"),))
    headers = ((b"content-type", b"application/json"), (b"accept", b"*/*"), (b"authorization", b"Bearer key"))
    request = WireRequest(method="POST", path=PATH, headers=headers, body=REQUEST)
    times_s: list[float] = []
    for _ in range(max(1, count // SHARE_OF_WARM_UP) + count):
        began_s = time.perf_counter()
        delivery = await hedger.send(request, CallInMemory())
        async for _chunk in delivery:
            pass
        await delivery.aclose()
        times_s.append(time.perf_counter() - began_s)
    await hedger.aclose()
    print(f"the engine's own share, a call in memory, median of {count:,}:")
    print(f"  engine         {statistics.median(times_s[-count:]) * 1e6:7.0f} µs")


def time_the_import() -> None:
    """Fresh interpreters, in turn; what `import hedgerow` takes over `import asyncio`."""
    before_s: list[float] = []
    after_s: list[float] = []
    for _ in range(IMPORT_RUNS):
        before_s.append(import_s("asyncio"))
        after_s.append(import_s("asyncio, hedgerow"))
    added_ms = (statistics.median(after_s) - statistics.median(before_s)) * 1e3
    print(f"import, median of {IMPORT_RUNS} fresh interpreters:")
    print(f"  asyncio        {statistics.median(before_s) * 1e3:7.1f} ms")
    print(f"  + hedgerow     {added_ms:7.1f} ms   (aim: at most 60)")


def import_s(names: str) -> float:
    """Seconds that an import statement takes, by the fresh interpreter's own clock: its start is not in it."""
    program = f"import time; t = time.perf_counter(); import {names}; print(time.perf_counter() - t)"
    return float(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout)


if __name__ == "__main__":
    main()
