"""The arms: ways of sending the same requests that are to be compared."""

from dataclasses import dataclass

from hedgerow.settings import Policy

__all__ = ["BASELINE", "DEMO_ARMS", "PRIORITY", "Arm"]

BASELINE = "single"
"""The arm all others are compared with."""

PRIORITY = "priority"
"""The arm that buys a better tier instead of hedging; the tier has the same name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """A name, the policy its calls run under, and the service tier they ask for (None: no tier). Immutable; may be shared."""

    name: str
    policy: Policy
    service_tier: str | None = None


DEMO_ARMS = (
    Arm(name=BASELINE, policy=Policy(trigger="off", max_backups=0)),
    Arm(name=PRIORITY, policy=Policy(trigger="off", max_backups=0), service_tier="priority"),
    Arm(name="twice", policy=Policy(trigger="response", delay=0, max_backups=1, budget="off")),
    Arm(name="p95", policy=Policy(trigger="response", delay="p95", max_backups=1, budget="off")),
    Arm(name="hedged", policy=Policy()),
)
"""Never a backup; never one, but a dearer tier; always one; one after the p95 of full responses, with no budget; what
hedgerow does if told nothing."""
