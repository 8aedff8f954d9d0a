"""What is normal for one key: medians of first token and of seconds per token, lengths of answers.

Learnt from medians, which cancelled losers cannot bend (policy.md, "Censoring"); rings count requests, never seconds.
"""

from collections import deque
from collections.abc import Iterable
from operator import itemgetter
from statistics import median

from hedgerow.statistics.ring import Ring
from hedgerow.units import Window

__all__ = ["ENOUGH", "KeyStatistics"]

ENOUGH = 20  # fewer samples than this say nothing about a tail (policy.md, warm-up)
RECENT, LENGTHS, PAIRS = Window(requests=200), Window(requests=1000), 1000
SLOPE_FROM, SLOPE_EVERY, SLOPE_MATTERS = 200, 100, 0.10
LEAST_WEIGHT = 0.01
CHARS_PER_TOKEN, CHARS_WEIGHT, CACHED_WEIGHT = 4.0, 0.05, 0.2


class KeyStatistics:
    """One key's recent calls. Times in seconds; quantities in tokens; costs in whatever unit the caller uses throughout.

    `first_tokens` and `responses` are as the caller saw them, over the policy's window: for quantile delays and reports.
    `firsts` are primaries' first-token times (a cancelled one enters as its age), `paces` winners' seconds per token, `gaps`
    and `pauses` winners' mean and longest time between chunks, `outputs` winners' lengths.
    """

    __slots__ = (
        "__weakref__",
        "_by_input",
        "_median_input",
        "_slope",
        "answers",
        "cached_tokens",
        "chars_per_token",
        "first_tokens",
        "firsts",
        "gaps",
        "mean_output",
        "outputs",
        "paces",
        "pauses",
        "requests",
        "responses",
    )

    def __init__(self, window: Window) -> None:
        self.first_tokens, self.responses = Ring(window), Ring(window)
        self.firsts, self.paces, self.gaps, self.pauses = Ring(RECENT), Ring(RECENT), Ring(RECENT), Ring(RECENT)
        self.outputs = Ring(LENGTHS)
        self.requests = self.answers = 0
        self.mean_output = 0.0
        self.chars_per_token, self.cached_tokens = CHARS_PER_TOKEN, 0.0
        self._by_input: deque[tuple[int, float]] = deque(maxlen=PAIRS)
        self._slope = self._median_input = 0.0

    @property
    def warm(self) -> bool:
        """Are there enough first-token times to go by?"""
        return len(self.firsts) >= ENOUGH

    @property
    def b_s(self) -> float:
        """b: the median first-token time; 0 while nothing is known."""
        return self.firsts.quantile(0.5) or 0.0

    @property
    def tau_s(self) -> float:
        """τ: the median seconds per token; 0 while nothing is known."""
        return self.paces.quantile(0.5) or 0.0

    def b_for(self, input_tokens: int) -> float:
        """b for this size of input: along the slope from 200 samples on, never below half of b."""
        b_s = self.b_s
        return max(0.5 * b_s, b_s + self._slope * (input_tokens - self._median_input)) if self._slope else b_s

    def expected_output(self, seen_tokens: float) -> float:
        """N(j): the median length of the answers longer than j, at least 1.1·j."""
        return max(self.outputs.median_above(seen_tokens), 1.1 * seen_tokens)

    def learn_first(self, first_s: float, input_tokens: int, at_s: float) -> None:
        """A race is decided: its primary's first-token time, or its age if it was cancelled before."""
        self.firsts.add(first_s, at_s)
        self._by_input.append((input_tokens, first_s))
        self.requests += 1
        if len(self._by_input) >= SLOPE_FROM and self.requests % SLOPE_EVERY == 0:
            self._learn_slope()

    def learn_answer(
        self,
        *,
        output_tokens: float,
        pace_s: float | None,
        gap_s: float | None,
        pause_s: float | None = None,
        at_s: float,
    ) -> None:
        """A winner's answer is complete. pace_s: seconds per token from its first token on, stalls included; gap_s, pause_s:
        mean and longest time between chunks."""
        if pace_s is not None:
            self.paces.add(pace_s, at_s)
        if gap_s is not None:
            self.gaps.add(gap_s, at_s)
        if pause_s is not None:
            self.pauses.add(pause_s, at_s)
        self.outputs.add(output_tokens, at_s)
        self.answers += 1
        weight = max(LEAST_WEIGHT, 1 / self.answers)
        self.mean_output += weight * (output_tokens - self.mean_output)

    def learn_chars(self, chars: int, tokens: int) -> None:
        """The provider's own count of an answer's visible tokens, against the length of its text."""
        if chars > 0 and tokens > 0:
            self.chars_per_token += CHARS_WEIGHT * (chars / tokens - self.chars_per_token)

    def learn_cached(self, tokens: int) -> None:
        """How much of an answer's input came from the provider's prompt cache."""
        self.cached_tokens += CACHED_WEIGHT * (tokens - self.cached_tokens)

    def by_input(self) -> list[tuple[int, float]]:
        """The last (input tokens, first-token time), oldest first."""
        return list(self._by_input)

    def learn_sizes(self, pairs: Iterable[tuple[int, float]]) -> None:
        """Such pairs of an earlier life."""
        self._by_input.extend(pairs)
        if len(self._by_input) >= SLOPE_FROM:
            self._learn_slope()

    def _learn_slope(self) -> None:
        """Between the medians of the lower and the upper third by input; 0 unless they differ by > 10 % of b."""
        # By input alone: with first-token times as tie-break, the thirds of equal inputs would be the quick and the slow ones.
        pairs = sorted(self._by_input, key=itemgetter(0))
        third = len(pairs) // 3
        (low, low_s), (high, high_s) = zip(*pairs[:third], strict=True), zip(*pairs[-third:], strict=True)
        run, rise = median(high) - median(low), median(high_s) - median(low_s)
        self._slope = rise / run if run > 0 and rise > SLOPE_MATTERS * self.b_s else 0.0
        self._median_input = float(pairs[len(pairs) // 2][0])
