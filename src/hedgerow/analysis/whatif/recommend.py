"""The settings a what-if recommends, as TOML to paste: the budget, and a prior so that a fresh process need not learn first."""

import re
from collections.abc import Sequence

import numpy as np

from hedgerow.analysis.calls import Calls, KeyName
from hedgerow.analysis.censored import HUNG_TIMES_MEDIAN
from hedgerow.analysis.whatif.parts import Parts

__all__ = ["policy_names", "recommended_toml"]

NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9]+")
MOST_OF_A_NAME = 40


def policy_names(keys: Sequence[KeyName]) -> list[str]:
    """What the keys' policies are called in one file, each by a name of its own: letters, digits and -, as bare TOML keys."""
    found = list[str]()
    for key in keys:
        plain = NOT_IN_A_NAME.sub("-", str(key)).strip("-").lower()[:MOST_OF_A_NAME].rstrip("-") or "recommended"
        name, number = plain, 2
        while name in found:
            name, number = f"{plain}-{number}", number + 1
        found.append(name)
    return found


def recommended_toml(name: str, budget: float, parts: Parts, calls: Calls) -> str:
    """One [policy.NAME]."""
    good = parts.answered
    usual_first, usual_pace = float(np.median(parts.usual_first_s[good])), float(np.median(parts.usual_pace_s[good]))
    lateness = (parts.total_s - parts.usual_first_s - parts.output_tokens * parts.usual_pace_s)[good]
    # Of the calls that do not hang: where more of them hang than the budget pays for, the quantile would be the hang itself.
    total = parts.total_s[good]
    usual = lateness[total < HUNG_TIMES_MEDIAN * np.median(total)]
    lag = max(float(np.quantile(usual, 1 - budget)), 0.1 * usual_first, 0.01)
    lines = [f"[policy.{name}]", f"budget = {budget:g}"]
    if not _streamed(calls):
        lines.append("upstream_stream = true   # so that late can be told from long")
    if parts.first_token_known and parts.length_known:
        lines.append(f"prior = {{ first_token_s = {usual_first:.3g}, token_s = {usual_pace:.3g}, lag_s = {lag:.3g} }}")
    return "\n".join(lines) + "\n"


def _streamed(calls: Calls) -> bool:
    """First-token times exist only where calls were streamed."""
    return bool(np.isfinite(calls.ttft_s[calls.ok]).mean() > 0.5)
