"""Durations, shares and delays: how they are written, read and printed.

Values inside the program are plain floats: seconds, shares 0..1. Only here are "200ms", "5%" and "p95+200ms" known.
"""

import re
from dataclasses import dataclass

from hedgerow.errors import SettingError

__all__ = [
    "Delay",
    "Window",
    "format_seconds",
    "format_share",
    "parse_delay",
    "parse_seconds",
    "parse_share",
    "parse_window",
]

SECONDS_PER_UNIT = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
DURATION = re.compile(r"\s*(\d+(?:\.\d+)?|\.\d+)\s*(us|ms|s|min|m|h|d)\s*")
QUANTILE_DELAY = re.compile(r"\s*p(\d{1,2}(?:\.\d+)?)\s*(?:\+\s*(.+))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Delay:
    """When a backup is due: a fixed time, or a quantile of recent calls plus a fixed time.

    `quantile` is in (0, 1) or None; `offset_s` ≥ 0 is the whole delay without a quantile, and added to it with one.
    """

    quantile: float | None = None
    offset_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """What a quantile looks back on: the last `requests`, or all of the last `seconds` (then `requests` bounds memory)."""

    requests: int = 1000
    seconds: float | None = None


def parse_seconds(value: object, *, name: str = "duration") -> float:
    """Seconds ≥ 0 from a number (seconds) or a text such as "200ms", "2s", "1.5h"; SettingError otherwise."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < float("inf"):
        return float(value)
    if isinstance(value, str) and (match := DURATION.fullmatch(value)):
        return float(match[1]) * SECONDS_PER_UNIT[match[2]]
    raise SettingError(name, value, 'seconds ≥ 0, or a text such as "200ms", "2s", "1h"')


def parse_share(value: object, *, name: str = "share") -> float:
    """A share 0..1 from a number or a text such as "5%"; SettingError otherwise."""
    if isinstance(value, str) and (match := re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*%\s*", value)):
        value = float(match[1]) / 100
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1:
        return float(value)
    raise SettingError(name, value, 'a share from 0 to 1, or a text such as "5%"')


def parse_delay(value: object, *, name: str = "delay") -> Delay:
    """A Delay from seconds, "200ms", "p95" or "p95+200ms"; SettingError otherwise."""
    if isinstance(value, Delay):
        return value
    if isinstance(value, str) and (match := QUANTILE_DELAY.fullmatch(value)) and 0 < float(match[1]) < 100:
        return Delay(quantile=float(match[1]) / 100, offset_s=parse_seconds(match[2], name=name) if match[2] else 0.0)
    try:
        return Delay(offset_s=parse_seconds(value, name=name))
    except SettingError:
        raise SettingError(name, value, 'seconds ≥ 0, "200ms", "p95" or "p95+200ms"') from None


def parse_window(value: object, *, name: str = "window") -> Window:
    """A Window from a number of requests (20..100,000) or a text such as "7d"; SettingError otherwise."""
    if isinstance(value, Window):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and 20 <= value <= 100_000:
        return Window(requests=value)
    if isinstance(value, str) and (match := DURATION.fullmatch(value)) and float(match[1]) > 0:
        return Window(requests=100_000, seconds=float(match[1]) * SECONDS_PER_UNIT[match[2]])
    raise SettingError(name, value, 'requests from 20 to 100000, or a time such as "7d"')


def format_seconds(seconds: float | None) -> str:
    """ "0.35 s", "12.3 s", "4 ms"; "–" for None."""
    if seconds is None:
        return "–"
    if abs(seconds) < 0.1:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.2f} s" if abs(seconds) < 10 else f"{seconds:.1f} s"


def format_share(share: float | None) -> str:
    """ "5.0 %"; "–" for None."""
    return "–" if share is None else f"{share:.1%}".replace("%", " %")
