"""The refund bucket: +B per request, -1 per backup, +1 back when the backup wins.

It therefore spends more exactly when hedging works, and guarantees losing backups ≤ 2 + B·n from the start, whatever the
provider does (n = requests the policy may hedge). Formula: policy.md, "bucket".
"""

from dataclasses import dataclass

__all__ = ["Bucket"]

START = 2.0
SMALLEST_CAP = 10.0
ROUNDING = 1e-9


@dataclass(slots=True)
class Bucket:
    """Tokens for backups. share: B, 0..1. sent_share: second cap, backups sent ≤ 2 + share·n; None = none. Not for threads.

    `requests` and `sent` are counted from the start; `losing` counts the backups sent and not refunded, those in flight
    included.
    """

    share: float
    sent_share: float | None = None
    level: float = START
    requests: int = 0
    sent: int = 0
    refunds: int = 0

    @property
    def losing(self) -> int:
        """Backups that have been paid for and did not win (yet)."""
        return self.sent - self.refunds

    def deposit(self, in_flight: int) -> None:
        """A request came that may be hedged; `in_flight` such requests are under way, this one included."""
        self.requests += 1
        self.fill(self.share, in_flight)

    def withdraw(self, need: float = 1.0) -> bool:
        """Pay for one backup if at least `need` ≥ 1 tokens are there; False and nothing changed otherwise."""
        if self.level < need - ROUNDING:
            return False
        if self.sent_share is not None and self.sent + 1 > START + self.sent_share * self.requests + ROUNDING:
            return False
        self.level -= 1
        self.sent += 1
        return True

    def refund(self, in_flight: int) -> None:
        """A backup won: its token comes back."""
        self.refunds += 1
        self.fill(1.0, in_flight)

    def fill(self, tokens: float, in_flight: int) -> None:
        """Put tokens in; what the cap (10, or 2B per call in flight if more) cannot hold is gone."""
        self.level = min(self.level + tokens, max(SMALLEST_CAP, 2 * self.share * in_flight))
