"""Stores by their address: `sqlite:///hedgerow.db`, `jsonl:///var/log/calls.jsonl`, `memory:`."""

from typing import cast
from urllib.parse import parse_qs, unquote, urlsplit

from hedgerow.errors import SettingError
from hedgerow.record.jsonl_store import JsonlStore
from hedgerow.record.memory import MemoryStore
from hedgerow.record.recorder import Store
from hedgerow.record.sqlite_store import SqliteStore
from hedgerow.units import parse_seconds

__all__ = ["store_of"]

ALLOWED = (
    'a store, or an address: "sqlite:///hedgerow.db", "sqlite:////var/lib/hedgerow.db?keep=30d", '
    '"jsonl:///calls.jsonl", "memory:"'
)


def store_of(events: object) -> Store:
    """A store from what `events` may be: None (the last 10,000 in memory), an address, or a store. Three slashes begin a path
    from here, four an absolute one; `keep` = how long events stay. Raises SettingError."""
    if events is None:
        return MemoryStore()
    if isinstance(events, str):
        return _addressed(events)
    if not callable(getattr(events, "append", None)):
        raise SettingError("events", events, ALLOWED, fix="hedger_of(client).subscribe(hook) hands every event on")
    return cast(Store, events)


def _addressed(address: str) -> Store:
    parts = urlsplit(address)
    path, options = unquote(parts.path)[1:], parse_qs(parts.query)
    unknown = set(options) - {"keep"} or (options.keys() if parts.scheme != "sqlite" else set[str]())
    if parts.scheme == "memory" and not parts.path and not options:
        return MemoryStore()
    if parts.scheme not in ("sqlite", "jsonl") or parts.netloc or not path or unknown:
        raise SettingError("events", address, ALLOWED)
    if parts.scheme == "jsonl":
        return JsonlStore(path)
    keep = options.get("keep")
    return SqliteStore(path, keep_s=None if keep is None else parse_seconds(keep[-1], name="keep"))
