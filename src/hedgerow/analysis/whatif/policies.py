"""The policies a what-if compares, and how each is run over a log's calls."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.analysis.attempts import Sent
from hedgerow.analysis.calls import Column
from hedgerow.analysis.whatif.delays import rolling_quantile
from hedgerow.analysis.whatif.figures import Judge, PolicyFigures
from hedgerow.analysis.whatif.lag import by_lag, sents_of
from hedgerow.analysis.whatif.raced import Field, Raced, by_age, once, resent
from hedgerow.settings import Policy
from hedgerow.units import Window

__all__ = ["BUDGETS", "Contest", "Look", "lag_policies"]

BUDGETS = (0.02, 0.05, 0.10)
STRETCHES = 20  # of a log too long to run whole
FIXED_S = 2.0
RECENT = Window(requests=1000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """How closely to look. most_simulated: calls that the race machine runs per policy and assumption; twice: a second time,
    with the copies the other way round. window: what quantile delays look back on."""

    most_simulated: int = 80_000
    twice: bool = True
    window: Window = RECENT
    fixed_s: float = FIXED_S


class Contest:
    """All policies over one key's calls."""

    def __init__(self, field: Field, models: Sequence[str] | None, look: Look, rng: np.random.Generator) -> None:
        self.field, self.models, self.look, self.rng = field, models, look, rng
        self.fields = [field, field.swapped()]

    def run(self, policies: Sequence[tuple[str, Policy]]) -> list[PolicyFigures]:
        """The policies by age, then the given ones by the race machine."""
        none, twice = self._looks(once), self._looks(lambda field: by_age(field, np.zeros(len(field))))
        judge = Judge(self.field, none, twice, self.rng)
        found = [judge.figures("none", none), judge.figures("twice", twice)]
        found += [judge.figures(name, self._looks(how)) for name, how in self._by_age().items()]
        return found + self._by_machine(policies, judge)

    def sampled(self) -> int:
        """How many of the calls the race machine runs."""
        return min(len(self.field), self.look.most_simulated)

    def _looks(self, how: Callable[[Field], Raced]) -> list[Raced]:
        return [how(field) for field in self.fields]

    def _by_age(self) -> dict[str, Callable[[Field], Raced]]:
        whole, first = self.field.own.total_s, self.field.own.first_token_s
        p95, p90 = self._delay(whole, 0.95), self._delay(whole, 0.90)
        fixed = np.full(len(whole), self.look.fixed_s)
        ways: dict[str, Callable[[Field], Raced]] = {
            f"fixed:{self.look.fixed_s:g}": lambda field: by_age(field, fixed),
            "p95": lambda field: by_age(field, p95),
            "p95+200ms": lambda field: by_age(field, p95 + 0.2),
            "p90": lambda field: by_age(field, p90),
            "resend:p95": lambda field: resent(field, p95),
        }
        if self.field.own.first_token_known:
            first_p95 = self._delay(first, 0.95)
            ways["first_token:p95"] = lambda field: by_age(field, first_p95, of_first_token=True)
        return ways

    def _delay(self, values: Column, share: float) -> Column:
        return rolling_quantile(values, share, self.look.window, self.field.t_start)

    def _by_machine(self, policies: Sequence[tuple[str, Policy]], judge: Judge) -> list[PolicyFigures]:
        fields, models = self.fields if self.look.twice else self.fields[:1], self.models
        if self.sampled() < len(self.field):
            chosen = _stretches(len(self.field), self.look.most_simulated)
            fields = [self.field.part(chosen)]
            models = None if models is None else [models[int(place)] for place in chosen]
            judge = Judge(fields[0], [once(fields[0])], [by_age(fields[0], np.zeros(len(chosen)))], self.rng)
        even = [sents_of(field, None, models) for field in fields]
        gaps = [sents_of(field, self.rng, models) for field in fields]
        stream = self.field.own.first_token_known  # one look is enough: before the first token both assumptions agree
        return [
            judge.figures(name, _raced(gaps, policy, stream=False), _raced(even, policy, stream=stream))
            for name, policy in policies
        ]


def lag_policies() -> list[tuple[str, Policy]]:
    """The default rule at each of the budgets."""
    return [(f"lag:{budget:.2f}", Policy(budget=budget, upstream_stream=True)) for budget in BUDGETS]


def _raced(looks: Sequence[Sequence[Sent]], policy: Policy, *, stream: bool) -> list[Raced]:
    """Of one assumption; as streaming callers see it in the first look only."""
    return [by_lag(sents, policy, stream=stream and not number) for number, sents in enumerate(looks)]


def _stretches(n: int, most: int) -> NDArray[np.intp]:
    """Places of at most `most` of n calls, in evenly spread stretches of whole neighbourhoods."""
    length = most // STRETCHES
    starts = np.linspace(0, n - length, STRETCHES).astype(int)
    return (starts[:, None] + np.arange(length)[None, :]).ravel()
