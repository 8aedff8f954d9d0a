"""Reads profiles: the shipped ones by name, a user's own from a TOML file with the same keys, checked key by key."""

import tomllib
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import cast

from hedgerow.errors import SettingError
from hedgerow.sandbox.checked import Fields
from hedgerow.sandbox.profiles import ModelProfile, Pareto, Prices, Priority, Profile, QuantileProfile, Quantiles

__all__ = ["PROFILE_NAMES", "load_profile", "parse_profile"]

PROFILE_NAMES = ("openai-like", "gemini-like", "search-like", "real")


def load_profile(name: str) -> Profile:
    """A shipped profile (`PROFILE_NAMES`) or a path that ends in .toml. SettingError names the file and key that is wrong."""
    if name in PROFILE_NAMES:
        text = files("hedgerow.sandbox").joinpath("profile_data", f"{name}.toml").read_text("utf-8")
        return parse_profile(text, name=name, where=f"{name}.toml")
    allowed = f"{', '.join(PROFILE_NAMES)} or a file that ends in .toml"
    if not name.endswith(".toml"):
        raise SettingError("profile", name, allowed)
    try:
        text = Path(name).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingError("profile", name, allowed, fix=f"the file cannot be read: {error}") from None
    return parse_profile(text, name=Path(name).stem, where=name)


def parse_profile(text: str, *, name: str, where: str) -> Profile:
    """The profile in a TOML text: of quantiles if it has a table [first_token_s], else parametric. Raises SettingError."""
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingError("profile", name, "valid TOML", fix=str(error), where=where) from None
    fields = Fields(values, where=where)
    by_quantiles = isinstance(values.get("first_token_s"), dict)
    profile = _quantile_profile(fields, name) if by_quantiles else _model_profile(fields, name)
    fields.close()
    return profile


def _model_profile(fields: Fields, name: str) -> ModelProfile:
    stall_max_s = _number(fields, "stall_max_s", low=0.001)
    return ModelProfile(
        name=name,
        prices=_prices(fields),
        first_token_s=_number(fields, "first_token_s"),
        first_token_spread_request=fields.number("first_token_spread_request", 0.0, high=5),
        first_token_spread_attempt=fields.number("first_token_spread_attempt", 0.0, high=5),
        wait=_pareto(fields, "wait", stall_max_s),
        wait_shared=_pareto(fields, "wait_shared", stall_max_s),
        stall=_pareto(fields, "stall", stall_max_s),
        stall_shared=_pareto(fields, "stall_shared", stall_max_s),
        stall_max_s=stall_max_s,
        slow_rate_share=fields.number("slow_rate_share", 0.0, high=1),
        output_median_tokens=_number(fields, "output_median_tokens", low=1, high=1_000_000),
        output_spread=fields.number("output_spread", 0.0, high=5),
        output_spread_attempt=fields.number("output_spread_attempt", 0.0, high=5),
        token_s=_number(fields, "token_s"),
        token_spread=fields.number("token_spread", 0.0, high=5),
        priority=_priority(fields),
    )


def _quantile_profile(fields: Fields, name: str) -> QuantileProfile:
    return QuantileProfile(
        name=name,
        prices=_prices(fields),
        first_token_s=_quantiles(fields, "first_token_s"),
        token_s=_quantiles(fields, "token_s"),
        output_tokens=_quantiles(fields, "output_tokens"),
        shared_luck_share=fields.number("shared_luck_share", 0.5, high=1),
        priority=_priority(fields),
    )


def _prices(fields: Fields) -> Prices:
    table = _table(fields, "prices")
    prices = Prices(
        input_usd_per_million=_number(table, "input_usd_per_million"),
        output_usd_per_million=_number(table, "output_usd_per_million"),
        priority_ratio=table.number("priority_ratio", 1.75),
        flex_ratio=table.number("flex_ratio", 0.5),
    )
    table.close()
    return prices


def _priority(fields: Fields) -> Priority:
    table = fields.table("priority")
    if table is None:
        return Priority()
    priority = Priority(
        trouble_ratio=table.number("trouble_ratio", 1.0, high=1),
        speed_ratio=table.number("speed_ratio", 1.0, low=0.001, high=1000),
    )
    table.close()
    return priority


def _pareto(fields: Fields, key: str, longest_s: float) -> Pareto:
    table = fields.table(key)
    if table is None:
        return Pareto(chance=0.0, scale_s=longest_s, alpha=1.0)
    pareto = Pareto(
        chance=_number(table, "chance", high=1),
        scale_s=_number(table, "scale_s", low=0.000_001, high=longest_s),
        alpha=_number(table, "alpha", low=0.01, high=100),
    )
    table.close()
    return pareto


def _quantiles(fields: Fields, key: str) -> Quantiles:
    table = _table(fields, key)
    raw = table.raw("quantiles")
    table.close()
    rows: list[object] = cast(list[object], raw) if isinstance(raw, list) else []
    points = tuple(point for row in rows if (point := _point(row)) is not None)
    shares, values = [share for share, _ in points], [value for _, value in points]
    in_order = all(low < high for low, high in pairwise(shares)) and values == sorted(values)
    if len(points) < 2 or len(points) != len(rows) or (shares[0], shares[-1]) != (0, 1) or not in_order:
        raise table.error(
            "quantiles", rows, "[share, value] pairs from share 0 to 1, shares rising, values > 0 and rising"
        )
    return Quantiles(points=points)


def _point(row: object) -> tuple[float, float] | None:
    pair = cast(list[object], row) if isinstance(row, list) else []
    if len(pair) != 2:
        return None
    share, value = pair
    if not isinstance(share, int | float) or not isinstance(value, int | float) or not 0 < value < 1e12:
        return None
    return float(share), float(value)


def _number(fields: Fields, key: str, *, low: float = 0.0, high: float = 1e12) -> float:
    value = fields.number(key, None, low=low, high=high)
    if value is None:
        raise fields.error(key, None, f"a number from {low:g} to {high:g}; this key is needed")
    return value


def _table(fields: Fields, key: str) -> Fields:
    table = fields.table(key)
    if table is None:
        raise fields.error(key, None, f"a table [{key}]; it is needed")
    return table
