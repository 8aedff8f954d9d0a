"""From the address a client asked for to the one a target is asked at. What a client writes can change the path below a target's
base URL, never the host: there is no way to another."""

import re
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import unquote_to_bytes

import httpx2

from hedgerow.dialects.gemini_paths import with_model
from hedgerow.gateway.apis import Api, Trouble
from hedgerow.values.request import StreamedRequest

__all__ = ["Address", "BadAddress", "BaseUrl", "Origin", "host_name"]

KEY_PARAMETER = re.compile(rb"(?:^|&)(key=([^&]*))")
# RFC 3986: what may stand in a path, without ";", which some servers cut off with all that follows it in the segment.
PATH = re.compile(rb"/(?:[A-Za-z0-9\-._~!$&'()*+,=:@/]|%[0-9A-Fa-f]{2})*")
QUERY = re.compile(rb"(?:[\x21\x23-\x24\x26-\x7e]|%[0-9A-Fa-f]{2})*")
ESCAPE = re.compile(rb"%([0-9A-Fa-f]{2})")
UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
PLAIN_IN_PATH = UNRESERVED | frozenset(b"!$&'()*+,=:@")  # servers take %3A for the colon of models/NAME:generateContent
# Escaped, they are another path to one server than to the next: / \\ ; ? # % and what does not print.
AMBIGUOUS = re.compile(rb"%(?:2F|5C|3B|3F|23|25|[01][0-9A-F]|7F)")
NAMED = re.compile(rb"(/models/)[^/]*")  # a model's name may hold a slash


@dataclass(frozen=True, slots=True)
class Origin:
    """Whom to connect to. host: a name in ASCII, or an IP address without brackets."""

    tls: bool
    host: str
    port: int

    @property
    def authority(self) -> str:
        """As it stands in an address and in the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.tls else 80) else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{'https' if self.tls else 'http'}://{self.authority}"


@dataclass(frozen=True, slots=True)
class BaseUrl:
    """What a target's addresses have in common. path: "" or what they begin with, percent-encoded."""

    origin: Origin
    path: str

    @classmethod
    def parse(cls, text: str) -> "BaseUrl":
        """Raises ValueError unless it is an http or https address of a host, without user, query or fragment."""
        try:
            url = httpx2.URL(text)
        except httpx2.InvalidURL as error:
            raise ValueError(str(error)) from None
        host, port = url.raw_host.decode("ascii"), url.port or {"http": 80, "https": 443}.get(url.scheme, 0)
        if not 0 < port < 65_536 or not host or "%" in host or "?" in text or "#" in text or url.userinfo:
            raise ValueError(text)
        return cls(Origin(url.scheme == "https", host, port), url.raw_path.decode("ascii").rstrip("/"))

    def __str__(self) -> str:
        return f"{self.origin}{self.path}"


class BadAddress(Exception):
    """A path that no client has reason to send. `trouble` says so."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.trouble = Trouble(400, f"this path is refused: {why}", "bad_path")


class Address:
    """The path and query of one request in their canonical spelling (RFC 3986, 6.2.2): what is judged is what is sent. `key` is
    taken out of the query. Raises BadAddress for what servers read in different ways."""

    __slots__ = ("_key_part", "key", "path", "query")

    def __init__(self, raw_path: bytes, raw_query: bytes) -> None:
        self.path = _path(raw_path)
        if raw_query:
            if not QUERY.fullmatch(raw_query):
                raise BadAddress("its query must hold printable ASCII and whole escapes only")
            raw_query = _canonical(raw_query, UNRESERVED)
        self.key: str | None = None
        self._key_part = ""
        if b"key=" in raw_query and (found := KEY_PARAMETER.search(raw_query)):
            self.key, self._key_part = unquote_to_bytes(found[2]).decode("latin-1"), found[1].decode("latin-1")
            raw_query = KEY_PARAMETER.sub(b"", raw_query).lstrip(b"&")
        self.query = raw_query.decode("latin-1")

    @property
    def with_key(self) -> "Address":
        """The same with the key in its query, for a target that gets the client's own."""
        if not self._key_part:
            return self
        whole = copy(self)
        whole.query = f"{self.query}&{self._key_part}" if self.query else self._key_part
        return whole

    def at(self, base_url: BaseUrl, api: Api, *, model: object = None, as_stream: StreamedRequest | None = None) -> str:
        """Path and query where a target is asked. model: asked for in place of the client's, where it stands in the address."""
        path, query = self.path, self.query
        if api.version and (path == api.version or path.startswith(f"{api.version}/")):
            path = path.removeprefix(api.version)
        if model is not None:
            path = with_model(path, model) or path
        if as_stream is not None:
            path, query = _as_stream(path, query, as_stream)
        return f"{base_url.path}{path}?{query}" if query else base_url.path + path


@lru_cache(maxsize=256)
def _path(raw: bytes) -> str:
    """The canonical spelling of a path. Raises BadAddress. Remembered: clients ask for few."""
    if not PATH.fullmatch(raw):
        raise BadAddress(
            "it must begin with a slash and hold unreserved characters, sub-delimiters without ; and whole escapes"
        )
    path = _canonical(raw, PLAIN_IN_PATH)
    if b"//" in path:
        raise BadAddress("it must not hold two slashes in a row")
    if AMBIGUOUS.search(NAMED.sub(lambda found: found[0].replace(b"%2F", b""), path)):
        raise BadAddress("it must not hold escaped delimiters")
    if any(part in (b".", b"..") for part in path.replace(b"%2F", b"/").split(b"/")):
        raise BadAddress("it must not climb")
    return (path.rstrip(b"/") or b"/").decode("ascii")


def _canonical(text: bytes, plain: frozenset[int]) -> bytes:
    """Escapes in capitals, and none for what needs none."""

    def spelt(found: re.Match[bytes]) -> bytes:
        byte = int(found[1], 16)
        return bytes([byte]) if byte in plain else b"%%%02X" % byte

    return ESCAPE.sub(spelt, text) if b"%" in text else text


def host_name(host: str) -> str:
    """A Host header without its port; an IPv6 address without brackets. In lower case."""
    host = host.strip().lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.rpartition(":")[0] if host.count(":") == 1 else host


def _as_stream(path: str, query: str, as_stream: StreamedRequest) -> tuple[str, str]:
    if as_stream.ending is not None:
        whole, streamed = as_stream.ending
        path = path.removesuffix(whole) + streamed
    laid_over = dict(as_stream.query)
    kept = [part for part in query.split("&") if part and part.partition("=")[0] not in laid_over]
    return path, "&".join([*kept, *(f"{name}={value}" for name, value in laid_over.items())])
