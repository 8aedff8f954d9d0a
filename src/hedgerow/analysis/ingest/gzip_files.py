"""A file's bytes, unzipped if need be; of a gzip that breaks off, everything up to the break comes before the error."""

import zlib
from collections.abc import Callable
from io import BufferedReader, RawIOBase
from pathlib import Path
from typing import Any

__all__ = ["BROKEN", "first_words", "opened"]

# What a stream of bytes may fail with on its way: a cut gzip, a broken one, a disk.
BROKEN = (EOFError, zlib.error, OSError)
CHUNK_BYTES = 64 * 1024
GZIP = 31  # zlib's word for gzip with a window of 32 KB


def opened(path: Path, zipped: bool) -> BufferedReader:
    """The bytes, from the start. Use `read1` where what comes before a break must not be lost. Raises what is BROKEN."""
    return BufferedReader(_Unzipped(path), CHUNK_BYTES) if zipped else path.open("rb")


def first_words(error: Exception) -> str:
    """The first line of an error's message, else what it is called."""
    return str(error).splitlines()[0] if str(error) else type(error).__name__


class _Unzipped(RawIOBase):
    """The members of a gzip file, one after the other. Python's own reader drops what it had unzipped when it meets the break."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self._inflate, self._waiting = zlib.decompressobj(GZIP), b""
        self._error: Exception | None = None

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._file.close()
        super().close()

    def readinto(self, buffer: Any, /) -> int:
        content = b""
        while not content and (compressed := self._compressed()):
            content = self._unzip(compressed, len(buffer))
        buffer[: len(content)] = content
        return len(content)

    def _compressed(self) -> bytes:
        """What to unzip next; nothing if a member ended and no other follows."""
        if self._error is not None:
            raise self._error
        waiting = self._inflate.unconsumed_tail or self._waiting or self._file.read(CHUNK_BYTES)
        self._waiting = b""
        if not self._inflate.eof:
            if not waiting:
                raise EOFError("the compressed data end too early")
            return waiting
        rest = (self._inflate.unused_data + waiting).lstrip(b"\0")
        self._inflate = zlib.decompressobj(GZIP)
        return rest

    def _unzip(self, compressed: bytes, most: int) -> bytes:
        before = self._inflate.copy()
        try:
            return self._inflate.decompress(compressed, most)
        except zlib.error as error:
            self._error = error
            return _until_it_breaks(before.decompress, compressed)


def _until_it_breaks(unzip: Callable[[bytes], bytes], compressed: bytes) -> bytes:
    content = b""
    try:
        for index in range(len(compressed)):
            content += unzip(compressed[index : index + 1])
    except zlib.error:
        pass  # it is told when the reader comes for more
    return content
