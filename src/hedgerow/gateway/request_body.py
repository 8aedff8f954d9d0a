"""A request's body as it is judged and sent on: decoded, and not so nested that looking at it would hold others up."""

import asyncio
import zlib
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Protocol, TypeVar

from hedgerow.dialects.lenient_json import MOST_VALUES, is_crowded
from hedgerow.gateway.apis import Trouble
from hedgerow.gateway.client import Refused, too_large
from hedgerow.gateway.headers import RequestHeaders

__all__ = ["LARGE_BYTES", "plain_body"]

LARGE_BYTES = 262_144  # from here on work that goes over a whole body is done in a thread
Result = TypeVar("Result")
GZIP_OR_ZLIB, RAW_DEFLATE = 47, -15
PIECE_BYTES = 65_536  # what is decoded at once: what follows a member's end is copied with each member
MOST_MEMBERS = 1_000  # of a gzip body, or frames of zstd; each costs what a decoder costs, and may be empty
LARGEST_WINDOW = 23  # of zstd, as a power of two: 8 MB, what RFC 9659 allows; the library itself allows 128 MB


class _Decoder(Protocol):
    """Of one member. eof: it has ended; unused_data: what came behind it."""

    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


async def plain_body(body: bytes, headers: RequestHeaders, limit_bytes: int) -> tuple[bytes, RequestHeaders]:
    """The body without its coding, and the headers that are true of it. Raises Refused: 415 for a coding that is not known, 400
    for damaged data, 413 for more than limit_bytes once decoded."""
    coding = (
        next((value for name, value in headers if name == b"content-encoding"), b"").decode("latin-1").strip().lower()
    )
    if coding not in ("", "identity"):
        opened = CODINGS.get(coding)
        if opened is None:
            names = [name for name in CODINGS if not name.startswith("x-")]
            known = f"{', '.join(names[:-1])} or {names[-1]}"
            allowed = [(b"accept-encoding", ", ".join(names).encode())]
            raise Refused(Trouble(415, f"bodies may come plain, or as {known}", "unsupported_encoding"), allowed)
        body = await _run(len(body), lambda: _decoded(body, opened, limit_bytes))
    if len(body) > MOST_VALUES and await _run(len(body), lambda: is_crowded(body)):
        raise Refused(Trouble(400, f"the body has more than {MOST_VALUES} objects, lists or fields", "too_many_values"))
    if not coding:
        return body, headers
    return body, [pair for pair in headers if pair[0] != b"content-encoding"]


async def _run(size: int, work: Callable[[], Result]) -> Result:
    return work() if size < LARGE_BYTES else await asyncio.to_thread(work)


def _decoded(body: bytes, opened: Callable[[bytes], _Decoder], limit_bytes: int) -> bytes:
    """Raises Refused. Never grows beyond the limit, whatever the body says of itself; no body at all stays none. opened: a
    decoder for what begins so."""
    decoder, members, pieces, size = None, 0, list[bytes](), 0
    try:
        for start in range(0, len(body), PIECE_BYTES):
            data = body[start : start + PIECE_BYTES]
            while data:
                if decoder is None or decoder.eof:
                    if decoder is not None and not (data := data.lstrip(b"\0")):
                        break  # padding
                    decoder, members = opened(data), members + 1
                if members > MOST_MEMBERS:
                    raise _damaged(f"the body has more than {MOST_MEMBERS} parts that are coded by themselves")
                pieces.append(decoder.decompress(data, limit_bytes + 1 - size))
                size += len(pieces[-1])
                if size > limit_bytes:
                    raise too_large(limit_bytes)
                data = decoder.unused_data if decoder.eof else b""
    except (zlib.error, ZSTD_ERROR) as error:
        raise _damaged(f"the body is not what its content-encoding says: {error}") from None
    if decoder is not None and not decoder.eof:
        raise _damaged("the body ends before its content-encoding does")
    return b"".join(pieces)


def _damaged(why: str) -> Refused:
    return Refused(Trouble(400, why, "bad_encoding"))


def _gzip(_: bytes) -> _Decoder:
    return zlib.decompressobj(31)


def _deflate(begun: bytes) -> _Decoder:
    """zlib's format, or the bare one that many clients send under this name."""
    wrapped = begun[:1] == b"\x1f" or (begun[0] & 0x0F == 8 and int.from_bytes(begun[:2]) % 31 == 0)
    return zlib.decompressobj(GZIP_OR_ZLIB if wrapped else RAW_DEFLATE)


def _zstd_module() -> Any:
    """Python's own from 3.14 on, before that the package of the extra `zstd`; None if there is neither."""
    for name in ("compression.zstd", "backports.zstd"):
        try:
            return import_module(name)
        except ImportError:
            pass
    return None


ZSTD = _zstd_module()
ZSTD_ERROR: type[Exception] = zlib.error if ZSTD is None else ZSTD.ZstdError


def _zstd(_: bytes) -> _Decoder:
    return ZSTD.ZstdDecompressor(options={ZSTD.DecompressionParameter.window_log_max: LARGEST_WINDOW})


CODINGS: Mapping[str, Callable[[bytes], _Decoder]] = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _deflate,
    **({} if ZSTD is None else {"zstd": _zstd}),
}
