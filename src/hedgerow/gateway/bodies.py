"""What callers asked, kept for replay where `record_bodies` says so: the only place where hedgerow writes content down."""

import os
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import unquote, urlsplit

import orjson

from hedgerow.gateway.addresses import Address
from hedgerow.record.batches import BatchWriter
from hedgerow.record.jsonl_store import append_lines
from hedgerow.values.request import WireRequest

__all__ = ["BodyFile", "body_file_beside"]

KEPT_HEADERS = (b"content-type", b"anthropic-version", b"anthropic-beta", b"openai-beta")
LINE_BREAKS = bytes.maketrans(b"\r\n", b"  ")


@dataclass(frozen=True, slots=True)
class Kept:
    """One request as it waits to be written down; its answer too, if that is kept."""

    event_id: str
    wire: WireRequest
    address: Address
    answer: bytes | None


class BodyFile:
    """JSON lines, one request each, made and appended in batches by a thread. Nobody but the owner may read the file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._writer = BatchWriter[Kept](f"bodies in {path.name}", partial(_write, path), lambda: None)
        self._writer.end_with(self)

    def keep(self, event_id: str, wire: WireRequest, address: Address, answer: bytes | None = None) -> None:
        """One request, without its keys; its answer as well if given."""
        self._writer.append(Kept(event_id, wire, address, answer))

    @property
    def unwritable(self) -> int:
        """How many could not be written as they were, and were dropped."""
        return self._writer.unwritable

    def close(self) -> None:
        """Write out what waits. Idempotent."""
        self._writer.close()


def _write(path: Path, batch: Sequence[Kept]) -> None:
    append_lines(path, b"".join(map(_line, batch)))


def body_file_beside(events: str | None) -> Path:
    """Where bodies go: beside the event file, `hedgerow.db` → `hedgerow.bodies.jsonl`."""
    path = unquote(urlsplit(events or "").path)[1:] or "hedgerow"
    return Path(os.path.splitext(path)[0] + ".bodies.jsonl")


def _line(kept: Kept) -> bytes:
    wire = kept.wire
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in wire.headers if name in KEPT_HEADERS}
    record: Mapping[str, object] = {
        "id": kept.event_id,
        "method": wire.method,
        "path": kept.address.path,
        "query": kept.address.query,
        "headers": headers,
        **_content("body", wire.body or b""),
        **({} if kept.answer is None else _content("answer", kept.answer)),
    }
    return orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE)


def _content(name: str, data: bytes) -> dict[str, object]:
    """As JSON if it is JSON, as text if it is text, else in base64."""
    if _is_value(data):  # as it came, numbers of any length included: JSON breaks lines between its parts only
        return {name: orjson.Fragment(data.translate(LINE_BREAKS))}
    try:
        return {f"{name}_text": data.decode("utf-8")}
    except UnicodeDecodeError:
        return {f"{name}_base64": b64encode(data).decode("ascii")}


def _is_value(data: bytes) -> bool:
    """Is it JSON that can be read as a part of a line? Nested as deep as can be read, it could not be read there any more."""
    try:
        found: list[object] = orjson.loads(b"[" + data + b"]")
    except orjson.JSONDecodeError:
        return False
    return len(found) == 1
