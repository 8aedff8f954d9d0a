"""Counts what arrived and how it ended, and what it is charged: the figures of /_sandbox/stats.

Beside the stable keys each case's entry has `input_tokens`, `planned_tokens` (what the whole answer would have had),
`billed_usd` and `service_tier`, so that an account can be checked to the cent, and `due_s`, so that a test can tell an answer
that is late from a provider that is.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

from hedgerow.sandbox.profiles import Prices

__all__ = ["BILLS", "Bill", "Entry", "Meter", "Outcome"]

Bill = Literal["so_far", "full", "none"]
Outcome = Literal["completed", "disconnected", "failed"]
BILLS: tuple[Bill, ...] = ("so_far", "full", "none")


@dataclass(slots=True, kw_only=True, eq=False)
class Entry:
    """One request while it is answered and after. Times are the server's provider seconds; `outcome` None = in flight.

    `tokens` and `bytes` are what has been written of the answer: tokens over all choices, bytes of the body. `due_s`: when it
    goes on; None while it awaits other arrivals, and when it is over.
    """

    arrived_s: float
    input_tokens: int
    planned_tokens: int
    service_tier: str
    ended_s: float | None = None
    outcome: Outcome | None = None
    tokens: int = 0
    bytes: int = 0
    billed_usd: float = 0.0
    due_s: float | None = None

    def as_dict(self) -> dict[str, object]:
        """JSON-ready, the contract's keys first."""
        return {
            "arrived_s": self.arrived_s,
            "ended_s": self.ended_s,
            "outcome": self.outcome,
            "tokens": self.tokens,
            "bytes": self.bytes,
            "input_tokens": self.input_tokens,
            "planned_tokens": self.planned_tokens,
            "service_tier": self.service_tier,
            "billed_usd": self.billed_usd,
            "due_s": self.due_s if self.outcome is None else None,
        }


class Meter:
    """All counters since the start or the last reset. One event loop only.

    A completed request is charged for its input and all its tokens; a disconnected one by `bill`: so_far = input and the
    tokens sent, full = input and the tokens it would have had, none = nothing. A failed one (error status, in-band error,
    cut) is charged so_far once a token was sent, else nothing.
    """

    def __init__(self, prices: Prices, bill: Bill) -> None:
        self._prices, self._bill = prices, bill
        self._books = _Books()

    def number_of(self, case: str | None) -> tuple[str, int]:
        """The part and number of the next arrival. Without a case the part is the server's own running number."""
        if case is None:
            return f"#{self._books.without_case}", 0
        return case.rpartition("/")[2], self.arrivals_of(case)

    def arrivals_of(self, case: str | None) -> int:
        """How many requests of a case have arrived; 1 without a case."""
        return 1 if case is None else len(self._books.cases.get(case, ()))

    def open(self, case: str | None, entry: Entry) -> None:
        """A request has arrived."""
        books = self._books
        books.started += 1
        books.input_tokens += entry.input_tokens
        books.in_flight.add(entry)
        if case is None:
            books.without_case += 1
        else:
            books.cases.setdefault(case, []).append(entry)

    def wrote(self, entry: Entry, *, tokens: int, body_bytes: int) -> None:
        """So much more of its answer has been written."""
        entry.tokens += tokens
        entry.bytes += body_bytes
        if entry in self._books.in_flight:
            self._books.output_tokens += tokens

    def close(self, entry: Entry, outcome: Outcome, ended_s: float) -> None:
        """It is over. Only the first call counts; a request from before a reset is not charged to the new books."""
        if entry.outcome is not None:
            return
        entry.outcome, entry.ended_s = outcome, ended_s
        entry.billed_usd = self._cost_usd(entry, outcome)
        if entry in self._books.in_flight:
            self._books.in_flight.remove(entry)
            self._books.outcomes[outcome] += 1
            self._books.billed_usd += entry.billed_usd

    def reset(self) -> None:
        """Forget everything, numbers of arrivals included."""
        self._books = _Books()

    def as_dict(self, case: str | None = None) -> dict[str, object]:
        """The JSON of /_sandbox/stats. Failed requests are what is left of `started`. case: the only one to list."""
        books = self._books
        cases = books.cases if case is None else {case: books.cases.get(case, [])}
        return {
            "started": books.started,
            "completed": books.outcomes["completed"],
            "disconnected": books.outcomes["disconnected"],
            "in_flight": len(books.in_flight),
            "input_tokens": books.input_tokens,
            "output_tokens": books.output_tokens,
            "billed_usd": books.billed_usd,
            "cases": {case: [entry.as_dict() for entry in entries] for case, entries in cases.items()},
        }

    def _cost_usd(self, entry: Entry, outcome: Outcome) -> float:
        tokens = entry.tokens
        if outcome == "disconnected" and self._bill == "full":
            tokens = entry.planned_tokens
        free = self._bill == "none" if outcome == "disconnected" else outcome == "failed" and not tokens
        return 0.0 if free else self._prices.cost_usd(entry.input_tokens, tokens, entry.service_tier)


@dataclass(slots=True)
class _Books:
    started: int = 0
    without_case: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    billed_usd: float = 0.0
    in_flight: set[Entry] = field(default_factory=set[Entry])
    outcomes: Counter[str] = field(default_factory=Counter[str])
    cases: dict[str, list[Entry]] = field(default_factory=dict[str, list[Entry]])
