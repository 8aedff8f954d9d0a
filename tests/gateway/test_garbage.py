"""Garbage from both sides: bytes that are no request, odd headers, providers that answer nonsense. The gateway refuses it or
hangs up, goes on, and never gives one client what is another's."""

import asyncio
import gc
import json
import logging
import random
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.gateway.raw_client import CHAT, RawClient, request_of
from tests.gateway.running import Running
from tests.gateway.upstreams import Bare, answer, bare_upstream

PATH = "/v1/chat/completions"
CLIENTS, CALLS = 8, 25
ON_PURPOSE = "without completing response"  # uvicorn's word for an answer that was cut so that the client sees it
STATUSES = (200, 400, 404, 405, 413, 415, 421, 431, 500, 502, 504)
bounded = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))


class Echo(Bare):
    """A provider that answers a call with what it said, so that whoever gets it can tell whose it is. A call may bring what is
    answered instead (`raw`, then the connection ends if it `cuts`) and what comes a moment after the answer (`later`)."""

    async def reply(self, request: bytes, writer: asyncio.StreamWriter) -> bool:
        asked = json.loads(request.partition(b"\r\n\r\n")[2])
        said = echoed(asked["messages"][0]["content"], streamed=asked.get("stream", False))
        writer.write(asked["raw"].encode("latin-1") if "raw" in asked else said)
        await writer.drain()
        if "later" in asked:
            await asyncio.sleep(0.02)
            writer.write(asked["later"].encode("latin-1"))
        return bool(asked.get("cuts"))


def echoed(said: str, *, streamed: bool = False) -> bytes:
    choice = {"index": 0, "finish_reason": "stop"}
    if streamed:
        frame = json.dumps({"choices": [{**choice, "delta": {"content": said}}]})
        return answer(f"data: {frame}\n\ndata: [DONE]\n\n".encode(), "content-type: text/event-stream")
    message = {"role": "assistant", "content": said}
    return answer(json.dumps({"choices": [{**choice, "message": message}]}).encode(), "content-type: application/json")


def saying(said: str, **fields: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": said}], **fields}


@pytest.fixture
async def gateway(start: Any, caplog: pytest.LogCaptureFixture) -> AsyncIterator[Running]:
    """In front of an Echo. Nothing it logs by the end of the test is a failure of its own."""
    caplog.set_level(logging.WARNING)
    async with bare_upstream(Echo()) as echo:
        target = {"name": "t", "dialect": "openai", "base_url": f"{echo.url}/v1", "api_key": "their-key"}
        route = {"path": "*", "targets": ["t"], "policy": "soon"}
        yield await start({"max_backups": 1, "attempt_timeout_s": 2.0}, target=[target], route=[route])
    gc.collect()  # what nobody has awaited is told of now
    loud = [record for record in caplog.records if record.exc_info or record.levelno >= logging.ERROR]
    assert not [record.getMessage() for record in loud if ON_PURPOSE not in record.getMessage()]


async def exchanged(gateway: Running, *sent: bytes, patience_s: float | None = None) -> bytes:
    """All that comes back on a connection for these bytes; patience_s: within so long, since it may be that nothing is due."""
    client = await RawClient.connect(gateway.url)
    try:
        for part in sent:
            await client.send(part)
        async with asyncio.timeout(patience_s):
            return await client.read_to_end()
    except (TimeoutError, ConnectionError):
        return client.got
    finally:
        client.close()


async def still_answers(gateway: Running) -> None:
    got = await exchanged(gateway, request_of(PATH, saying("are you well"), connection="close"))
    assert got.startswith(b"HTTP/1.1 200 ")
    assert b"are you well" in got


def status_of(got: bytes) -> int:
    """That of an answer; it is HTTP, whatever it answers."""
    assert got.startswith(b"HTTP/1.1 "), got[:200]
    return int(got[9:12])


GOOD = request_of(PATH, CHAT)


@given(
    st.one_of(
        st.binary(max_size=2_000),
        st.tuples(st.integers(0, len(GOOD)), st.integers(0, 40), st.binary(max_size=40)).map(
            lambda cut: GOOD[: cut[0]] + cut[2] + GOOD[cut[0] + cut[1] :]
        ),
    )
)
@bounded
async def test_bytes_that_are_no_request_are_refused_or_waited_out(gateway: Running, garbage: bytes) -> None:
    got = await exchanged(gateway, garbage, patience_s=0.05)
    assert not got or status_of(got) in STATUSES
    await still_answers(gateway)


NAMES = st.one_of(
    st.sampled_from(["x-a", "X-A", "accept", "accept-encoding", "connection", "te", "expect", "upgrade", "cookie"]),
    st.sampled_from(["content-length", "transfer-encoding", "content-type", "authorization", "hedgerow-hedge"]),
    st.text("abcXYZ019!#$%&'*+.^_`|~-", min_size=1, max_size=60),
    st.text(st.characters(min_codepoint=1, max_codepoint=255), max_size=8),
)
VALUES = st.one_of(
    st.sampled_from(["", "0", "5", "-1", "1e3", "gzip, br", "chunked", "close", "100-continue", "websocket", "off"]),
    st.text(st.characters(min_codepoint=32, max_codepoint=255), max_size=60),
    st.integers(1, 70_000).map(lambda size: "v" * size),
)


@given(st.lists(st.tuples(NAMES, VALUES), max_size=12))
@bounded
async def test_odd_headers_are_refused_or_do_no_harm(gateway: Running, headers: list[tuple[str, str]]) -> None:
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers).encode("latin-1")
    line, _, rest = GOOD.partition(b"\r\n")
    got = await exchanged(gateway, line + b"\r\n" + lines + rest, patience_s=0.05)
    assert not got or status_of(got) in (*STATUSES, 100, 101)
    await still_answers(gateway)


@pytest.mark.parametrize(
    "lengths",
    [["5", "50"], ["50", "5"], ["5, 5"], ["5", "chunked"], ["+5"], ["0x5"], ["5 5"], ["-5"], [""], ["9" * 30]],
)
async def test_a_request_whose_length_is_in_doubt_is_not_sent_on(gateway: Running, lengths: list[str]) -> None:
    names = ["transfer-encoding" if length == "chunked" else "content-length" for length in lengths]
    told = "".join(f"{name}: {length}\r\n" for name, length in zip(names, lengths, strict=True))
    hidden = request_of("/v1/smuggled", saying("smuggled"))
    got = await exchanged(
        gateway, f"POST {PATH} HTTP/1.1\r\nhost: localhost\r\n{told}\r\n".encode(), hidden, patience_s=0.5
    )
    assert not got or status_of(got) in (400, 413)
    assert b"smuggled" not in got
    await still_answers(gateway)


BODY = json.dumps({"choices": [{"index": 0, "message": {"content": "a"}, "finish_reason": "stop"}]})
CHUNKED = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-type: {}\r\n\r\n"
HEADS = [
    "HTTP/1.1 200 OK\r\n",
    "HTTP/1.1 200\r\n",
    "HTTP/1.1 99999 No\r\n",
    "HTTP/1.1 204 None\r\n",
    "HTTP/1.1 103 Early\r\n",
]
RAW = st.one_of(
    st.binary(max_size=500).map(lambda data: data.decode("latin-1")),
    st.builds(
        "{}{}\r\n{}".format,
        st.sampled_from(HEADS),
        st.sampled_from(["", "a\r\n", "content-length: x\r\n"]),
        st.text("ab{}", max_size=9),
    ),
    st.builds(
        lambda kind, size, body: f"{CHUNKED.format(kind)}{size}\r\n{body}",
        st.sampled_from(["text/event-stream", "application/json"]),
        st.sampled_from(["5", "ffffffffffffffffffff", "-1", "zz", "", "3b", "0"]),
        st.sampled_from(["", "data:", BODY, f"data: {BODY}\n\n", "\xff" * 70_000]),
    ),
    st.integers(1, 3_000).map(lambda count: "HTTP/1.1 200 OK\r\n" + "x-more: and more\r\n" * count),
    st.integers(1, 100_000).map(lambda size: f"HTTP/1.1 200 OK\r\nx-long: {'y' * size}"),
    st.integers(0, 600).map(lambda cut: echoed("z" * 400).decode()[:cut]),
    st.text('data: {}[]\n\r"', max_size=200).map(
        lambda text: answer(text.encode(), "content-type: text/event-stream").decode()
    ),
)


@given(RAW, st.booleans())
@bounded
async def test_whatever_a_provider_says_its_client_hears_http_and_the_next_is_served(
    gateway: Running, raw: str, streamed: bool
) -> None:
    asked = saying("whatever", raw=raw, cuts=True, stream=streamed)
    status_of(await exchanged(gateway, request_of(PATH, asked, connection="close")))
    await still_answers(gateway)


@pytest.mark.parametrize("after", ["raw", "later"])  # in one breath with the answer, or when the connection is idle
@pytest.mark.parametrize("streamed", [False, True])
async def test_what_a_provider_says_unasked_is_nobodys_answer(gateway: Running, after: str, streamed: bool) -> None:
    unasked = echoed("unasked").decode()
    own = echoed("own", streamed=streamed).decode()
    fields = {"later": unasked} if after == "later" else {"raw": own + unasked}
    for _ in range(5):
        first = await exchanged(gateway, request_of(PATH, saying("own", stream=streamed, **fields), connection="close"))
        assert b"own" in first
        assert b"unasked" not in first
        await asyncio.sleep(0.05)
        await still_answers(gateway)


async def test_among_garbage_everybody_gets_only_what_is_theirs(gateway: Running) -> None:
    dice, over = random.Random(7), asyncio.Event()

    async def talk(name: int) -> None:
        client = await RawClient.connect(gateway.url)
        for call in range(CALLS):
            mark = f"client-{name}-{call}-"
            client.got = b""
            await client.send(request_of(PATH, saying(mark * 50, stream=bool(call % 2))))
            got = await client.read_until(mark.encode() * 50)
            assert status_of(got) == 200
            assert got.count(b"client-") == 50
            await client.read_until(b"\r\n0\r\n\r\n" if call % 2 else b"}]}")
        client.close()

    async def make_noise() -> None:
        while not over.is_set():
            raw = dice.choice([BODY, "HTTP/1.1 200 OK\r\n", echoed("noise").decode() + echoed("more noise").decode()])
            noise = [
                dice.randbytes(dice.randrange(2_000)),
                GOOD[: dice.randrange(len(GOOD))],
                request_of(PATH, saying("noise", raw=raw, cuts=dice.random() < 0.5)),
            ]
            await exchanged(gateway, dice.choice(noise), patience_s=0.02)

    noise = [asyncio.ensure_future(make_noise()) for _ in range(3)]
    await asyncio.gather(*(talk(name) for name in range(CLIENTS)))
    over.set()
    await asyncio.gather(*noise)
    await still_answers(gateway)


@pytest.mark.parametrize("status", [600, 999])
async def test_a_status_that_uvicorn_does_not_know_is_an_error_of_the_server(gateway: Running, status: int) -> None:
    """Cut off, a client would take it for a broken connection."""
    odd = answer(b'{"error":{"message":"odd"}}', "content-type: application/json", status=f"{status} Odd").decode()
    got = await exchanged(gateway, request_of(PATH, saying("x", raw=odd), connection="close"))
    assert status_of(got) == 500
    assert b'"odd"' in got
