"""The spend controller: moves D, the lateness that a backup waits for, so that hedging costs what the budget says.

Formulas and constants: policy.md, "slow controller", "fast inflation", "surge"; each constant is named where it stands.
"""

from math import exp

__all__ = ["Controller"]

GAIN = 0.04
JUNK_WIN_RATE = (
    0.25  # D does not fall while fewer backups win: where no trouble is left to buy it would sink to buy junk
)
LEAST_WEIGHT = 0.01  # of one answer in the mean cost
DEAREST = 10.0  # mean requests that one backup may count for
SMALLEST_D_PER_B, LARGEST_D_S = 0.1, 60.0
SMALLEST_FIRST_D_S = 0.2
GAIN_FAST, LARGEST_INFLATION = 0.20, 50.0
WIN_WEIGHT, WANT_WEIGHT = 0.05, 0.02
SURGE_SHARE, SURGE_BUDGETS, SURGE_WIN_RATE, SURGE_REQUESTS = 0.20, 3.0, 0.55, 5_000


class Controller:
    """One policy's D, f, w and u. budget: B, 0..1. Not for threads: one Pilot owns it.

    D is kept as a multiple of b, the key's median first-token time, so that keys share it and it moves with b; the first
    warm key sets it. `mean_cost` is that of the policy's answers, whatever their key: backups of large calls weigh more than
    those of small ones. `win_rate` (w) is per hedged request, `wanted_share` (u) the share of requests that wanted a backup.
    """

    def __init__(self, budget: float) -> None:
        self.budget = budget
        self.d_per_b: float | None = None
        self.inflation, self.win_rate, self.wanted_share = 1.0, 0.5, 0.0
        self.surge_length = self.answers = 0
        self.mean_cost = 0.0

    @property
    def surging(self) -> bool:
        """Many calls are in trouble and backups help: an incident that hits attempts, not requests."""
        wanted_by_many = self.wanted_share > max(SURGE_SHARE, SURGE_BUDGETS * self.budget)
        return wanted_by_many and self.win_rate > SURGE_WIN_RATE

    def delay_s(self, b_s: float) -> float:
        """D for a key with this median; start() must have been called."""
        assert self.d_per_b is not None
        return _within(self.d_per_b * b_s, SMALLEST_D_PER_B * b_s, LARGEST_D_S)

    def start(self, b_s: float, q90_s: float) -> None:
        """Set the first D from the first warm key: its median and its 90th percentile of first-token times."""
        if self.d_per_b is None and b_s > 0:
            d_s = max(1.5 * b_s * 0.05 / max(self.budget, 1e-3), 2 * (q90_s - b_s), SMALLEST_FIRST_D_S)
            self.d_per_b = min(d_s, LARGEST_D_S) / b_s

    def on_request(self, b_s: float) -> None:
        """A primary was sent under a warm key: D falls by what the budget gains."""
        if self.win_rate >= JUNK_WIN_RATE:
            self._move(-self.budget, b_s)

    def on_backup(self, cost: float, b_s: float) -> float:
        """A backup is sent. cost: its expected cost in mean requests. Returns what was charged (0 in a surge)."""
        if self.surging and self.surge_length <= SURGE_REQUESTS:
            return 0.0
        charged = min(cost, DEAREST)
        self._move(charged, b_s)
        return charged

    def on_answer(self, cost: float) -> None:
        """An answer is complete, and cost so much."""
        self.answers += 1
        self.mean_cost += max(LEAST_WEIGHT, 1 / self.answers) * (cost - self.mean_cost)

    def in_means(self, cost: float) -> float | None:
        """A cost in mean requests; None while nothing is known."""
        return cost / self.mean_cost if self.mean_cost > 0 else None

    def settle(self, cost: float, charged: float, b_s: float) -> None:
        """What the losers really cost, in mean requests, against what was charged when they were sent."""
        if charged:
            self._move(min(cost, DEAREST) - charged, b_s)

    def on_decided(self, *, backups: int, won: bool, wanted: bool, refused: bool) -> None:
        """A race under a warm key is decided. refused: its first backup was wanted and not sent."""
        if backups:
            self.win_rate += WIN_WEIGHT * (won - self.win_rate)
        self.wanted_share += WANT_WEIGHT * (wanted - self.wanted_share)
        self.surge_length = self.surge_length + 1 if self.surging else max(0, self.surge_length - 1)
        lost = 0.0
        if wanted:
            lost = (0.0 if won else 1.0) if backups else (1.0 - self.win_rate if refused else 0.0)
        if self.d_per_b is not None and (lost or self.inflation > 1.0):  # else it is at its least, and stays there
            inflation = self.inflation * exp(GAIN_FAST * (lost - 2 * self.budget))
            self.inflation = _within(inflation, 1.0, LARGEST_INFLATION)

    def _move(self, spend: float, b_s: float) -> None:
        if self.d_per_b is None or b_s <= 0:
            return
        d_s = self.d_per_b * b_s * exp(GAIN * spend)
        self.d_per_b = _within(d_s, SMALLEST_D_PER_B * b_s, LARGEST_D_S) / b_s


def _within(value: float, least: float, most: float) -> float:
    """At least the one and at most the other; where they contradict each other, `most` holds."""
    if value < least:
        value = least
    return most if value > most else value
