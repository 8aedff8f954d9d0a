"""Takes values from outside (a script's JSON, a profile's TOML) apart key by key and refuses what cannot be meant."""

from collections.abc import Mapping, Sequence
from typing import TypeVar, cast

from hedgerow.errors import SettingError

__all__ = ["Fields"]

Default = TypeVar("Default")


class Fields:
    """One mapping from outside. Every method reads one key; null counts as omitted; `close` refuses the keys nobody read.

    `place` is put before each key in messages ("stall." gives "stall.after"), `where` names the file or header.
    Raises SettingError from every method. Not for sharing between tasks.
    """

    def __init__(self, values: object, *, where: str, place: str = "") -> None:
        if not isinstance(values, dict):
            raise SettingError(place.rstrip(".") or "value", values, "an object with named keys", where=where)
        self._values = cast(Mapping[str, object], values)
        self._where, self._place = where, place
        self._read: set[str] = set()

    def number(self, key: str, default: Default, *, low: float = 0.0, high: float = 1e12) -> float | Default:
        """A number from `low` to `high`."""
        value = self._take(key)
        if value is None:
            return default
        if isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high:
            return float(value)
        raise self.error(key, value, f"a number from {low:g} to {high:g}")

    def whole(self, key: str, default: Default, *, low: int = 0, high: int = 10_000_000) -> int | Default:
        """A whole number from `low` to `high`."""
        value = self._take(key)
        if value is None:
            return default
        if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
            return value
        raise self.error(key, value, f"a whole number from {low} to {high}")

    def flag(self, key: str, default: bool) -> bool:
        """true or false."""
        value = self._take(key)
        if value is None:
            return default
        if isinstance(value, bool):
            return value
        raise self.error(key, value, "true or false")

    def text(self, key: str, default: Default, *, options: Sequence[str] = ()) -> str | Default:
        """A text; one of `options`, if there are any."""
        value = self._take(key)
        if value is None:
            return default
        if isinstance(value, str) and (not options or value in options):
            return value
        raise self.error(key, value, " or ".join(map(repr, options)) or "a text")

    def table(self, key: str) -> "Fields | None":
        """A nested object."""
        value = self._take(key)
        return None if value is None else Fields(value, where=self._where, place=f"{self._place}{key}.")

    def mapping(self, key: str) -> dict[str, object] | None:
        """A nested object whose keys are free."""
        value = self._take(key)
        if value is None or isinstance(value, dict):
            return cast(dict[str, object] | None, value)
        raise self.error(key, value, "an object")

    def raw(self, key: str) -> object:
        """Whatever is there; None if omitted."""
        return self._take(key)

    def close(self) -> None:
        """Nothing more will be read: keys left over are a mistake."""
        for key in self._values.keys() - self._read:
            known = ", ".join(sorted(self._read))
            raise self.error(key, self._values[key], f"no such key; known are {known}")

    def error(self, key: str, value: object, allowed: str) -> SettingError:
        """The error to raise for a key."""
        return SettingError(f"{self._place}{key}", value, allowed, where=self._where)

    def _take(self, key: str) -> object:
        self._read.add(key)
        return self._values.get(key)
