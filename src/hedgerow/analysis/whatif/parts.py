"""Takes a call apart into what scales with the length of its answer and what does not, so that it can stand for a copy.

total = first token + output · pace + excess. A call whose pace is above 1.5 × the key's median has stalled: it counts as decoded
at the median pace, and the rest is its stall, which is as long in a short answer as in a long one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.analysis.calls import Calls, Column, Flags
from hedgerow.analysis.censored import hung
from hedgerow.analysis.lengths import expected_total_s

__all__ = ["Parts", "joined", "parts_of"]

MOST_PACE = 1.5  # times the median; slower than this is a stall spread over the answer
MOSTLY = 0.9
TINY_S = 1e-9  # a pace to divide by where answers take no time at all
Places = NDArray[np.intp]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Per call: seconds to the first token (inf where it failed), seconds per output token, seconds of stall, output tokens;
    and what is usual for its key: b, the median first token, and tau, the median pace.

    first_token_known: the log has first-token times; else they are the key's usual one, slowed down like the whole call.
    whole_known: the log has whole responses; else a call ends with its first token.
    length_known: the log has output tokens; else every answer counts as one token.
    """

    first_token_s: Column
    pace_s: Column
    excess_s: Column
    output_tokens: Column
    usual_first_s: Column
    usual_pace_s: Column
    first_token_known: bool
    whole_known: bool
    length_known: bool

    @property
    def answered(self) -> Flags:
        """The calls that did not fail."""
        return np.isfinite(self.first_token_s)

    @property
    def total_s(self) -> Column:
        """Each call as it was."""
        return self.first_token_s + self.output_tokens * self.pace_s + self.excess_s

    def copies_of(self, calls: Places, sources: Places) -> "Parts":
        """Copies of some calls that fare like the calls `sources` say, as long as their own answers. A source of another key
        counts with its lateness: in the pace of the call's own key."""
        return self._with(
            calls,
            first_token_s=self.first_token_s[sources] * (self.usual_first_s[calls] / self.usual_first_s[sources]),
            pace_s=self.pace_s[sources] * (self.usual_pace_s[calls] / self.usual_pace_s[sources]),
            excess_s=self.excess_s[sources],
        )

    def copies_from(self, other: "Parts", calls: Places, sources: Places) -> "Parts":
        """Copies of some calls at another target, where they fare like that target's calls `sources`: in its own pace."""
        return self._with(
            calls,
            first_token_s=other.first_token_s[sources],
            pace_s=other.pace_s[sources],
            excess_s=other.excess_s[sources],
        )

    def some(self, calls: Places) -> "Parts":
        """These calls alone."""
        return self.copies_of(calls, calls)

    def _with(self, calls: Places, *, first_token_s: Column, pace_s: Column, excess_s: Column) -> "Parts":
        return Parts(
            first_token_s=first_token_s,
            pace_s=pace_s,
            excess_s=excess_s,
            output_tokens=self.output_tokens[calls],
            usual_first_s=self.usual_first_s[calls],
            usual_pace_s=self.usual_pace_s[calls],
            first_token_known=self.first_token_known,
            whole_known=self.whole_known,
            length_known=self.length_known,
        )


def parts_of(calls: Calls) -> Parts:
    """Of one key's calls, of which at least one was answered. Output tokens that are unknown count as the key's median. A failed
    call that ran long counts as answered when it failed: that is the least it would have taken."""
    whole_known = _share(~np.isnan(calls.total_s), calls.ok) > 0.5
    answered_s = calls.total_s if whole_known else calls.ttft_s
    hanging = hung(calls, answered_s)
    total = np.where(hanging, calls.failed_s, answered_s)
    answered = calls.ok & ~np.isnan(total)
    good = answered | hanging
    output, length_known = _outputs(calls, answered)
    first_token_known = _share(~np.isnan(calls.ttft_s), answered) > MOSTLY
    if first_token_known:
        usual_first = float(np.median(calls.ttft_s[good & ~np.isnan(calls.ttft_s)]))
        first = np.minimum(np.where(np.isnan(calls.ttft_s), usual_first, calls.ttft_s), total)
        first = np.where(hanging, total, first)  # nothing came of it
        pace = (total - first) / output
        usual_pace = float(np.median(pace[good]))
        regular = np.where(pace > MOST_PACE * usual_pace, usual_pace, pace)
    else:
        usual_s, usual_first = expected_total_s(total, output, good)
        slowdown = np.where(total > MOST_PACE * usual_s, 1.0, total / usual_s)
        first = usual_first * slowdown
        regular = (usual_s - usual_first) / output * slowdown
        usual_pace = float(np.median(((usual_s - usual_first) / output)[good]))
    excess = np.maximum(total - first - output * regular, 0.0)
    n = len(calls)
    return Parts(
        first_token_s=np.where(good, first, np.inf),
        pace_s=np.where(good, regular, 0.0),
        excess_s=np.where(good, excess, 0.0),
        output_tokens=output,
        usual_first_s=np.full(n, max(usual_first, TINY_S)),
        usual_pace_s=np.full(n, max(usual_pace, TINY_S)),
        first_token_known=first_token_known,
        whole_known=whole_known,
        length_known=length_known,
    )


def joined(parts: Sequence[Parts], order: Places) -> Parts:
    """Several keys' parts as one, put into `order`. What one of them does not know, all don't."""
    columns = ("first_token_s", "pace_s", "excess_s", "output_tokens", "usual_first_s", "usual_pace_s")
    together = {name: np.concatenate([getattr(each, name) for each in parts])[order] for name in columns}
    return Parts(
        **together,
        first_token_known=all(each.first_token_known for each in parts),
        whole_known=all(each.whole_known for each in parts),
        length_known=all(each.length_known for each in parts),
    )


def _outputs(calls: Calls, good: Flags) -> tuple[Column, bool]:
    known = ~np.isnan(calls.output_tokens) & (calls.output_tokens > 0)
    if _share(known, good) <= 0.5:
        return np.ones(len(calls)), False
    usual = float(np.median(calls.output_tokens[known & good]))
    return np.where(known, calls.output_tokens, usual), True


def _share(flags: Flags, among: Flags) -> float:
    return float(flags[among].mean()) if among.any() else 0.0
