"""The same tokens under another model or service tier: what they would cost there. How fast they would be, no log tells."""

from dataclasses import asdict, dataclass

import numpy as np

from hedgerow.analysis.calls import Calls, KeyName
from hedgerow.analysis.describe.analyze import Question
from hedgerow.analysis.describe.money import price_of, priced
from hedgerow.cost.prices import Price
from hedgerow.errors import SettingError

__all__ = ["Elsewhere", "Repriced", "repriced"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Elsewhere:
    """A model to price by, or None for the log's own, and a service tier, or None for the standard one."""

    model: str | None
    tier: str | None

    @classmethod
    def parse(cls, text: str) -> "Elsewhere":
        """`gpt-4o-mini`, `gpt-4o/priority`, `/priority` (the log's own model). Raises SettingError."""
        model, _, tier = text.partition("/")
        if not model.strip() and not tier.strip():
            raise SettingError(
                "--reprice", text, "MODEL, MODEL/TIER or /TIER", fix='write "gpt-4o-mini" or "/priority"'
            )
        return cls(model=model.strip() or None, tier=tier.strip() or None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Repriced:
    """usd: of all answered calls with known tokens; times: that ÷ what they cost now. None = nobody knows the price."""

    model: str
    tier: str | None
    usd: float | None
    times: float | None

    def as_dict(self) -> dict[str, object]:
        """JSON-ready."""
        return asdict(self)


def repriced(calls: Calls, now: Price | None, where: Elsewhere, question: Question) -> Repriced:
    """One key's calls. now: the price they have, where the log does not say what they cost."""
    model = where.model or calls.name.model
    counted = calls.ok & np.isfinite(calls.input_tokens) & np.isfinite(calls.output_tokens)
    usual = float(np.median(calls.input_tokens[counted])) if counted.any() else 0.0
    price = price_of(KeyName(provider="", model=model), usual, question.book, question.at, where.tier)
    if price is None or not counted.any():
        return Repriced(model=model, tier=where.tier, usd=None, times=None)
    tokens = (calls.input_tokens[counted], calls.cached_tokens[counted], calls.output_tokens[counted])
    usd = float(priced(price, *tokens).sum())
    known = calls.cost_usd[counted]
    unpriced = 0.0 if now is None else float(priced(now, *tokens).sum())
    before = float(known.sum()) if np.isfinite(known).all() else unpriced
    return Repriced(model=model, tier=where.tier, usd=usd, times=usd / before if before else None)
