"""The sandbox's HTTP: framing both ways, strictness, and staying up whatever arrives."""

import asyncio
import os
import random
import socket

import psutil
import pytest
from raw_client import Response, ask, connect, poll, request, send

from hedgerow.sandbox.server import Sandbox, SandboxSettings
from hedgerow.testing.process import QUICK_PROFILE

CHAT = b'{"model":"m","messages":[{"role":"user","content":"hi"}]}'
POST = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n"

GARBAGE = {
    "not HTTP": b"HELLO\r\n\r\n",
    "binary": bytes(range(256)) + b"\r\n\r\n",
    "HTTP/2 preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "no colon": POST + b"broken header\r\n\r\n",
    "folded header": POST + b"a: b\r\n c\r\n\r\n",
    "space before the colon": POST + b"content-length : 3\r\n\r\n",
    "length that is no number": POST + b"content-length: three\r\n\r\n",
    "negative length": POST + b"content-length: -3\r\n\r\n",
    "two lengths": POST + b"content-length: 3\r\ncontent-length: 4\r\n\r\n",
    "length and chunks": POST + b"content-length: 3\r\ntransfer-encoding: chunked\r\n\r\n",
    "bad chunk size": POST + b"transfer-encoding: chunked\r\n\r\nxyz\r\n",
    "chunk longer than its size": POST + b"transfer-encoding: chunked\r\n\r\n2\r\nabcd\r\n",
    "no JSON": POST + b"content-length: 3\r\n\r\n{{{",
    "not an object": POST + b"content-length: 2\r\n\r\n[]",
    "no messages": POST + b'content-length: 13\r\n\r\n{"model":"m"}',
    "empty body": POST + b"content-length: 0\r\n\r\n",
}


@pytest.mark.parametrize("sent", GARBAGE.values(), ids=GARBAGE)
def test_garbage_gets_a_400(hedgerow_sandbox, sent):
    with connect(hedgerow_sandbox) as sock:
        sock.sendall(sent)
        answer = Response(sock)
    assert answer.status == 400
    assert answer.json["error"]["message"]
    assert ask(hedgerow_sandbox).status == 200


def test_random_bytes_do_not_take_it_down(hedgerow_sandbox):
    luck = random.Random(5)
    good = request(script={"tokens": 1})
    for _ in range(150):
        spoilt = bytearray(good)
        for _ in range(luck.randint(1, 6)):
            spoilt[luck.randrange(len(spoilt))] = luck.randrange(256)
        with connect(hedgerow_sandbox) as sock:
            sock.sendall(bytes(spoilt[: luck.randrange(1, len(spoilt) + 1)]))
    assert ask(hedgerow_sandbox).status == 200


def test_a_head_without_end_and_a_body_too_large_are_refused(hedgerow_sandbox):
    with connect(hedgerow_sandbox) as sock:
        sock.sendall(POST + b"a: " + b"b" * 300_000)
        assert Response(sock).status == 431
    with connect(hedgerow_sandbox) as sock:
        sock.sendall(POST + b"content-length: 99999999999\r\n\r\n")
        assert Response(sock).status == 413


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("GET /v1/chat/completions", 405),
        ("POST /v1/nothing", 404),
        ("GET /", 404),
        ("GET /v1/models", 200),
        ("GET /models?limit=1", 200),
        ("GET http://sandbox/v1/models", 200),
    ],
)
def test_routes(hedgerow_sandbox, line, status):
    with connect(hedgerow_sandbox) as sock:
        sock.sendall(f"{line} HTTP/1.1\r\nhost: x\r\n\r\n".encode())
        assert Response(sock).status == status


@pytest.mark.parametrize("path", ["/chat/completions", "/v1/chat/completions?api-version=1"])
def test_chat_is_found_with_and_without_version(hedgerow_sandbox, path):
    assert ask(hedgerow_sandbox, path=path).json["object"] == "chat.completion"


def test_a_connection_serves_many_requests(hedgerow_sandbox):
    with connect(hedgerow_sandbox) as sock:
        for stream in (False, True, True, False):
            sock.sendall(request(stream=stream))
            assert Response(sock).ending == "end"
    assert hedgerow_sandbox.stats()["completed"] == 4


def test_connection_close_is_honoured(hedgerow_sandbox):
    with send(hedgerow_sandbox, headers={"connection": "close"}) as sock:
        assert Response(sock).headers["connection"] == "close"
        assert sock.recv(1) == b""


def test_an_http_1_0_client_gets_a_stream_that_ends_with_the_connection(hedgerow_sandbox):
    with connect(hedgerow_sandbox) as sock:
        sock.sendall(request(stream=True).replace(b"HTTP/1.1", b"HTTP/1.0", 1))
        received = b""
        while data := sock.recv(65536):
            received += data
    assert b"transfer-encoding" not in received
    assert received.endswith(b"data: [DONE]\n\n")


def test_a_chunked_request_body(hedgerow_sandbox):
    with connect(hedgerow_sandbox) as sock:
        sock.sendall(POST + b"transfer-encoding: chunked\r\n\r\n")
        for byte in CHAT:
            sock.sendall(b"1;note=x\r\n%c\r\n" % byte)
        sock.sendall(b"0\r\ntrailer: 1\r\n\r\n")
        assert Response(sock).status == 200


def test_expect_100_continue(hedgerow_sandbox):
    with connect(hedgerow_sandbox) as sock:
        sock.sendall(POST + b"expect: 100-continue\r\ncontent-length: %d\r\n\r\n" % len(CHAT))
        assert sock.recv(4096) == b"HTTP/1.1 100 Continue\r\n\r\n"
        sock.sendall(CHAT)
        assert Response(sock).status == 200


def test_a_client_that_leaves_in_mid_request_is_no_request(hedgerow_sandbox):
    with connect(hedgerow_sandbox) as sock:
        sock.sendall(request()[:-5])
    assert ask(hedgerow_sandbox).status == 200
    assert hedgerow_sandbox.stats()["started"] == 1


def test_200_connections_at_once(hedgerow_sandbox):
    script = {"first_token_s": 0.5, "tokens": 3}
    socks = [send(hedgerow_sandbox, script=script, stream=bool(number % 2)) for number in range(200)]
    poll(lambda: hedgerow_sandbox.stats()["started"], 200)
    answers = [Response(sock) for sock in socks]
    for sock in socks:
        sock.close()
    assert {answer.status for answer in answers} == {200}
    assert hedgerow_sandbox.stats()["completed"] == 200


@pytest.mark.skipif(os.name != "posix", reason="counts descriptors")
async def test_descriptors_return_to_the_base_line():
    own = psutil.Process()
    async with Sandbox(SandboxSettings(profile=QUICK_PROFILE)) as sandbox:
        port = int(sandbox.url.rpartition(":")[2])
        before = own.num_fds()
        scripts = [{"tokens": 3}, {"cut_after": 1}, {"reset": True}, {"first_token_s": 3600}, {"half_open": True}]
        opened = []
        for number in range(100):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(request(script=scripts[number % 5], stream=True))
            opened.append((reader, writer))
        while sandbox.stats()["started"] < 100:
            await asyncio.sleep(0.01)
        for _, writer in opened:
            writer.close()
        while sandbox.stats()["in_flight"] > 20:
            await asyncio.sleep(0.01)
        # What is left are the half-open ones, which ignore that the client has gone until they are told.
        sandbox.reset()
        while own.num_fds() > before:
            await asyncio.sleep(0.01)


async def test_closing_ends_answers_under_way():
    async with Sandbox(SandboxSettings(profile=QUICK_PROFILE)) as sandbox:
        sock = await asyncio.to_thread(lambda: send(sandbox, script={"first_token_s": 3600}, stream=True))
        while not sandbox.stats()["in_flight"]:
            await asyncio.sleep(0.01)
    with sock:
        assert (await asyncio.to_thread(Response, sock)).ending in ("fin", "rst")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(sandbox.url.rpartition(":")[2])), timeout=5)
