"""Opens connections: looks a name up, tries its addresses by turns (Happy Eyeballs, RFC 8305), and agrees on TLS."""

import asyncio
import socket
import ssl
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import aiohappyeyeballs
import httpx2

from hedgerow.clock import Clock
from hedgerow.gateway.addresses import Origin
from hedgerow.gateway.connection import Connection, Owner

__all__ = ["Connector"]

CONNECT_S = 10.0  # a target that swallows packets
NAME_S = 60.0  # that a looked up name is good for
NEXT_ADDRESS_S = 0.25  # until the next address is tried beside one that does not answer

AddressInfo = tuple[int, int, int, str, tuple[Any, ...]]  # as getaddrinfo gives it


class Connector:
    """For one event loop. Certificates are checked against the system's, or those that SSL_CERT_FILE names."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._names: dict[Origin, tuple[float, asyncio.Task[Sequence[AddressInfo]]]] = {}

    async def open(self, origin: Origin, owner: Owner) -> Connection:
        """Raises httpx2.ConnectError, and ConnectTimeout after 10 s."""
        try:
            async with asyncio.timeout(CONNECT_S):
                return await self._open(origin, owner)
        except TimeoutError as error:
            raise httpx2.ConnectTimeout(f"no connection to {origin} within {CONNECT_S:g} s") from error
        except OSError as error:
            self._names.pop(origin, None)  # it may have moved
            raise httpx2.ConnectError(f"no connection to {origin}: {error}") from error

    async def _open(self, origin: Origin, owner: Owner) -> Connection:
        addresses = list(await self._addresses(origin))
        sock = await aiohappyeyeballs.start_connection(  # pyright: ignore[reportUnknownMemberType]  # addresses of any kind
            addresses, happy_eyeballs_delay=NEXT_ADDRESS_S, interleave=1, loop=asyncio.get_running_loop()
        )
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            _, connection = await asyncio.get_running_loop().create_connection(
                lambda: Connection(owner),
                sock=sock,
                ssl=self._tls if origin.tls else None,
                server_hostname=origin.host if origin.tls else None,
            )
        except BaseException:
            sock.close()
            raise
        return connection

    async def _addresses(self, origin: Origin) -> Sequence[AddressInfo]:
        """Looked up once for all who wait. Raises OSError."""
        now_s = self._clock.now()
        until_s, looking = self._names.get(origin, (0.0, None))
        if looking is None or now_s >= until_s or _in_vain(looking):
            looking = asyncio.get_running_loop().create_task(_looked_up(origin))
            looking.add_done_callback(_in_vain)  # which is no news: whoever waits for it is told
            self._names[origin] = (now_s + NAME_S, looking)
        return await asyncio.shield(looking)

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        context = ssl.create_default_context()
        context.set_alpn_protocols(["http/1.1"])
        return context


async def _looked_up(origin: Origin) -> Sequence[AddressInfo]:
    return await asyncio.get_running_loop().getaddrinfo(origin.host, origin.port, type=socket.SOCK_STREAM)


def _in_vain(looking: asyncio.Task[Sequence[AddressInfo]]) -> bool:
    return looking.done() and (looking.cancelled() or looking.exception() is not None)
