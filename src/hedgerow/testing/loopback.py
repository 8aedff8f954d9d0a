"""Refuses connections and look-ups that would leave the machine, while a test suite runs."""

import ipaddress
import socket
from typing import Any, cast

from hedgerow.errors import HedgerowError

__all__ = ["LoopbackGuard", "NonLoopbackError", "is_loopback"]


class NonLoopbackError(HedgerowError):
    """A test tried to reach another machine. No OSError, so that no client takes it for a failed connection and retries."""


class LoopbackGuard:
    """Patches the socket module between `install` and `remove`. One at a time, for the whole process."""

    def __init__(self) -> None:
        self._connect = socket.socket.connect
        self._connect_ex = socket.socket.connect_ex
        self._sendto = socket.socket.sendto
        self._getaddrinfo = socket.getaddrinfo

    def install(self) -> None:
        """From now on NonLoopbackError is raised by what would leave the machine."""
        guard = self

        def connect(self: socket.socket, address: Any) -> None:
            _check(self, address)
            guard._connect(self, address)

        def connect_ex(self: socket.socket, address: Any) -> int:
            _check(self, address)
            return guard._connect_ex(self, address)

        def sendto(self: socket.socket, data: Any, *flags_and_address: Any) -> int:
            _check(self, flags_and_address[-1])
            return guard._sendto(self, data, *flags_and_address)

        def getaddrinfo(host: Any, *rest: Any, **named: Any) -> Any:
            _refuse_unless_loopback(host)
            return guard._getaddrinfo(host, *rest, **named)

        patched: dict[str, Any] = {"connect": connect, "connect_ex": connect_ex, "sendto": sendto}
        for name, function in patched.items():
            setattr(socket.socket, name, function)
        socket.getaddrinfo = getaddrinfo

    def remove(self) -> None:
        """Puts the socket module back."""
        for name in ("connect", "connect_ex", "sendto"):
            # The three come from the base class; what was set on top of them is taken away.
            if name in vars(socket.socket):
                delattr(socket.socket, name)
        socket.getaddrinfo = self._getaddrinfo


def is_loopback(host: object) -> bool:
    """Does this host (name or address, None for "any of mine") stay on the machine?"""
    if host is None:
        return True
    text = host.decode("ascii", "replace") if isinstance(host, bytes) else str(host)
    if text in ("", "localhost", "0.0.0.0", "::") or text.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


def _check(sock: socket.socket, address: Any) -> None:
    if sock.family in (socket.AF_INET, socket.AF_INET6) and isinstance(address, tuple):
        _refuse_unless_loopback(cast(tuple[object, ...], address)[0])


def _refuse_unless_loopback(host: object) -> None:
    if not is_loopback(host):
        raise NonLoopbackError(
            f"a test tried to reach {host!r}; hedgerow_loopback_only allows 127.0.0.0/8, ::1 and localhost only. "
            "Point the client at the sandbox (fixture hedgerow_sandbox), or turn the option off"
        )
