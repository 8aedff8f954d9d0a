"""What calls cost: as the log says, else by tokens at the price of the model, else unknown."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, cast

import numpy as np

from hedgerow.analysis.calls import Calls, Column, KeyName
from hedgerow.cost.prices import Price, PriceBook

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["CostSpread", "Money", "money_of", "price_of", "priced", "trace_costs"]

MOSTLY = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class CostSpread:
    """USD per call or per trace."""

    mean: float
    p50: float
    p95: float

    @classmethod
    def of(cls, usd: Column) -> "CostSpread":
        """Of at least one."""
        p50, p95 = (float(value) for value in np.quantile(usd, [0.5, 0.95]))
        return cls(mean=float(usd.mean()), p50=p50, p95=p95)

    def as_dict(self) -> dict[str, object]:
        """JSON-ready."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Money:
    """source: "the log", or where the price is from. share_known: calls with a cost."""

    per_call_usd: CostSpread
    share_known: float
    source: str

    def as_dict(self) -> dict[str, object]:
        """JSON-ready."""
        return {"per_call_usd": self.per_call_usd.as_dict(), "share_known": self.share_known, "source": self.source}


def price_of(
    name: KeyName, tokens: float, book: PriceBook, at: datetime, service_tier: str | None = None
) -> Price | None:
    """The price of a key's model for inputs of this many tokens; None if nobody knows it."""
    if not name.model:
        return None
    size = int(tokens) if np.isfinite(tokens) else 0
    return book.price(name.model, provider_url=None, service_tier=service_tier, input_tokens=size, at=at)


def money_of(calls: Calls, price: Price | None) -> Money | None:
    """Of one key's calls; None if neither the log nor the price list knows."""
    known = np.isfinite(calls.cost_usd)
    if known.sum() > MOSTLY * len(calls):
        return Money(
            per_call_usd=CostSpread.of(calls.cost_usd[known]), share_known=float(known.mean()), source="the log"
        )
    counted = calls.ok & np.isfinite(calls.input_tokens) & np.isfinite(calls.output_tokens)
    if price is None or not counted.any():
        return None
    usd = priced(price, calls.input_tokens[counted], calls.cached_tokens[counted], calls.output_tokens[counted])
    return Money(per_call_usd=CostSpread.of(usd), share_known=float(counted.mean()), source=price.source)


def priced(price: Price, input_tokens: Column, cached_tokens: Column, output_tokens: Column) -> Column:
    """USD of each call at one price."""
    cached = np.minimum(np.where(np.isnan(cached_tokens), 0.0, cached_tokens), input_tokens)
    return (
        price.call_usd
        + price.input_usd * (input_tokens - cached)
        + price.cached_usd * cached
        + price.output_usd * output_tokens
    )


def trace_costs(base: "DuckDBPyConnection", prices: Mapping[KeyName, Price]) -> CostSpread | None:
    """Per trace with at least two calls, each call as the log says or at its model's price; None if any call's is unknown in
    every trace."""
    columns = "provider varchar, model varchar, input double, cached double, output double, call double"
    base.execute(f"create or replace temp table prices ({columns})")
    rows: Sequence[tuple[object, ...]] = [
        (name.provider, name.model, price.input_usd, price.cached_usd, price.output_usd, price.call_usd)
        for name, price in prices.items()
    ]
    if rows:
        base.executemany("insert into prices values (?, ?, ?, ?, ?, ?)", rows)
    cached = "coalesce(cached_tokens, 0)"
    usd = f"call + input * (input_tokens - {cached}) + cached * {cached} + output * output_tokens"
    found = base.execute(
        f"with costs as (select trace_id, coalesce(cost_usd, {usd}) as usd "
        "from calls left join prices using (provider, model) where ok and trace_id is not null), "
        "traces as (select sum(usd) as usd from costs group by trace_id having count(*) > 1 and count(*) = count(usd)) "
        "select avg(usd), quantile_cont(usd, 0.5), quantile_cont(usd, 0.95) from traces"
    ).fetchone()
    base.execute("drop table prices")
    mean, p50, p95 = cast(tuple[float | None, float, float], found)
    return None if mean is None else CostSpread(mean=mean, p50=p50, p95=p95)
