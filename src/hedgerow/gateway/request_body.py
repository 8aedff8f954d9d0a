"""A request's body as it is judged and sent on: decoded, and not so nested that looking at it would hold others up."""

import asyncio
import zlib
from collections.abc import Callable

from hedgerow.gateway.apis import Trouble
from hedgerow.gateway.client import Refused, too_large
from hedgerow.gateway.headers import RequestHeaders

__all__ = ["LARGE_BYTES", "MOST_VALUES", "plain_body"]

LARGE_BYTES = 262_144  # from here on work that goes over a whole body is done in a thread
# Objects, lists and fields: a million empty objects take 0.1 s to parse and 3 s to look at. The longest prompts have 8 MB.
MOST_VALUES = 1_000_000
WBITS = {"gzip": 31, "x-gzip": 31, "deflate": 47}


async def plain_body(body: bytes, headers: RequestHeaders, limit_bytes: int) -> tuple[bytes, RequestHeaders]:
    """The body without its coding, and the headers that are true of it. Raises Refused: 415 for a coding that is not known, 400
    for damaged data, 413 for more than limit_bytes once decoded."""
    coding = (
        next((value for name, value in headers if name == b"content-encoding"), b"").decode("latin-1").strip().lower()
    )
    if coding not in ("", "identity"):
        wbits = WBITS.get(coding)
        if wbits is None:
            allowed = [(b"accept-encoding", b"gzip, deflate")]
            raise Refused(Trouble(415, "bodies may come plain, or as gzip or deflate", "unsupported_encoding"), allowed)
        body = await _run(len(body), lambda: _inflated(body, wbits, limit_bytes))
    if body.count(b"{") + body.count(b"[") > MOST_VALUES or body.count(b'":') > MOST_VALUES:
        raise Refused(Trouble(400, f"the body has more than {MOST_VALUES} objects, lists or fields", "too_many_values"))
    if not coding:
        return body, headers
    return body, [pair for pair in headers if pair[0] != b"content-encoding"]


async def _run(size: int, work: Callable[[], bytes]) -> bytes:
    return work() if size < LARGE_BYTES else await asyncio.to_thread(work)


def _inflated(body: bytes, wbits: int, limit_bytes: int) -> bytes:
    """Raises Refused. Never grows beyond the limit, whatever the body says of itself."""
    inflater, pieces, size = zlib.decompressobj(wbits), list[bytes](), 0
    try:
        while body:
            pieces.append(inflater.decompress(body, limit_bytes + 1 - size))
            size += len(pieces[-1])
            if size > limit_bytes:
                raise too_large(limit_bytes)
            body = inflater.unconsumed_tail
            if inflater.eof and (body := inflater.unused_data):
                inflater = zlib.decompressobj(wbits)  # gzip may have several members
    except zlib.error as error:
        raise Refused(
            Trouble(400, f"the body is not what its content-encoding says: {error}", "bad_encoding")
        ) from None
    if not inflater.eof:
        raise Refused(Trouble(400, "the body ends before its content-encoding does", "bad_encoding"))
    return b"".join(pieces)
