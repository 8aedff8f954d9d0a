"""Runs one workload under a policy, or under the rule of the first notes, with outcomes of one kind for both.

Workloads and reference live outside this repository, in a folder given by a path.
"""

import importlib
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import ModuleType

import numpy as np

from hedgerow import Policy
from hedgerow.analysis.attempts import Sent, sents_of
from hedgerow.analysis.figures import Figures, figures_of
from hedgerow.analysis.foreseen import Outcome
from hedgerow.analysis.simulate import simulate

__all__ = ["Case", "Run", "Workbench"]

MODULES = ("workloads.py", "attempts.py", "reference.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One drawn workload. name: as workloads.py calls it."""

    name: str
    requests: int
    seed: int


@dataclass(frozen=True, slots=True)
class Run:
    """What became of a workload's requests, in order of arrival."""

    outcomes: list[Outcome]

    @property
    def figures(self) -> Figures:
        """As `hedgerow simulate` reports them."""
        return figures_of(self.outcomes, "")


class Workbench:
    """folder: where workloads.py and reference.py are. Raises FileNotFoundError if they are not."""

    def __init__(self, folder: Path) -> None:
        for module in MODULES:
            if not (folder / module).is_file():
                raise FileNotFoundError(f"no {module} in {folder}: give its folder")
        sys.path.insert(0, str(folder))
        self._workloads, self._attempts, self._reference = (_module(name) for name in MODULES)
        self.incident_s: tuple[float, float] = self._workloads.INCIDENT_S
        self.sents = lru_cache(maxsize=1)(self._draw)

    def product(self, case: Case, policy: Policy, *, stream: bool = False) -> Run:
        """The production rule."""
        return Run(simulate(self.sents(case), policy, stream=stream))

    def reference(self, case: Case, budget: float, *, stream: bool = False) -> Run:
        """The rule of the first notes, in a slow program that shares no code with the product. Phases are left out."""
        races = self._attempts.races(self._columns(case))
        for number, race in enumerate(races):
            race.phase = number
        rule = self._reference.policy_named(f"lag:{budget}")
        done = self._reference.simulate(races, rule, "first_token" if stream else "complete")
        return Run([_outcome_of(race, sent) for race, sent in zip(done, self.sents(case), strict=True)])

    def _draw(self, case: Case) -> list[Sent]:
        return sents_of({name: column.tolist() for name, column in self._columns(case).items()})

    def _columns(self, case: Case) -> dict[str, np.ndarray]:
        return self._workloads.draw(case.name, case.requests, case.seed)


def _module(file: str) -> ModuleType:
    return importlib.import_module(file.removesuffix(".py"))


def _outcome_of(race: object, sent: Sent) -> Outcome:
    launched_s: list[float] = race.launched_at  # type: ignore[attr-defined]
    decided_s, winner = race.done_at, race.winner  # type: ignore[attr-defined]
    losers = [attempt for attempt in range(len(launched_s)) if attempt != winner]
    return Outcome(sent, launched_s, dict.fromkeys(losers, decided_s), decided_s, winner, wanted=race.wanted)  # type: ignore[attr-defined]
