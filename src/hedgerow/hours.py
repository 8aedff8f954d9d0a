"""Times of day in a time zone: "22:00-24:00", across midnight ("22:00-06:00") and through changes of daylight saving."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import cast
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from hedgerow.errors import SettingError

__all__ = ["Hours", "parse_hours", "parse_zone"]

SPAN = re.compile(r"\s*(\d{1,2}):(\d{2})\s*-\s*(\d{1,2}):(\d{2})\s*")
DAY = 24 * 60


@dataclass(frozen=True, slots=True)
class Hours:
    """Spans of local time, in minutes since midnight; the end is not in it, an end before the start is on the next day."""

    spans: tuple[tuple[int, int], ...]
    zone: ZoneInfo

    def __contains__(self, at: datetime) -> bool:
        """Is this moment (aware) inside one of the spans, by the clocks on the wall there? No spans: always."""
        local = at.astimezone(self.zone)
        minute = local.hour * 60 + local.minute
        return not self.spans or any(
            first <= minute < last if first < last else minute >= first or minute < last for first, last in self.spans
        )


def parse_hours(value: object, *, name: str = "hours") -> tuple[tuple[int, int], ...]:
    """Spans from a list of texts such as ["22:00-24:00", "06:00-08:00"]; SettingError otherwise."""
    allowed = 'a list such as ["22:00-24:00", "06:00-08:00"], from 00:00 to 24:00'
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise SettingError(name, value, allowed)
    return tuple(_span(item, name, allowed) for item in cast("Sequence[object]", value))


def parse_zone(value: object, *, name: str = "time_zone") -> ZoneInfo:
    """A time zone from its IANA name; SettingError otherwise."""
    try:
        return ZoneInfo(str(value))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        fix = "pip install tzdata, if this machine has no time zones of its own"
        raise SettingError(name, value, 'an IANA name such as "UTC" or "Asia/Tokyo"', fix=fix) from None


def _span(item: object, name: str, allowed: str) -> tuple[int, int]:
    match = SPAN.fullmatch(item) if isinstance(item, str) else None
    if match is None:
        raise SettingError(name, item, allowed)
    first, last = (int(match[i]) * 60 + int(match[i + 1]) for i in (1, 3))
    if first >= DAY or last > DAY or int(match[2]) > 59 or int(match[4]) > 59 or first == last:
        raise SettingError(name, item, allowed)
    return first, last
