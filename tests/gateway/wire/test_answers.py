"""The gateway's own HTTP/1.1 towards its targets: how answers end, what is no answer, when a connection carries another call and
when it does not."""

import asyncio
import socket
import struct
from collections.abc import Sequence

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.gateway.wire.provider import OK, body_of, provider_that, says
from tests.sdk.racing import eventually

from hedgerow.gateway.connection import AHEAD_BYTES, MAX_HEAD_BYTES

CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("pieces", "body", "stays"),
    [
        ([OK], b"ok", True),
        ([bytes([byte]) for byte in OK], b"ok", True),
        ([CHUNKED, b"2\r\nok\r\n", b"3;x=y\r\n, 2\r\n", b"0\r\n\r\n"], b"ok, 2", True),
        ([CHUNKED + b"2\r\nok\r\n0\r\nx-late: trailer\r\n\r\n"], b"ok", True),
        ([b"HTTP/1.1 204 No Content\r\n\r\n"], b"", True),
        ([b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"], b"", True),
        ([b"HTTP/1.1 100 Continue\r\n\r\n", OK], b"ok", True),
        ([b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" + OK], b"ok", True),
        ([b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\nconnection: keep-alive\r\n\r\nok"], b"ok", True),
        ([b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok"], b"ok", False),
        ([b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok"], b"ok", False),
        ([OK.replace(b"\r\n\r\n", b"\r\nconnection: Upgrade\r\nupgrade: h2,h2c\r\n\r\n")], b"ok", True),
        ([OK + b"HTTP/1.1 200 OK\r\n"], b"ok", False),
        ([OK + b"more than was told"], b"ok", False),
        ([OK, b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n\r\n"], b"ok", False),
    ],
)
async def test_an_answer_ends_where_it_says_and_its_connection_stays_if_it_may(
    pieces: Sequence[bytes], body: bytes, stays: bool
) -> None:
    async with provider_that(says(*pieces)) as provider:
        for _ in range(2):
            answer = await provider.ask()
            assert await body_of(answer) == body
            assert all(name not in (b"link", b"x-late") for name, _ in answer.headers)
            await answer.close()
            await eventually(lambda: provider.connections.resting == stays)
        assert provider.reused == [False, stays]
        assert provider.met == (1 if stays else 2)


async def test_an_answer_of_unknown_length_ends_with_its_connection() -> None:
    async with provider_that(says(b"HTTP/1.1 200 OK\r\n\r\n", b"all ", b"of it", cuts=True)) as provider:
        assert await body_of(await provider.ask()) == b"all of it"
        assert provider.connections.resting == 0


async def test_an_answer_to_head_has_no_body_whatever_length_it_tells() -> None:
    async with provider_that(says(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n")) as provider:
        answer = await provider.ask(b"HEAD /v1/models HTTP/1.1\r\nhost: h\r\n\r\n")
        assert (await body_of(answer), dict(answer.headers)) == (b"", {b"content-length": b"9"})
        assert provider.connections.resting == 0


@pytest.mark.parametrize(
    ("pieces", "seen", "error"),
    [
        ([b""], None, "without an answer"),
        ([b"HTTP/1.1 200 OK\r\ncontent-"], None, "without an answer"),
        ([b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf"], b"half", "in the middle"),
        ([CHUNKED + b"4\r\nhalf\r\n"], b"half", "in the middle"),
        ([CHUNKED + b"4\r\nhalf\r\nnot hex\r\n"], b"half", "not HTTP/1.1"),
        ([b"SSH-2.0-OpenSSH_9.2\r\n"], None, "not HTTP/1.1"),
        ([b"\x15\x03\x01\x00\x02\x02\x16"], None, "not HTTP/1.1"),
        ([b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nabc"], None, "not HTTP/1.1"),
        ([b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n"], None, "."),
        ([b"HTTP/1.1 200 OK\r\n", b"x: " + b"y" * MAX_HEAD_BYTES], None, f"more than {MAX_HEAD_BYTES} bytes"),
    ],
)
async def test_what_is_no_whole_answer_says_why_after_its_last_byte(
    pieces: Sequence[bytes], seen: bytes | None, error: str
) -> None:
    async with provider_that(says(*pieces, cuts=True)) as provider:
        if seen is None:
            with pytest.raises(httpx2.RemoteProtocolError, match=error):
                await provider.ask()
        else:
            answer = await provider.ask()
            assert await answer.read() == seen
            for _ in range(2):
                with pytest.raises(httpx2.RemoteProtocolError, match=error):
                    await answer.read()
        await eventually(lambda: provider.open == 0)
        assert provider.connections.resting == 0


async def test_a_connection_that_is_reset_is_a_read_error() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK[:-1])
        await writer.drain()
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()

    async with provider_that(talk) as provider:
        with pytest.raises(httpx2.ReadError):
            await body_of(await provider.ask())


async def test_a_provider_waits_for_a_reader_that_is_slow() -> None:
    sent = 0

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        while await reader.readuntil(b"\r\n\r\n"):
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 50000000\r\n\r\n")
            for _ in range(500):
                writer.write(b"x" * 100_000)
                await writer.drain()
                sent += 100_000

    async with provider_that(talk) as provider:
        answer = await provider.ask()
        before = -1
        while sent > before:
            before = sent
            await asyncio.sleep(0.1)
        assert sent < 40_000_000
        assert len(await answer.read()) < 4 * AHEAD_BYTES
        rest = len(await body_of(answer))
        assert sent == 50_000_000 > rest > 49_000_000 - 4 * AHEAD_BYTES
        await body_of(await provider.ask())
        assert provider.reused == [False, True]


async def test_a_large_request_is_sent_whole_and_its_connection_stays() -> None:
    got: list[bytes] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.readuntil(b"\r\n\r\n"):
            got.append(await reader.readexactly(5_000_000))
            writer.write(OK)

    body = bytes(range(250)) * 20_000
    async with provider_that(talk) as provider:
        for _ in range(2):
            await body_of(await provider.ask(b"POST / HTTP/1.1\r\ncontent-length: 5000000\r\n\r\n", body))
        assert got == [body, body]
        assert provider.reused == [False, True]


async def test_a_refusal_before_all_is_sent_is_read_and_the_rest_kept_back() -> None:
    refusal = b"HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\n\r\nno"

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(refusal)
        await writer.drain()
        await reader.read()

    async with provider_that(talk) as provider:
        answer = await provider.ask(b"POST / HTTP/1.1\r\ncontent-length: 50000000\r\n\r\n", b"x" * 50_000_000)
        assert (answer.status, await body_of(answer)) == (413, b"no")
        await eventually(lambda: provider.open == 0)
        assert provider.connections.resting == 0


async def test_a_provider_that_hangs_up_during_a_large_request_is_an_error_and_no_answer() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(1000)
        writer.transport.abort()

    async with provider_that(talk) as provider:
        with pytest.raises((httpx2.RemoteProtocolError, httpx2.ReadError)):
            await provider.ask(b"POST / HTTP/1.1\r\ncontent-length: 50000000\r\n\r\n", b"x" * 50_000_000)
        assert provider.connections.resting == 0


@pytest.mark.parametrize("when", ["before the head", "in the body"])
async def test_a_call_that_is_given_up_ends_its_connection_at_once(when: str) -> None:
    heard = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        if when == "in the body":
            writer.write(CHUNKED + b"2\r\nok\r\n")
        heard.set()
        await reader.read()

    async with provider_that(talk) as provider:
        asking = asyncio.ensure_future(provider.ask())
        await heard.wait()
        if when == "in the body":
            answer = await asking
            assert await answer.read() == b"ok"
            for _ in range(2):
                await answer.close()
            with pytest.raises(httpx2.ReadError, match="our side"):
                await answer.read()
        else:
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
        await eventually(lambda: provider.met == 2)  # a spare one in its place
        await eventually(lambda: provider.open == 1)


@given(st.lists(st.binary(max_size=40), max_size=6), st.sampled_from([b"", OK[:40], CHUNKED, CHUNKED + b"2\r\nok\r\n"]))
def test_no_bytes_upset_it(pieces: Sequence[bytes], front: bytes) -> None:
    async def check() -> None:
        async with provider_that(says(front, *pieces, cuts=True)) as provider:
            try:
                answer = await provider.ask()
                await body_of(answer)
            except (httpx2.RemoteProtocolError, httpx2.ReadError):
                pass
            await eventually(lambda: provider.open == 0)
            assert provider.connections.resting == 0

    asyncio.run(check())
