"""The settings a what-if recommends, as TOML to paste: the budget, and a prior so that a fresh process need not learn first."""

import numpy as np

from hedgerow.analysis.calls import Calls
from hedgerow.analysis.whatif.parts import Parts

__all__ = ["recommended_toml"]


def recommended_toml(name: str, budget: float, parts: Parts, calls: Calls) -> str:
    """One [policy.NAME]."""
    good = parts.answered
    usual_first, usual_pace = float(np.median(parts.usual_first_s[good])), float(np.median(parts.usual_pace_s[good]))
    lateness = (parts.total_s - parts.usual_first_s - parts.output_tokens * parts.usual_pace_s)[good]
    lag = max(float(np.quantile(lateness, 1 - budget)), 0.1 * usual_first, 0.01)
    lines = [f"[policy.{name}]", f"budget = {budget:g}"]
    if not _streamed(calls):
        lines.append("upstream_stream = true   # so that late can be told from long")
    if parts.first_token_known and parts.length_known:
        lines.append(f"prior = {{ first_token_s = {usual_first:.3g}, token_s = {usual_pace:.3g}, lag_s = {lag:.3g} }}")
    return "\n".join(lines) + "\n"


def _streamed(calls: Calls) -> bool:
    """First-token times exist only where calls were streamed."""
    return bool(np.isfinite(calls.ttft_s[calls.ok]).mean() > 0.5)
