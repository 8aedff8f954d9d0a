"""Which price holds for a call: the user's own first, then the public list (genai-prices), else None.

An unknown price is None and never 0; a price that does not quite fit says so in its `source`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from fnmatch import fnmatchcase
from math import isfinite
from typing import TypeAlias
from urllib.parse import urlsplit

from hedgerow.cost.price import DayPrices, Price
from hedgerow.errors import SettingError

__all__ = ["Price", "PriceBook", "PriceRule"]

TOKENS_PER_PRICE = 1_000_000
MOST_REMEMBERED = 1024  # callers of a gateway choose the names of models: what is remembered has a limit
STANDARD_TIERS = frozenset({"", "auto", "default", "on_demand", "standard", "standard_only", "unspecified"})

_Key: TypeAlias = tuple[str, str | None, str | None, str | None, date]


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceRule:
    """A price of the user's own, in USD per million tokens, ≥ 0 (`[[price]]` in TOML). The first rule that fits counts.

    model: the model's name, case does not matter, `*` and `?` stand for anything. cached: None = no discount for cached
    input. provider: pattern for the endpoint's host ("*.openai.azure.com", "localhost:8000"), None = any. service_tier:
    "priority"…; "default" = the standard one, None = any. Raises SettingError.
    """

    model: str
    input: float
    output: float
    cached: float | None = None
    provider: str | None = None
    service_tier: str | None = None

    def __post_init__(self) -> None:
        if not self.model.strip():
            raise SettingError("price.model", self.model, 'a model\'s name or a pattern such as "gpt-*"')
        for name in ("input", "output", "cached"):
            value = getattr(self, name)
            if value is None and name == "cached":
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value) or value < 0:
                raise SettingError(
                    f"price.{name}", value, "USD per million tokens, ≥ 0", fix="write 0.4 for $0.40 per million tokens"
                )

    @property
    def price(self) -> Price:
        """The same per token."""
        cached = self.input if self.cached is None else self.cached
        return Price(
            input_usd=self.input / TOKENS_PER_PRICE,
            cached_usd=cached / TOKENS_PER_PRICE,
            output_usd=self.output / TOKENS_PER_PRICE,
            source="user",
        )

    def fits(self, names: Sequence[str], provider_url: str | None, tier: str | None) -> bool:
        """Is it meant for a model that goes by one of these names, at this endpoint and tier (None = standard)?"""
        return (
            any(fnmatchcase(name.lower(), self.model.strip().lower()) for name in names)
            and (self.provider is None or _is_at(provider_url, self.provider.lower()))
            and (self.service_tier is None or special_tier(self.service_tier) == tier)
        )


class PriceBook:
    """Looks prices up and remembers them for the day (UTC). May be shared between tasks and threads.

    overrides: the user's own prices, first match wins, before the public list. The list is loaded on the first look-up that
    needs it (about 0.2 s, once) and works offline; what it says of a model is kept until the day ends.
    """

    def __init__(self, overrides: Sequence[PriceRule] = ()) -> None:
        self._overrides = tuple(overrides)
        self._days: dict[_Key, DayPrices | None] = {}

    def price(
        self,
        model: str,
        *,
        provider_url: str | None,
        service_tier: str | None,
        input_tokens: int,
        at: datetime,
        asked_as: str | None = None,
    ) -> Price | None:
        """The price of a call, None if nobody knows it. About 1 µs once this model's day has been looked up, else 0.1 ms.

        model: as the answer named it; asked_as: as the request did, if that differs: "gpt-4o" is answered by
        "gpt-4o-2024-08-06", and a rule for either is meant. provider_url: the endpoint's base URL; None = guess it from the
        model's name, which takes a model served at home for the one it is named after. service_tier: as answered; None =
        standard. input_tokens ≥ 0 chooses the step of a price by length. at: aware; a naive one raises SettingError.
        """
        if at.tzinfo is None:
            raise SettingError("at", at, "an aware datetime", fix="use datetime.now(UTC)")
        moment = at if at.tzinfo is UTC else at.astimezone(UTC)
        key = (model, asked_as, provider_url, service_tier, moment.date())
        try:
            day = self._days[key]
        except KeyError:
            day = self._look_up(key)
        return day.of(moment.time(), input_tokens) if day is not None else None

    def _look_up(self, key: _Key) -> DayPrices | None:
        model, asked_as, provider_url, service_tier, day = key
        names = tuple(dict.fromkeys(name for name in (model, asked_as) if name))
        tier = special_tier(service_tier)
        rule = next((rule for rule in self._overrides if rule.fits(names, provider_url, tier)), None)
        found = DayPrices.always(rule.price) if rule is not None else _listed(names, provider_url, tier, day)
        while len(self._days) >= MOST_REMEMBERED:
            self._days.pop(next(iter(self._days)), None)
        self._days[key] = found
        return found


def special_tier(service_tier: str | None) -> str | None:
    """The tier in lower case; None if it is one of the names of the standard tier."""
    tier = (service_tier or "").strip().lower().removeprefix("service_tier_")
    return None if tier in STANDARD_TIERS else tier


def _listed(names: Sequence[str], provider_url: str | None, tier: str | None, day: date) -> DayPrices | None:
    # Only here, so that those who never ask for a price do not wait for a list of thousands.
    from hedgerow.cost.public_list import day_prices

    for name in names:
        note = "" if name == names[0] else f", priced as {name!r}"  # what answered may be another model altogether
        if found := day_prices(name, provider_url=provider_url, tier=tier, day=day, note=note):
            return found
    return None


def _is_at(provider_url: str | None, pattern: str) -> bool:
    place = urlsplit(provider_url or "").netloc.rpartition("@")[2].lower()
    return bool(place) and (fnmatchcase(place, pattern) or fnmatchcase(place.partition(":")[0], pattern))
