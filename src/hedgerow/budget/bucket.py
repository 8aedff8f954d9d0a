"""The refund bucket: +B per request, -1 per backup, +1 back when the backup wins.

It therefore spends more exactly when hedging works, and guarantees losing backups ≤ 2 + B·n from the start, whatever the
provider does (n = requests the policy may hedge). Formula: policy.md, "bucket".
"""

from dataclasses import dataclass

__all__ = ["SMALLEST_CAP", "Bucket"]

START = 2.0
SMALLEST_CAP = 10.0
LARGEST_RESERVE = 200.0
ROUNDING = 1e-9


@dataclass(slots=True)
class Bucket:
    """Tokens for backups. share: B, 0..1. sent_share: second cap, backups sent ≤ 2 + share·n; None = none. Not for threads.

    `requests` and `sent` are counted from the start; `losing` counts the backups sent and not refunded, those in flight
    included. `reserve` is what the bucket could not hold, kept for first backups in a surge.
    """

    share: float
    sent_share: float | None = None
    level: float = START
    reserve: float = 0.0
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

    def withdraw(self, need: float = 1.0, *, surge: bool = False) -> bool:
        """Pay for one backup if at least `need` ≥ 1 tokens are there, in a surge from the reserve too; else nothing changes."""
        if self.sent_share is not None and self.sent + 1 > START + self.sent_share * self.requests + ROUNDING:
            return False
        missing = max(0.0, need - self.level)
        if missing > ROUNDING:
            if not surge or self.reserve < missing:
                return False
            self.reserve -= missing
            self.level += missing
        self.level -= 1
        self.sent += 1
        return True

    @property
    def empty(self) -> bool:
        """Is there too little for any backup now, the reserve included?"""
        return self.level + self.reserve < 1.0 - ROUNDING

    def refund(self, in_flight: int) -> None:
        """A backup won: its token comes back."""
        self.refunds += 1
        self.fill(1.0, in_flight)

    def fill(self, tokens: float, in_flight: int) -> None:
        """Put tokens in; what the cap (10, or 2B per call in flight if more) cannot hold goes to the reserve (at most 200)."""
        self.level += tokens
        over = self.level - SMALLEST_CAP
        if over > 0 and (over := self.level - max(SMALLEST_CAP, 2 * self.share * in_flight)) > 0:
            self.level -= over
            self.reserve = min(LARGEST_RESERVE, self.reserve + over)
