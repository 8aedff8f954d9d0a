"""Looks into compressed answers: a decoded copy of bytes that are relayed as they came.

Owns which content encodings can be seen through, and how an accept-encoding is narrowed to them.
"""

import zlib

__all__ = ["ContentDecoder", "decodable_accept_encoding"]

SEEN_THROUGH = frozenset({"", "identity", "gzip", "x-gzip", "deflate"})
GZIP_OR_ZLIB = 15 + 32  # zlib's own mark for "tell the two apart by their header"
RAW_DEFLATE = -15
# A read may grow to 16 MB, or to 32 times itself if that is more. Text compresses 3 to 10 times, a bomb 1,000 times.
MAX_GROWN_BYTES = 16 * 1024 * 1024
MAX_GROWTH = 32
MOST_MEMBERS = 1_000  # of one body; an empty one has 20 bytes and costs what a decoder costs


class ContentDecoder:
    """Incremental decoder of one body; not shared.

    `encoding` is the response's content-encoding, None if it has none; `compressed`: it has one. `sees` is False once the
    content cannot be seen: an encoding we do not know, more than one, damaged data, a body in thousands of members, or a read
    that grows beyond any honest text. From then on `decode` returns nothing, and whoever looks must treat the answer as one of
    unknown content.
    """

    __slots__ = ("_header", "_inflater", "_members", "compressed", "sees")

    def __init__(self, encoding: str | None = None) -> None:
        name = (encoding or "").strip().lower()
        self.sees = name in SEEN_THROUGH
        self.compressed = name not in {"", "identity"}
        self._inflater = zlib.decompressobj(GZIP_OR_ZLIB) if name.endswith("gzip") else None
        self._header: bytes = b""
        self._members = 1

    def decode(self, data: bytes) -> bytes:
        """The content in these bytes; at most the larger of 16 MB and 32 × len(data). Never raises."""
        if not self.sees:
            return b""
        if not self.compressed:
            return data
        if self._inflater is None:
            data = self._header + data
            if len(data) < 2:
                self._header = data
                return b""
        return self._inflate(data)

    def _inflate(self, data: bytes) -> bytes:
        inflater = self._inflater or zlib.decompressobj(GZIP_OR_ZLIB if _has_header(data) else RAW_DEFLATE)
        limit_bytes = max(MAX_GROWN_BYTES, MAX_GROWTH * len(data))
        pieces: list[bytes] = []
        try:
            while data and limit_bytes > 0:
                if inflater.eof:
                    # gzip may go on with a further member; zeros between or after members are padding.
                    data = data.lstrip(b"\0")
                    if not data.startswith(b"\x1f"):
                        break
                    self._members += 1
                    if self._members > MOST_MEMBERS:
                        self.sees = False
                        break
                    inflater = zlib.decompressobj(GZIP_OR_ZLIB)
                pieces.append(inflater.decompress(data, limit_bytes))
                limit_bytes -= len(pieces[-1])
                data = inflater.unused_data
        except zlib.error:
            self.sees = False
        if limit_bytes <= 0:
            self.sees = False
        self._inflater = inflater
        return b"".join(pieces)


def decodable_accept_encoding(value: str) -> str:
    """A request's accept-encoding without what cannot be seen through; order and q-values stay the caller's.

    Unchanged if nothing had to go; "identity" if nothing acceptable is left.
    """
    items = [item.strip() for item in value.split(",") if item.strip()]
    kept = [item for item in items if _is_refused(item) or _coding(item) in SEEN_THROUGH]
    if len(kept) == len(items):
        return value
    return ", ".join(kept) if any(not _is_refused(item) for item in kept) else "identity"


def _has_header(data: bytes) -> bool:
    """Does it begin as zlib or gzip does? Many servers send bare deflate under the name of "deflate"."""
    return data.startswith(b"\x1f\x8b") or (data[0] & 0x0F == 8 and int.from_bytes(data[:2]) % 31 == 0)


def _coding(item: str) -> str:
    return item.partition(";")[0].strip().lower()


def _is_refused(item: str) -> bool:
    """Does "br;q=0" say that the caller does not want it? Then it may stay: nobody will send it."""
    name, _, weight = item.partition(";")[2].partition("=")
    if name.strip().lower() != "q":
        return False
    try:
        return float(weight) == 0
    except ValueError:
        return False
