"""Which headers go on, up to a target and back to the client."""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial

from hedgerow.dialects.encoding import decodable_accept_encoding
from hedgerow.dialects.headers import CREDENTIALS, Headers

__all__ = ["OWN_PREFIX", "RequestHeaders", "answer_headers", "in_a_header", "upstream_headers"]

OWN_PREFIX = b"hedgerow-"
UNFIT, LONGEST_WORD = re.compile(r"[^\x20-\x7e]"), 200
MOST_REMEMBERED, LONGEST_REMEMBERED = 512, 64
MOST_ACCEPTED = 256  # bytes of an accept-encoding; what stands behind them is not asked for
RequestHeaders = Sequence[tuple[bytes, bytes]]
HOP_BY_HOP = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
KEYS = frozenset(name.encode() for name in CREDENTIALS)
# What tells where a client is, and how it came to us: nobody else's business.
OF_THE_WAY = frozenset(
    {b"forwarded", b"host", b"via", b"x-real-ip", b"cookie", b"content-length", b"expect", b"origin", b"referer"}
)
PREFIXES_NEVER_UP = (b"x-forwarded-", b"sec-fetch-", b"sec-ch-", OWN_PREFIX)
# Another method or path than the one that was judged.
TAKES_ITS_PLACE = frozenset(
    {b"x-http-method", b"x-http-method-override", b"x-method-override", b"x-original-url", b"x-rewrite-url"}
)
# llama.cpp keeps a stream alive for its conversation after its connection is gone: a loser would run on.
OUTLIVES_US = frozenset({b"x-conversation-id"})
NEVER_UP = HOP_BY_HOP | OF_THE_WAY | OUTLIVES_US | TAKES_ITS_PLACE
# Orders to the nginx that is next: a provider's must not reach the one in front of us. And who may read an answer in a browser is
# the gateway's to say: cors_origins.
PREFIXES_NEVER_DOWN = (OWN_PREFIX, b"x-accel-", b"access-control-")
NEVER_DOWN = HOP_BY_HOP | {b"server", b"date", b"set-cookie", b"alt-svc", b"strict-transport-security"}


def upstream_headers(headers: RequestHeaders, *, keep_keys: bool, decodable: bool) -> list[tuple[bytes, bytes]]:
    """A client's headers as they go on, without key, host and length. keep_keys: the client's own key goes through. decodable:
    the answer must be one that can be looked into."""
    dropped, goes_up = _named_by_connection(headers), WITH_KEYS if keep_keys else WITHOUT_KEYS
    kept = [pair for pair in headers if goes_up[pair[0]] and pair[0] not in dropped]
    if not decodable:
        return kept
    return [
        (name, _decodable(value[:MOST_ACCEPTED])) if name == b"accept-encoding" else (name, value)
        for name, value in kept
    ]


def answer_headers(headers: Headers, ours: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """A target's headers as the client gets them, and ours."""
    lower = [(name.lower(), value) for name, value in headers]
    dropped = _named_by_connection(lower)
    return [*[pair for pair in lower if COMES_DOWN[pair[0]] and pair[0] not in dropped], *ours]


def in_a_header(text: str) -> bytes:
    """A word of ours that may have a client's word in it, as it can stand in a header: short, and on one line."""
    short = text[:LONGEST_WORD]
    return (short if short.isascii() and short.isprintable() else UNFIT.sub("?", short)).encode("ascii")


class _Verdicts(dict[bytes, bool]):
    """Does a header of this name go on? Asked for each header of each request, so answers are kept: of few names, and short ones,
    since names are strangers' words."""

    def __init__(self, goes_on: Callable[[bytes], bool]) -> None:
        super().__init__()
        self._goes_on = goes_on

    def __missing__(self, name: bytes) -> bool:
        verdict = self._goes_on(name)
        if len(self) < MOST_REMEMBERED and len(name) <= LONGEST_REMEMBERED:
            self[name] = verdict
        return verdict


def _goes_up(name: bytes, *, keep_keys: bool) -> bool:
    read_as = name.replace(b"_", b"-")  # by servers that pass headers on as variables
    if read_as in NEVER_UP or read_as.startswith(PREFIXES_NEVER_UP):
        return False
    return read_as not in KEYS or (keep_keys and read_as == name)


def _comes_down(name: bytes) -> bool:
    return name not in NEVER_DOWN and not name.startswith(PREFIXES_NEVER_DOWN)


WITH_KEYS, WITHOUT_KEYS = (_Verdicts(partial(_goes_up, keep_keys=keep_keys)) for keep_keys in (True, False))
COMES_DOWN = _Verdicts(_comes_down)


@lru_cache(maxsize=64)
def _decodable(accept_encoding: bytes) -> bytes:
    return decodable_accept_encoding(accept_encoding.decode("latin-1")).encode("latin-1")


def _named_by_connection(headers: RequestHeaders) -> frozenset[bytes]:
    """What a Connection header declares to be for this hop only."""
    named = [value for name, value in headers if name == b"connection"]
    return frozenset(part.strip().lower() for value in named for part in value.split(b",")) if named else frozenset()
