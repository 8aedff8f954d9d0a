"""What callers asked, kept for replay where `record_bodies` says so: the only place where hedgerow writes content down."""

import os
from base64 import b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

import orjson

from hedgerow.dialects.lenient_json import loads_or_none
from hedgerow.gateway.addresses import Address
from hedgerow.record.batches import BatchWriter
from hedgerow.record.jsonl_store import append_lines
from hedgerow.values.request import WireRequest

__all__ = ["BodyFile", "body_file_beside"]

KEPT_HEADERS = (b"content-type", b"anthropic-version", b"anthropic-beta", b"openai-beta")
ONLY_THE_OWNER = 0o600


class BodyFile:
    """JSON lines, one request each, appended in batches by a thread. Nobody but the owner may read the file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._writer = BatchWriter[bytes](f"bodies in {path.name}", self._write, lambda: None)

    def keep(self, event_id: str, wire: WireRequest, address: Address, answer: bytes | None = None) -> None:
        """One request, without its keys; its answer as well if given."""
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in wire.headers if name in KEPT_HEADERS
        }
        record: Mapping[str, object] = {
            "id": event_id,
            "method": wire.method,
            "path": address.path,
            "query": address.query,
            "headers": headers,
            **_content("body", wire.body or b""),
            **({} if answer is None else _content("answer", answer)),
        }
        self._writer.append(orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE))

    def close(self) -> None:
        """Write out what waits. Idempotent."""
        self._writer.close()

    def _write(self, batch: Sequence[bytes]) -> None:
        append_lines(self.path, b"".join(batch), ONLY_THE_OWNER)


def body_file_beside(events: str | None) -> Path:
    """Where bodies go: beside the event file, `hedgerow.db` → `hedgerow.bodies.jsonl`."""
    path = unquote(urlsplit(events or "").path)[1:] or "hedgerow"
    return Path(os.path.splitext(path)[0] + ".bodies.jsonl")


def _content(name: str, data: bytes) -> dict[str, object]:
    """As JSON if it is JSON, as text if it is text, else in base64."""
    found = loads_or_none(data)
    if found is not None:
        return {name: found}
    try:
        return {f"{name}_text": data.decode("utf-8")}
    except UnicodeDecodeError:
        return {f"{name}_base64": b64encode(data).decode("ascii")}
