"""hedgerow cuts the slow tail off LLM calls: a backup only when the first copy falls behind, inside a budget you set."""

from typing import TYPE_CHECKING, Any

from hedgerow.errors import HedgerowError, SettingError, UnsupportedError
from hedgerow.settings import Policy, Target

if TYPE_CHECKING:
    from hedgerow.call_context import context
    from hedgerow.callables import hedge
    from hedgerow.clock import ManualClock, ScaledClock, SystemClock
    from hedgerow.cost.prices import PriceRule
    from hedgerow.engine import Hedger
    from hedgerow.record.jsonl_store import JsonlStore
    from hedgerow.record.memory import MemoryStore
    from hedgerow.record.sqlite_store import SqliteStore
    from hedgerow.sync_hedger import SyncHedger
    from hedgerow.transports.genai_client import gemini_http_options
    from hedgerow.transports.hedging import hedged, hedger_of
    from hedgerow.transports.httpx2_sync import Transport
    from hedgerow.transports.httpx2_transport import AsyncTransport
    from hedgerow.transports.httpx_transport import AsyncHttpxTransport, HttpxTransport
    from hedgerow.values.event import AttemptEvent, Event

__all__ = [
    "AsyncHttpxTransport",
    "AsyncTransport",
    "AttemptEvent",
    "Event",
    "Hedger",
    "HedgerowError",
    "HttpxTransport",
    "JsonlStore",
    "ManualClock",
    "MemoryStore",
    "Policy",
    "PriceRule",
    "ScaledClock",
    "SettingError",
    "SqliteStore",
    "SyncHedger",
    "SystemClock",
    "Target",
    "Transport",
    "UnsupportedError",
    "context",
    "gemini_http_options",
    "hedge",
    "hedged",
    "hedger_of",
]

LOADED_ON_FIRST_USE = {
    "AsyncHttpxTransport": "hedgerow.transports.httpx_transport",
    "AsyncTransport": "hedgerow.transports.httpx2_transport",
    "AttemptEvent": "hedgerow.values.event",
    "Event": "hedgerow.values.event",
    "Hedger": "hedgerow.engine",
    "HttpxTransport": "hedgerow.transports.httpx_transport",
    "ManualClock": "hedgerow.clock",
    "JsonlStore": "hedgerow.record.jsonl_store",
    "MemoryStore": "hedgerow.record.memory",
    "PriceRule": "hedgerow.cost.prices",
    "ScaledClock": "hedgerow.clock",
    "SqliteStore": "hedgerow.record.sqlite_store",
    "SyncHedger": "hedgerow.sync_hedger",
    "SystemClock": "hedgerow.clock",
    "Transport": "hedgerow.transports.httpx2_sync",
    "context": "hedgerow.call_context",
    "hedge": "hedgerow.callables",
    "gemini_http_options": "hedgerow.transports.genai_client",
    "hedged": "hedgerow.transports.hedging",
    "hedger_of": "hedgerow.transports.hedging",
}


def __getattr__(name: str) -> Any:
    """httpx2 and the engine load when they are first used: importing hedgerow stays cheap."""
    if name not in LOADED_ON_FIRST_USE:
        raise AttributeError(f"module 'hedgerow' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(LOADED_ON_FIRST_USE[name]), name)
