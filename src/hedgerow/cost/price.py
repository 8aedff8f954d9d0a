"""A price, and one model's prices on one day: they may step up with the length of the input and change by the hour."""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from datetime import time

__all__ = ["DayPrices", "Price", "StepPrices"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """USD per token, and `call_usd` per call on top. `cached_usd` is for input read from the provider's prompt cache.

    Floats, not Decimals: sums of them are off by less than a billionth of a cent, and every other figure here is a guess by
    comparison. `source` says where it comes from, and what is wrong with it.
    """

    input_usd: float
    cached_usd: float
    output_usd: float
    call_usd: float = 0.0
    source: str


@dataclass(frozen=True, slots=True)
class StepPrices:
    """Prices by input: `prices[k]` holds for inputs longer than `limits[k - 1]` and up to `limits[k]` tokens, all of them."""

    limits: tuple[int, ...]
    prices: tuple[Price, ...]

    def of(self, input_tokens: int) -> Price:
        """The price of every token of a call with so much input."""
        return self.prices[bisect_left(self.limits, input_tokens)]


@dataclass(frozen=True, slots=True)
class DayPrices:
    """One UTC day: `spans[k]` holds from `starts[k]` on. The first start is midnight."""

    starts: tuple[time, ...]
    spans: tuple[StepPrices, ...]

    def of(self, moment: time, input_tokens: int) -> Price:
        """The price at this time of day (UTC, without zone)."""
        span = self.spans[0] if len(self.spans) == 1 else self.spans[bisect_right(self.starts, moment) - 1]
        return span.of(input_tokens)

    @classmethod
    def always(cls, price: Price) -> "DayPrices":
        """The same price all day for every length."""
        return cls((time.min,), (StepPrices((), (price,)),))
