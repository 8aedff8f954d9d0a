"""The intervals of a what-if against logs whose truth is known: every call was drawn with the copies it would have had.

By default 2 logs of 5,000 calls for each kind and two dependences; `make soak` takes 200 in all. The truth is what the
policies do to the drawn copies themselves, over many such logs: half a minute's work, so it is kept in known_truth.json. One
case is worked out anew each time, so that a changed rule shows; `make soak` works out all of them. To renew it:
`python -m tests.unit.analysis.whatif.test_known_truth`.
"""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from tests.calls_by_hand import calls_of
from tests.drawn_logs import KINDS, Drawn, draw

from hedgerow.analysis.attempts import Row, Sent
from hedgerow.analysis.simulate import simulate
from hedgerow.analysis.whatif.figures import PolicyFigures
from hedgerow.analysis.whatif.policies import Contest, Look
from hedgerow.analysis.whatif.raced import Prices
from hedgerow.analysis.whatif.run import field_of
from hedgerow.settings import Policy

CALLS, TRUTH_LOGS = 5000, 6
DEPENDENCES = (0.05, 0.2, 0.4)
CASES = [(kind, dependence) for kind in KINDS for dependence in DEPENDENCES]
FAR_APART = [(kind, dependence) for kind, dependence in CASES if dependence != DEPENDENCES[1]]
RULE = Policy(budget=0.05, upstream_stream=True)
LEAST_COVERED, WIDEST_MEDIAN = 0.9, 0.35
KEPT = Path(__file__).with_name("known_truth.json")


@dataclass(frozen=True)
class Estimate:
    kind: str
    dependence: float
    policy: str
    true_share: float
    share: float
    low: float
    high: float

    @property
    def covered(self) -> bool:
        return self.low <= self.true_share <= self.high


def raced_by_rule(drawn: Drawn) -> np.ndarray:
    """Each call's response under the rule, with the copies it really had."""
    columns = (drawn.first_s, drawn.token_s, drawn.tokens, drawn.stall_after, drawn.stall_s)
    sents = [
        Sent(
            float(drawn.start_s[call]),
            int(drawn.input_tokens[call]),
            1.0,
            4.0,
            None,
            None,
            tuple(
                Row(first, token, int(tokens), int(after), stall, 200)
                for first, token, tokens, after, stall in zip(
                    *(column[call].tolist() for column in columns), strict=True
                )
            ),
        )
        for call in range(len(drawn.start_s))
    ]
    return np.array([outcome.response_s for outcome in simulate(sents, RULE)], dtype=float)


def raced_at_p95(drawn: Drawn) -> np.ndarray:
    """A backup at the p95 of the last 1,000 calls."""
    own, copy = drawn.total_s(0), drawn.total_s(1)
    delay = np.array([np.quantile(own[max(0, at - 1000) : at], 0.95) if at >= 20 else np.inf for at in range(len(own))])
    return np.where(own > delay, np.minimum(own, delay + copy), own)


@cache
def kept() -> dict[str, dict[str, float]]:
    """What `truth` came to, by case."""
    return json.loads(KEPT.read_text("utf-8"))


def name_of(kind: str, dependence: float) -> str:
    return f"{kind} {dependence}"


def truth(kind: str, dependence: float) -> dict[str, float]:
    logs = [draw(KINDS[kind], CALLS, dependence, seed) for seed in range(10_000, 10_000 + TRUTH_LOGS)]

    def p99(seconds: list[np.ndarray]) -> float:
        return float(np.quantile(np.concatenate(seconds), 0.99))

    none = p99([log.total_s(0) for log in logs])
    twice = p99([np.minimum(log.total_s(0), log.total_s(1)) for log in logs])
    ways = {"lag:0.05": raced_by_rule, "p95": raced_at_p95}
    return {policy: (none - p99([way(log) for log in logs])) / (none - twice) for policy, way in ways.items()}


def estimated(kind: str, dependence: float, seed: int) -> list[Estimate]:
    """What the product makes of the log alone."""
    drawn, rng = draw(KINDS[kind], CALLS, dependence, seed), np.random.default_rng(seed)
    log = calls_of(
        drawn.total_s(0),
        ttft_s=drawn.first_s[:, 0],
        t_start=drawn.start_s,
        output_tokens=drawn.tokens[:, 0],
        input_tokens=drawn.input_tokens,
    )
    figures = Contest(field_of(log, Prices(1.0, 4.0), rng), None, Look(), rng).run([("lag:0.05", RULE)])
    return [
        _estimate(kind, dependence, each, kept()[name_of(kind, dependence)][each.policy])
        for each in figures
        if each.policy in ("lag:0.05", "p95")
    ]


def _estimate(kind: str, dependence: float, figures: PolicyFigures, true_share: float) -> Estimate:
    assert figures.interval is not None
    assert figures.gain_share_p99 is not None
    return Estimate(kind, dependence, figures.policy, true_share, figures.gain_share_p99, *figures.interval)


def judged(estimates: list[Estimate]) -> tuple[float, float, str]:
    """Share of intervals that cover, their median width, and all of it in words."""
    lines = [f"{len(estimates)} estimates"]
    for case in dict.fromkeys((each.kind, each.dependence, each.policy) for each in estimates):
        mine = [each for each in estimates if (each.kind, each.dependence, each.policy) == case]
        covered, width = sum(each.covered for each in mine), np.median([each.high - each.low for each in mine])
        mean = np.mean([each.share for each in mine])
        lines.append(
            f"{case}: true {mine[0].true_share:.3f}, mean {mean:.3f}, covered {covered}/{len(mine)}, width {width:.3f}"
        )
    covered_share = float(np.mean([each.covered for each in estimates]))
    width = float(np.median([each.high - each.low for each in estimates]))
    return covered_share, width, "\n".join([*lines, f"all: covered {covered_share:.3f}, median width {width:.3f}"])


def check(estimates: list[Estimate]) -> None:
    for policy in ("lag:0.05", "p95"):
        covered, width, said = judged([each for each in estimates if each.policy == policy])
        print(said)
        assert covered >= LEAST_COVERED, said
        assert width <= WIDEST_MEDIAN, said


@pytest.mark.timeout(600)
def test_the_true_share_of_the_gain_lies_inside_the_interval() -> None:
    check([each for kind, dependence in FAR_APART for seed in range(2) for each in estimated(kind, dependence, seed)])


@pytest.mark.parametrize(
    ("kind", "dependence"), [CASES[4], *(pytest.param(*case, marks=pytest.mark.soak) for case in CASES)]
)
def test_the_truth_that_is_kept_is_what_the_policies_do_to_the_drawn_copies(kind: str, dependence: float) -> None:
    assert kept()[name_of(kind, dependence)] == pytest.approx(truth(kind, dependence), abs=1e-9)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_the_true_share_lies_inside_the_interval_in_two_hundred_logs() -> None:
    counts = [23] * 2 + [22] * 7
    check(
        [
            each
            for (kind, dependence), count in zip(CASES, counts, strict=True)
            for seed in range(1000, 1000 + count)
            for each in estimated(kind, dependence, seed)
        ]
    )


if __name__ == "__main__":
    KEPT.write_text(json.dumps({name_of(*case): truth(*case) for case in CASES}, indent=2) + "\n", "utf-8")
