"""Which headers go on, up to a target and back to the client."""

import re
from collections.abc import Iterable, Sequence

from hedgerow.dialects.encoding import decodable_accept_encoding
from hedgerow.dialects.headers import CREDENTIALS, Headers

__all__ = ["OWN_PREFIX", "RequestHeaders", "answer_headers", "in_a_header", "upstream_headers"]

OWN_PREFIX = b"hedgerow-"
UNFIT, LONGEST_WORD = re.compile(r"[^\x20-\x7e]"), 200
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
OF_THE_WAY_TOO = (b"x-forwarded-", b"sec-fetch-", b"sec-ch-")
# Another method or path than the one that was judged.
TAKES_ITS_PLACE = frozenset(
    {b"x-http-method", b"x-http-method-override", b"x-method-override", b"x-original-url", b"x-rewrite-url"}
)
# llama.cpp keeps a stream alive for its conversation after its connection is gone: a loser would run on.
OUTLIVES_US = frozenset({b"x-conversation-id"})
NEVER_UP = HOP_BY_HOP | OF_THE_WAY | OUTLIVES_US | TAKES_ITS_PLACE
FOR_A_PROXY = b"x-accel-"  # orders to the nginx that is next: a provider's must not reach the one in front of us
OF_A_BROWSER = b"access-control-"  # who may read an answer in a browser is the gateway's to say: cors_origins
NOT_OURS_TO_SAY = frozenset({b"server", b"date", b"set-cookie", b"alt-svc", b"strict-transport-security"})


def upstream_headers(headers: RequestHeaders, *, keep_keys: bool, decodable: bool) -> list[tuple[bytes, bytes]]:
    """A client's headers as they go on, without key, host and length. keep_keys: the client's own key goes through. decodable:
    the answer must be one that can be looked into."""
    dropped = _named_by_connection(headers)
    kept: list[tuple[bytes, bytes]] = []
    for name, value in headers:
        read_as = name.replace(b"_", b"-") if b"_" in name else name  # by servers that pass headers on as variables
        if (
            read_as in NEVER_UP
            or name in dropped
            or (read_as in KEYS and (not keep_keys or read_as != name))
            or read_as.startswith((*OF_THE_WAY_TOO, OWN_PREFIX))
        ):
            continue
        if decodable and name == b"accept-encoding":
            value = decodable_accept_encoding(value.decode("latin-1")).encode("latin-1")
        kept.append((name, value))
    return kept


def answer_headers(headers: Headers, ours: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """A target's headers as the client gets them, and ours."""
    lower = [(name.lower(), value) for name, value in headers]
    dropped = _named_by_connection(lower)
    kept = [
        (name, value)
        for name, value in lower
        if name not in HOP_BY_HOP
        and name not in NOT_OURS_TO_SAY
        and name not in dropped
        and not name.startswith((OWN_PREFIX, FOR_A_PROXY, OF_A_BROWSER))
    ]
    return [*kept, *ours]


def in_a_header(text: str) -> bytes:
    """A word of ours that may have a client's word in it, as it can stand in a header: short, and on one line."""
    return UNFIT.sub("?", text[:LONGEST_WORD]).encode("ascii")


def _named_by_connection(headers: RequestHeaders) -> frozenset[bytes]:
    """What a Connection header declares to be for this hop only."""
    named = [value for name, value in headers if name == b"connection"]
    return frozenset(part.strip().lower() for value in named for part in value.split(b",")) if named else frozenset()
