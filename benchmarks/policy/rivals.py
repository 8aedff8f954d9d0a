"""The policies that hedging is compared with, as settings of the product: by the caller's age alone, without a budget."""

from hedgerow import Policy

__all__ = ["RIVALS"]

RIVALS = {
    "none": Policy(trigger="off"),
    "twice": Policy(trigger="response", delay=0.0, max_backups=1, budget="off"),
    "fixed 2.0 s": Policy(trigger="response", delay=2.0, max_backups=1, budget="off"),
    "p95": Policy(trigger="response", delay="p95", max_backups=1, budget="off"),
    "p95+200ms": Policy(trigger="response", delay="p95+200ms", max_backups=1, budget="off"),
    "p90": Policy(trigger="response", delay="p90", max_backups=1, budget="off"),
    "first token p95": Policy(trigger="first_token", delay="p95", max_backups=1, budget="off"),
    "resend p95": Policy(trigger="response", delay="p95", on_trigger="resend", max_backups=1, budget="off"),
    "default, B = 5 %": Policy(budget=0.05),
    "default, B = 10 %": Policy(budget=0.10),
}
