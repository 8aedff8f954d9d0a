"""What genai-prices says of a model on a day. Importing this module loads its list; only `prices` does, when it must.

Its traps: a tier that it does not price silently costs the standard price, and so does one whose rates begin later, and one
of a model that a provider only passes on (Azure serves OpenAI's); prices step by length of input, by date and by hour.
"""

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from decimal import Decimal

from genai_prices.data_snapshot import DataSnapshot, get_snapshot
from genai_prices.types import ModelInfo, ModelPrice, PriceVariant, Provider, TieredPrices, TimeOfDateConstraint

from hedgerow.cost.price import DayPrices, Price, StepPrices

__all__ = ["day_prices"]

SOURCE = "genai-prices"
TOKENS_PER_PRICE, CALLS_PER_PRICE = 1_000_000, 1_000
TIER_KEYS = frozenset({"processing", "service_tier", "speed"})  # what OpenAI, Anthropic and Gemini call a tier


def day_prices(name: str, *, provider_url: str | None, tier: str | None, day: date, note: str = "") -> DayPrices | None:
    """One model's prices on a UTC day; None if the list does not have it at that provider, or not by the token.

    tier: lower case, None = standard. provider_url None: the provider is guessed from the name, and the source says so.
    note: what else the source is to say.
    """
    snapshot = get_snapshot()
    # Not genai-prices' own look-up: it remembers every name it was ever asked for.
    provider = _provider(snapshot, name, provider_url)
    model = provider.find_model(name, all_providers=snapshot.providers) if provider is not None else None
    if provider is None or model is None:
        return None
    guess = ", provider guessed from the model's name" if provider_url is None else ""
    source = f"{SOURCE}{guess}{note}"
    # What a provider only passes on has no tiers there, though the list would answer for the original.
    variants = tuple(model.price_variants or ()) if any(each is model for each in provider.models) else ()
    starts = _starts(model)
    spans: list[StepPrices] = []
    for moment in (datetime.combine(day, start, UTC) for start in starts):
        context = _context(variants, tier, moment) if tier is not None else None
        said = f"{source}, tier {tier!r} unpriced" if tier is not None and context is None else source
        span = _steps(model.get_prices(moment, context), said)
        if span is None:
            return None
        spans.append(span)
    return DayPrices(starts, tuple(spans))


def _provider(snapshot: DataSnapshot, name: str, provider_url: str | None) -> Provider | None:
    if provider_url is not None:
        return next((each for each in snapshot.providers if re.match(each.api_pattern, provider_url)), None)
    known = (
        each for each in snapshot.providers if each.model_match is not None and each.model_match.is_match(name.lower())
    )
    return next(known, None)


def _context(variants: tuple[PriceVariant, ...], tier: str, moment: datetime) -> dict[str, str] | None:
    """What to ask genai-prices for to get this tier; None if it has no such price at this moment."""
    for variant in variants:
        active = variant.constraint is None or variant.constraint.active(moment)
        if active and len(variant.when) == 1 and tier in variant.when.values() and TIER_KEYS & variant.when.keys():
            return variant.when
    return None


def _steps(prices: ModelPrice, source: str) -> StepPrices | None:
    """None for what is not priced by the token (minutes of speech, pages)."""
    if prices.input_mtok is None:
        return None
    priced = (prices.input_mtok, prices.cache_read_mtok, prices.output_mtok)
    limits = sorted({tier.start for each in priced if isinstance(each, TieredPrices) for tier in each.tiers})
    lengths = (0, *(limit + 1 for limit in limits))
    return StepPrices(tuple(limits), tuple(_price(prices, length, source) for length in lengths))


def _price(prices: ModelPrice, input_tokens: int, source: str) -> Price:
    """For inputs of this length. Cached input without a price of its own is input; output without one (embeddings) is free."""
    input_usd = _for_length(prices.input_mtok, input_tokens)
    cached = prices.cache_read_mtok
    return Price(
        input_usd=input_usd / TOKENS_PER_PRICE,
        cached_usd=(input_usd if cached is None else _for_length(cached, input_tokens)) / TOKENS_PER_PRICE,
        output_usd=_for_length(prices.output_mtok, input_tokens) / TOKENS_PER_PRICE,
        call_usd=_for_length(prices.requests_kcount, input_tokens) / CALLS_PER_PRICE,
        source=source,
    )


def _for_length(price: Decimal | TieredPrices | None, input_tokens: int) -> float:
    if isinstance(price, TieredPrices):
        passed = [step.price for step in price.tiers if input_tokens > step.start]
        return float(passed[-1] if passed else price.base)
    return float(price or 0)


def _starts(model: ModelInfo) -> tuple[time, ...]:
    """When a price may change during the day (UTC, without zone): DeepSeek is cheaper at night."""
    return tuple(sorted({time.min, *_changes(model)}))


def _changes(model: ModelInfo) -> Iterator[time]:
    priced = () if isinstance(model.prices, ModelPrice) else model.prices
    for each in (*priced, *(model.price_variants or ())):
        if isinstance(each.constraint, TimeOfDateConstraint):
            for moment in (each.constraint.start_time, each.constraint.end_time):
                aware = datetime.combine(date(2000, 1, 1), moment, moment.tzinfo or UTC)
                yield aware.astimezone(UTC).time()
