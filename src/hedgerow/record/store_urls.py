"""Stores by their address: `sqlite:///hedgerow.db`, `jsonl:///var/log/calls.jsonl`, `memory:`."""

from typing import cast
from urllib.parse import parse_qs, unquote, urlsplit

from hedgerow.errors import SettingError
from hedgerow.record.jsonl_store import JsonlStore
from hedgerow.record.memory import MemoryStore
from hedgerow.record.recorder import Store
from hedgerow.record.sqlite_store import SqliteStore
from hedgerow.shown import Unshown, shown_value
from hedgerow.units import parse_seconds

__all__ = ["parse_address", "store_of"]

KNOWN = ("sqlite", "jsonl", "memory", "file", "http", "https", "mysql", "postgres", "postgresql", "redis")

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
        raise SettingError(
            "events", shown_value(events), ALLOWED, fix="hedger_of(client).subscribe(hook) hands every event on"
        )
    return cast(Store, events)


def _addressed(address: str) -> Store:
    kind, path, keep_s = parse_address(address)
    if kind == "memory":
        return MemoryStore()
    return JsonlStore(path) if kind == "jsonl" else SqliteStore(path, keep_s=keep_s)


def parse_address(address: str) -> tuple[str, str, float | None]:
    """What an address says: sqlite, jsonl or memory; a path; how long events are kept, in seconds, None = for ever. Raises
    SettingError, which shows no more than the scheme: the address of a database has its password in it."""
    try:
        parts = urlsplit(address)
    except ValueError:
        parts = urlsplit("")
    path, options = unquote(parts.path)[1:], parse_qs(parts.query)
    unknown = set(options) - {"keep"} or (options.keys() if parts.scheme != "sqlite" else set[str]())
    if parts.scheme == "memory" and not parts.path and not options:
        return "memory", "", None
    if parts.scheme not in ("sqlite", "jsonl") or parts.netloc or not path or unknown:
        scheme = parts.scheme if parts.scheme in KNOWN else ""
        raise SettingError("events", Unshown(f"an address {scheme}:…" if scheme else "a text"), ALLOWED)
    keep = options.get("keep")
    return parts.scheme, path, None if keep is None else parse_seconds(keep[-1], name="keep")
