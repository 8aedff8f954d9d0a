"""The kinds of settings: each reads what a user wrote into the value that is kept, or says what is allowed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, cast

from hedgerow.errors import SettingError
from hedgerow.hours import parse_hours, parse_zone
from hedgerow.units import parse_delay, parse_seconds, parse_share, parse_window

__all__ = [
    "Prior",
    "Setting",
    "read_control",
    "read_count",
    "read_delay",
    "read_flag",
    "read_hours",
    "read_limit",
    "read_one_of",
    "read_prior",
    "read_share",
    "read_share_or_off",
    "read_stall",
    "read_tokens",
    "read_window",
    "read_words",
    "read_zone",
    "setting",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One row of the table. `read` turns what a user wrote into the value kept, or raises SettingError."""

    name: str
    default: object
    unit: str
    allowed: str
    meaning: str
    read: Callable[[object, "Setting"], object]


def read_one_of(value: object, row: Setting) -> object:
    if value in row.allowed.split(" | "):
        return value
    raise SettingError(row.name, value, row.allowed.replace(" | ", ", "))


def read_delay(value: object, row: Setting) -> object:
    if value != "auto":
        parse_delay(value, name=row.name)
    return value


def read_window(value: object, row: Setting) -> object:
    parse_window(value, name=row.name)
    return value


def read_share_or_off(value: object, row: Setting) -> object:
    return value if value == "off" else read_share(value, row)


def read_share(value: object, row: Setting) -> object:
    return None if value is None and row.default is None else parse_share(value, name=row.name)


def read_limit(value: object, row: Setting) -> object:
    if value is None:
        return None
    seconds = parse_seconds(value, name=row.name)
    if seconds <= 0:
        raise SettingError(row.name, value, row.allowed, fix="leave it out for no limit")
    return seconds


def read_flag(value: object, row: Setting) -> object:
    if isinstance(value, bool):
        return value
    raise SettingError(row.name, value, row.allowed.replace(" | ", ", "))


def read_count(value: object, row: Setting) -> object:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 4:
        return value
    raise SettingError(row.name, value, row.allowed)


def read_hours(value: object, row: Setting) -> object:
    parse_hours(value, name=row.name)
    return tuple(cast("Sequence[str]", value))


def read_zone(value: object, row: Setting) -> object:
    parse_zone(value, name=row.name)
    return value


def read_words(value: object, row: Setting) -> object:
    """A list of words, each of the allowed ones; any word where none are named."""
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise SettingError(row.name, value, f"a list of {row.allowed}")
    named = row.allowed.split(" | ") if " | " in row.allowed else None
    words = cast("Sequence[object]", value)
    for word in words:
        if not isinstance(word, str) or (named is not None and word not in named):
            raise SettingError(row.name, word, row.allowed.replace(" | ", ", "))
    return tuple(words)


def read_tokens(value: object, row: Setting) -> object:
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value > 0):
        return value
    raise SettingError(row.name, value, row.allowed)


def read_control(value: object, row: Setting) -> object:
    share = parse_share(value, name=row.name)
    if share > 0.5:
        raise SettingError(row.name, value, row.allowed)
    return share


def read_stall(value: object, row: Setting) -> object:
    return value if value == "auto" else read_limit(value, row)


def read_prior(value: object, row: Setting) -> object:
    if value is None or isinstance(value, Prior):
        return value
    if not isinstance(value, Mapping):
        raise SettingError(row.name, value, row.allowed)
    given = cast("Mapping[str, object]", value)
    if sorted(given) != sorted(part.name for part in fields(Prior)):
        raise SettingError(row.name, dict(given), row.allowed)
    return Prior(**{name: parse_seconds(seconds, name=f"prior.{name}") for name, seconds in given.items()})


@dataclass(frozen=True, slots=True, kw_only=True)
class Prior:
    """What is normal before anything is known: median first token, median seconds per token, and how late is too late."""

    first_token_s: float
    token_s: float
    lag_s: float


def setting(
    default: Any, read: Callable[[object, Setting], object], *, unit: str = "", allowed: str, meaning: str
) -> Any:
    row = {"read": read, "unit": unit, "allowed": allowed, "meaning": meaning}
    return field(default=default, metadata=row)
