"""Latency profiles: a parametric one (log-normal body, Pareto waits and stalls) and one of measured quantiles.

Part of an attempt's luck is its request's own and hits all its copies, so that a second copy is no independent draw.
The tier "priority" is a second profile for the same luck: trouble meets it less often, and never where the first has none.
"""

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from random import Random

from hedgerow.sandbox.draws import Arrival, Draw

__all__ = ["ModelProfile", "Pareto", "Prices", "Priority", "Profile", "QuantileProfile", "Quantiles"]

# Two copies of a stall that is the request's own differ by this sigma.
SHARED_SPREAD = 0.15
# Keeps a careless spread from asking for more text than fits into memory.
MAX_TOKENS = 1_000_000
# Measured times do not say which of them were trouble: those of more than this many medians are taken for it.
TROUBLE_FROM_MEDIANS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """USD per million tokens, and what the tiers "priority" and "flex" multiply them by. All ≥ 0."""

    input_usd_per_million: float
    output_usd_per_million: float
    priority_ratio: float = 1.75
    flex_ratio: float = 0.5

    def cost_usd(self, input_tokens: int, output_tokens: int, service_tier: str) -> float:
        """The price of so many tokens at a tier; other tiers than the two cost the plain price."""
        ratio = {"priority": self.priority_ratio, "flex": self.flex_ratio}.get(service_tier, 1.0)
        plain = input_tokens * self.input_usd_per_million + output_tokens * self.output_usd_per_million
        return ratio * plain / 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Priority:
    """How calls of the tier "priority" fare beside standard ones: an assumption, for no provider publishes figures.

    `trouble_ratio` (0..1): the share of the waits, stalls and hangs that they still meet. `speed_ratio` (> 0): their
    times, those of trouble too, as a share of the standard ones.
    """

    trouble_ratio: float = 1.0
    speed_ratio: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pareto:
    """Trouble that strikes with `chance` (0..1) and then lasts at least `scale_s`, with tail index `alpha` (> 0)."""

    chance: float
    scale_s: float
    alpha: float

    def draw(self, luck: Random, longest_s: float) -> float:
        """Seconds, 0 if it does not strike; the tail is cut at `longest_s`. Uses two numbers either way."""
        struck, rest = luck.random() < self.chance, luck.random()
        if not struck:
            return 0.0
        lowest = (longest_s / self.scale_s) ** -self.alpha
        return self.scale_s * (lowest + (1 - lowest) * rest) ** (-1 / self.alpha)

    def eased(self, priority: Priority) -> "Pareto":
        """The same trouble, rarer and shorter. The number that lets it strike is uniform below `chance`: so it is also the
        further draw on whether a priority call meets it."""
        return replace(self, chance=self.chance * priority.trouble_ratio, scale_s=self.scale_s * priority.speed_ratio)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelProfile:
    """First token = log-normal body + own wait + shared wait; then an even token rate, sometimes with one stall.

    `*_spread` is the sigma of a log-normal, `_request` shared by a request's attempts, `_attempt` their own. Of the
    stalls, `slow_rate_share` come as a slow token rate of the same total instead of a gap.
    """

    name: str
    prices: Prices
    first_token_s: float
    first_token_spread_request: float
    first_token_spread_attempt: float
    wait: Pareto
    wait_shared: Pareto
    stall: Pareto
    stall_shared: Pareto
    stall_max_s: float
    slow_rate_share: float
    output_median_tokens: float
    output_spread: float
    output_spread_attempt: float
    token_s: float
    token_spread: float
    priority: Priority = Priority()

    def draw(self, arrival: Arrival) -> Draw:
        """The attempt that this arrival meets."""
        request, own = arrival.request_luck(), arrival.attempt_luck()
        output = self.output_spread * request.gauss(0, 1) + self.output_spread_attempt * own.gauss(0, 1)
        tokens = min(MAX_TOKENS, max(1, round(self.output_median_tokens * math.exp(output))))
        body = self.first_token_spread_request * request.gauss(0, 1)
        body += self.first_token_spread_attempt * own.gauss(0, 1)
        first_token_s = self.first_token_s * math.exp(body) + self._trouble(self.wait, self.wait_shared, request, own)
        token_s = self.token_s * math.exp(self.token_spread * own.gauss(0, 1))
        stall_s = self._trouble(self.stall, self.stall_shared, request, own)
        slow, after = own.random() < self.slow_rate_share, math.floor(own.random() * tokens) + 1
        if slow:
            token_s, stall_s = token_s + stall_s / tokens, 0.0
        return Draw(
            first_token_s=first_token_s,
            token_s=token_s,
            tokens=tokens,
            stall_after_tokens=after if stall_s else 0,
            stall_s=stall_s,
        )

    def at_priority(self) -> "ModelProfile":
        """The profile that calls of the tier "priority" draw from."""
        speed_ratio = self.priority.speed_ratio
        return replace(
            self,
            first_token_s=self.first_token_s * speed_ratio,
            token_s=self.token_s * speed_ratio,
            wait=self.wait.eased(self.priority),
            wait_shared=self.wait_shared.eased(self.priority),
            stall=self.stall.eased(self.priority),
            stall_shared=self.stall_shared.eased(self.priority),
            stall_max_s=self.stall_max_s * speed_ratio,
            priority=Priority(),
        )

    def _trouble(self, single: Pareto, shared: Pareto, request: Random, own: Random) -> float:
        both_s = shared.draw(request, self.stall_max_s) * math.exp(SHARED_SPREAD * own.gauss(0, 1))
        return single.draw(own, self.stall_max_s) + both_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantiles:
    """A distribution as (share, value) points from share 0 to 1, log-linear between them. Values > 0 and rising."""

    points: tuple[tuple[float, float], ...]

    def at(self, share: float) -> float:
        """The value below which `share` (0..1) of all lie."""
        for (low, low_value), (high, high_value) in pairwise(self.points):
            if share <= high:
                return low_value * (high_value / low_value) ** ((share - low) / (high - low))
        return self.points[-1][1]

    def share_below(self, value: float) -> float:
        """The share (0..1) of all that lies below a value."""
        for (low, low_value), (high, high_value) in pairwise(self.points):
            if value <= low_value:
                return low
            if value < high_value:
                return low + (high - low) * math.log(value / low_value) / math.log(high_value / low_value)
        return 1.0

    def eased(self, priority: Priority) -> "Quantiles":
        """The same times, faster and with less of the trouble.

        The room that trouble leaves is filled with the rest, stretched: the same luck never gives a longer time, and
        what is left of the trouble keeps its shape.
        """
        limit = TROUBLE_FROM_MEDIANS * self.at(0.5)
        edge = self.share_below(limit)
        kept = 1 - priority.trouble_ratio * (1 - edge)

        def moved(share: float) -> float:
            return share * kept / edge if share <= edge else 1 - priority.trouble_ratio * (1 - share)

        # With a point at the edge neither side is interpolated across it.
        points = self.points if edge == 1 else sorted((*self.points, (edge, limit)))
        return Quantiles(points=tuple((moved(share), value * priority.speed_ratio) for share, value in points))


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantileProfile:
    """First-token time, seconds per token and output length from measured quantiles.

    Each attempt takes its request's luck with chance `shared_luck_share`, else its own: two copies share theirs with the
    square of it. The length of the answer is always the request's.
    """

    name: str
    prices: Prices
    first_token_s: Quantiles
    token_s: Quantiles
    output_tokens: Quantiles
    shared_luck_share: float = 0.5
    priority: Priority = Priority()

    def draw(self, arrival: Arrival) -> Draw:
        """The attempt that this arrival meets."""
        request, own = arrival.request_luck(), arrival.attempt_luck()
        tokens = max(1, round(self.output_tokens.at(request.random())))
        luck = request if own.random() < self.shared_luck_share else own
        return Draw(
            first_token_s=self.first_token_s.at(luck.random()), token_s=self.token_s.at(luck.random()), tokens=tokens
        )

    def at_priority(self) -> "QuantileProfile":
        """The profile that calls of the tier "priority" draw from."""
        first_token_s, token_s = self.first_token_s.eased(self.priority), self.token_s.eased(self.priority)
        return replace(self, first_token_s=first_token_s, token_s=token_s, priority=Priority())


Profile = ModelProfile | QuantileProfile
