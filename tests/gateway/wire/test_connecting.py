"""From an address to a connection: names, TLS, time-outs, and connections that end unasked."""

import asyncio
import socket
import ssl
from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest
from tests.gateway.wire.provider import OK, Provider, body_of, provider_that, says
from tests.sdk.racing import eventually

from hedgerow.gateway import connecting
from hedgerow.gateway.addresses import Origin
from hedgerow.testing.process import SandboxProcess


async def test_one_that_the_provider_closed_meanwhile_is_not_used() -> None:
    async with provider_that(says(OK, cuts=True)) as provider:
        for _ in range(2):
            await body_of(await provider.ask())
            await eventually(lambda: provider.connections.resting == 0)
        assert provider.reused == [False, False]


@pytest.mark.parametrize(
    ("method", "word", "again"),
    [("GET", b"", True), ("DELETE", b"", True), ("POST", b"", False), ("GET", b"HTTP/1.1 2", False)],
)
async def test_one_that_the_provider_closes_when_it_is_used_again_costs_only_what_must_not_be_sent_twice(
    method: str, word: bytes, again: bool
) -> None:
    asked: list[bytes] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(OK)
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(word)

    head = f"{method} / HTTP/1.1\r\nhost: h\r\n\r\n".encode()
    async with provider_that(talk) as provider:
        await body_of(await provider.ask(head))
        if again:
            assert await body_of(await provider.ask(head)) == b"ok"
        else:
            with pytest.raises(httpx2.RemoteProtocolError, match="without an answer"):
                await provider.ask(head)
        assert asked == [head] * (3 if again else 2)
        assert provider.reused == [False, True]


async def test_connections_that_end_as_soon_as_they_are_opened_are_an_error() -> None:
    async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with provider_that(talk) as provider:
        for _ in range(20):
            with pytest.raises((httpx2.RemoteProtocolError, httpx2.ReadError)):
                await provider.ask()
        assert provider.connections.resting == 0


async def test_where_nobody_listens_it_says_so_at_once() -> None:
    async with provider_that(says(OK)) as provider:
        pass
    for _ in range(2):
        with pytest.raises(httpx2.ConnectError, match=str(provider.origin)):
            await provider.ask()


async def test_a_name_is_looked_up_once_for_all_who_wait_and_again_when_it_was_not_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found: list[list[tuple[int, int, int, str, tuple[str, int]]]] = []
    asked = 0

    async def look_up(origin: Origin) -> list[tuple[int, int, int, str, tuple[str, int]]]:
        nonlocal asked
        asked += 1
        await asyncio.sleep(0.01)
        if not found:
            raise socket.gaierror(socket.EAI_NONAME, f"{origin.authority} is not known")
        return found[0]

    async with provider_that(says(OK)) as provider:
        to = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", provider.origin.port))
        provider.origin = Origin(tls=False, host="api.example", port=80)
        monkeypatch.setattr(connecting, "_looked_up", look_up)
        asking = [asyncio.ensure_future(provider.ask()) for _ in range(5)]
        await asyncio.sleep(0)
        asking.pop().cancel()  # who leaves does not take it from the others
        for error in await asyncio.gather(*asking, return_exceptions=True):
            assert isinstance(error, httpx2.ConnectError)
            assert "api.example is not known" in str(error)
        assert asked == 1
        found.append([to])
        answers = await asyncio.gather(*(provider.ask() for _ in range(5)))
        assert {await body_of(answer) for answer in answers} == {b"ok"}
        assert asked == 2


async def test_a_target_that_swallows_packets_is_given_up_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(*_: object, **__: object) -> None:
        await asyncio.sleep(3600)

    monkeypatch.setattr(connecting, "CONNECT_S", 0.05)
    monkeypatch.setattr(connecting.aiohappyeyeballs, "start_connection", never)
    provider = Provider(says(OK))
    with pytest.raises(httpx2.ConnectTimeout, match=r"within 0\.05 s"):
        await provider.ask()


@pytest.mark.parametrize("trusted", [True, False])
async def test_tls_is_checked_against_the_certificates_that_are_trusted(
    trusted: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    hedgerow_sandbox_factory: Callable[..., SandboxProcess],
) -> None:
    sandbox = hedgerow_sandbox_factory(tls=True)
    (tmp_path / "ca.pem").write_text(sandbox.certificate())
    if trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    url = httpx2.URL(sandbox.url)
    assert url.port is not None
    provider = Provider(says())
    for host in ("localhost", "127.0.0.1"):
        provider.origin = Origin(tls=True, host=host, port=url.port)
        if not trusted:
            with pytest.raises(httpx2.ConnectError, match=r"(?i)certificate"):
                await provider.ask(b"GET /_sandbox/stats HTTP/1.1\r\nhost: h\r\n\r\n")
            continue
        for _ in range(2):
            answer = await provider.ask(b"GET /_sandbox/stats HTTP/1.1\r\nhost: h\r\n\r\n")
            assert answer.status == 200
            assert b"in_flight" in await body_of(answer)
    assert provider.reused == ([False, True] * 2 if trusted else [False, False])
    await provider.connections.close()


async def test_a_provider_that_speaks_no_tls_is_no_provider() -> None:
    async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(OK)

    async with provider_that(talk) as provider:
        provider.origin = Origin(tls=True, host=provider.origin.host, port=provider.origin.port)
        with pytest.raises(httpx2.ConnectError) as error:
            await provider.ask()
        assert isinstance(error.value.__cause__, ssl.SSLError | OSError)
