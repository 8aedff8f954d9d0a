"""The door: each request is made canonical once, here, and what is judged afterwards is what is sent on. What has two readings is
refused, since a proxy before us or a provider behind us may take the other one."""

from dataclasses import dataclass

from hedgerow.dialects.headers import CREDENTIALS
from hedgerow.gateway.addresses import Address, BadAddress
from hedgerow.gateway.apis import Trouble
from hedgerow.gateway.client import Client, Refused
from hedgerow.gateway.headers import OWN_PREFIX, RequestHeaders

__all__ = ["METHODS", "Head", "check_head", "head_of"]

# TRACE shows the provider's key to whoever asks; CONNECT is for proxies; OPTIONS is answered here, if at all (origins.py).
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
VERSIONS = ("1.1", "1.0")
# Sent twice, one server takes the first and the next the last.
ONCE = frozenset(
    {b"content-type", b"content-encoding", b"content-length", b"host", b"origin", b"anthropic-version"}
    | {name.encode() for name in CREDENTIALS if name != "cookie"}
)


@dataclass(frozen=True, slots=True)
class Head:
    """What a request asks for, before its body has come: canonical."""

    method: str
    address: Address
    headers: RequestHeaders


def head_of(client: Client) -> Head:
    """Raises Refused."""
    headers = client.headers
    check_head(client)
    if b"upgrade" in client.names and any(
        name == b"upgrade" and value.lower() == b"websocket" for name, value in headers
    ):
        raise Refused(Trouble(400, "this gateway carries no websockets", "no_websockets"))
    if client.method not in METHODS:
        message = f"this method is not for a gateway; it takes {', '.join(METHODS)}"
        raise Refused(Trouble(405, message, "method_not_allowed"), [(b"allow", ", ".join(METHODS).encode())])
    try:
        address = Address(client.raw_path, client.raw_query)
    except BadAddress as bad:
        raise Refused(bad.trouble) from None
    return Head(client.method, address, headers)


def check_head(client: Client) -> None:
    """Raises Refused for a head that has two readings."""
    _check_lines(client)
    if client.authority is not None:
        _check_authority(client.authority, client.headers)


def _check_lines(client: Client) -> None:
    """RFC 9112, 3.2: exactly one Host. RFC 9110, 5.3: a field that is no list comes once."""
    if len(client.names) != len(client.headers):
        seen = set[bytes]()
        for name, _ in client.headers:
            if name in seen and (name in ONCE or name.startswith(OWN_PREFIX)):
                raise _bad(f"the header {name.decode('latin-1')[:40]} came twice")
            seen.add(name)
    if client.http_version not in VERSIONS:
        raise _bad("it is of another version than HTTP/1.0 and HTTP/1.1")
    if b"host" not in client.names and client.http_version != "1.0":
        raise _bad("it has no Host header")
    if b"transfer-encoding" in client.names:
        _check_transfer(client)


def _check_transfer(client: Client) -> None:
    """RFC 9112, 6.1: HTTP/1.0 knows none, and one that is not known must not be passed over."""
    codings = [value.strip().lower() for name, value in client.headers if name == b"transfer-encoding"]
    if client.http_version == "1.0":
        raise _bad("HTTP/1.0 has no transfer-encoding")
    if codings != [b"chunked"]:
        raise _bad("the only transfer-encoding that is known here is chunked")


def _check_authority(authority: bytes, headers: RequestHeaders) -> None:
    """An absolute address (RFC 9112, 3.2.2) is taken where it says what Host says."""
    host = next((value for name, value in headers if name == b"host"), b"")
    if authority.lower() != host.strip().lower():
        raise _bad("its address names another host than its Host header")


def _bad(why: str) -> Refused:
    return Refused(Trouble(400, f"this request is refused: {why}", "bad_request"))
