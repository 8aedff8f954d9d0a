"""A Pilot's memory as plain values, and back: what a process that starts again need not learn anew. Pure.

After an unclean end the bucket and its reserve restart at 0, since backups may have been sent that the snapshot does not know
of; so losing backups ≤ 2 + B·n holds over restarts, too. Rings keep the age of each value, not its time.
"""

from collections.abc import Mapping
from dataclasses import asdict
from math import isfinite
from typing import Any, cast

from hedgerow.policy.pilot import Pilot
from hedgerow.short_text import name_of
from hedgerow.statistics.key import KeyStatistics
from hedgerow.units import parse_window
from hedgerow.values.request import SIZES, Key

__all__ = ["VERSION", "remember", "snapshot_of"]

VERSION = 1
MOST_KEYS = 200  # the keys used last, of each owner; enough for a process, little enough to write in milliseconds
RINGS = ("first_tokens", "responses", "firsts", "paces", "gaps", "pauses", "outputs")
NUMBERS = ("requests", "answers", "mean_output", "chars_per_token")
STEERING = ("d_per_b", "inflation", "win_rate", "wanted_share", "surge_length", "answers", "mean_cost")
BUCKET = ("requests", "sent", "refunds")


def snapshot_of(pilot: Pilot, now_s: float, *, clean: bool) -> dict[str, Any]:
    """The memory at this moment, JSON-ready. clean: nothing more will be sent before it is read again."""
    bucket = pilot.gate.bucket
    return {
        "v": VERSION,
        "clean": clean,
        "bucket": None if bucket is None else {name: getattr(bucket, name) for name in (*BUCKET, "level", "reserve")},
        "steering": {name: getattr(pilot.controller, name) for name in STEERING},
        "keys": [
            {"key": asdict(key), "owners": owners, **_memory_of(known, now_s)}
            for key, known, owners in pilot.statistics.latest(MOST_KEYS)
        ],
    }


def remember(pilot: Pilot, memory: Mapping[str, Any], now_s: float, away_s: float = 0.0) -> None:
    """Fill a fresh Pilot from a snapshot that was made `away_s` seconds ago. Raises KeyError, TypeError or ValueError for
    what is no snapshot; the Pilot is then to be thrown away. A key with an odd value in it is left out by itself."""
    if memory["v"] != VERSION:
        raise ValueError(f"a snapshot of version {memory['v']!r}; this hedgerow reads version {VERSION}")
    bucket, was = pilot.gate.bucket, memory["bucket"]
    if bucket is not None and was is not None:
        for name in BUCKET:
            setattr(bucket, name, int(was[name]))
        clean = memory["clean"] is True
        bucket.level = float(was["level"]) if clean else 0.0
        bucket.reserve = float(was["reserve"]) if clean else 0.0
    for name in STEERING:
        value = memory["steering"][name]
        setattr(pilot.controller, name, value if value is None or isinstance(value, int) else float(value))
    for entry in memory["keys"]:
        _recall(pilot, entry, now_s - away_s)


def _memory_of(known: KeyStatistics, now_s: float) -> dict[str, Any]:
    rings = {name: [[at_s - now_s, value] for at_s, value in getattr(known, name).timed()] for name in RINGS}
    return {**rings, "by_input": known.by_input(), **{name: getattr(known, name) for name in NUMBERS}}


def _recall(pilot: Pilot, entry: Mapping[str, Any], then_s: float) -> None:
    try:
        key, known = Key(**entry["key"]), KeyStatistics(parse_window(pilot.policy.window))
        SIZES.index(key.size)
        owners = _owners(entry.get("owners", [None]))
        if any(name_of(said) != said for said in (key.model, key.effort)):
            raise ValueError("a name of an earlier version, kept as it was sent")
        _fill(known, entry, then_s)
        pilot.statistics.put(key, known, owners)
    except (KeyError, TypeError, ValueError, OverflowError):  # the key is cold, the others are not
        return


def _owners(said: Any) -> list[str | None]:
    """Raises ValueError for what is no list of names."""
    if not isinstance(said, list) or not said:
        raise ValueError("no owners")
    return [name if name is None else str(name) for name in cast(list[object], said)]


def _fill(known: KeyStatistics, entry: Mapping[str, Any], then_s: float) -> None:
    for name in RINGS:
        for ago_s, value in entry[name]:
            getattr(known, name).add(_finite(value), then_s + _finite(ago_s))
    known.learn_sizes([(int(tokens), _finite(first_s)) for tokens, first_s in entry["by_input"]])
    for name in NUMBERS:
        setattr(known, name, type(getattr(known, name))(_finite(entry[name])))


def _finite(value: Any) -> float:
    """Raises ValueError for what would bend every quantile."""
    if not isfinite(number := float(value)):
        raise ValueError("no number")
    return number
