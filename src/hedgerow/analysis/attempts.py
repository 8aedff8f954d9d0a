"""Attempt-level data: one row per attempt, read from Parquet or CSV (docs/reference/attempts.md).

Token j (from 1) of an attempt arrives at ttft_s + (j-1)·token_s, later by stall_s if j > stall_after_tokens; the attempt ends
at ttft_s + output_tokens·token_s + stall_s, or at ttft_s with an error if its status is not 200.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, cast

from hedgerow.errors import SettingError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["NO_TIME_S", "Loaded", "Row", "Sent", "load_attempts", "sents_of"]

# Columns of numbers, and the least and most each may be.
NUMBERS: dict[str, tuple[float, float]] = {
    "attempt": (0, 1000),
    "start_s": (-inf, inf),
    "input_tokens": (0, inf),
    "output_tokens": (0, inf),
    "ttft_s": (0, inf),
    "token_s": (0, inf),
    "stall_after_tokens": (0, inf),
    "stall_s": (0, inf),
    "status": (100, 599),
    "price_in": (0, inf),
    "price_out": (0, inf),
}
DEFAULTS: dict[str, float] = {"status": 200, "price_in": 1.0, "price_out": 4.0}
WHOLE = ("attempt", "input_tokens", "output_tokens", "stall_after_tokens", "status")
NEEDED = ("request", *(name for name in NUMBERS if name not in DEFAULTS))
NAMES = ("phase", "model")
MOST_TOKENS = 10_000_000
NO_TIME_S = 1e-6  # what is due within this has come: at 10⁹ s of the data's clock floats are 10⁻⁷ s apart


@dataclass(frozen=True, slots=True)
class Row:
    """What one attempt does, seconds after its own start."""

    ttft_s: float
    token_s: float
    output_tokens: int
    stall_after: int
    stall_s: float
    status: int

    @property
    def ends_s(self) -> float:
        """When its answer is complete, or its failure arrives."""
        return self.ttft_s + (self.output_tokens * self.token_s + self.stall_s if self.status == 200 else 0.0)

    @property
    def pause_s(self) -> float:
        """The longest time between two tokens."""
        return self.token_s + (self.stall_s if self.stall_after < self.output_tokens else 0.0)

    def arrival_s(self, token: int) -> float:
        """When its token number `token` (from 1) arrives."""
        return self.ttft_s + (token - 1) * self.token_s + (self.stall_s if token > self.stall_after else 0.0)

    def tokens_by(self, age_s: float) -> int:
        """How many tokens have arrived by this age."""
        elapsed_s = age_s - self.ttft_s + NO_TIME_S
        if self.status != 200 or elapsed_s < 0:
            return 0
        before = min(self.stall_after, self._even(elapsed_s))
        return min(self.output_tokens, max(before, self._even(elapsed_s - self.stall_s)))

    def _even(self, elapsed_s: float) -> int:
        """Tokens so long after the first one, without a stall."""
        if elapsed_s < 0:
            return 0
        return self.output_tokens if self.token_s <= 0 else int(elapsed_s / self.token_s) + 1


@dataclass(frozen=True, slots=True)
class Sent:
    """One request and what each attempt of it would do. Prices per token."""

    start_s: float
    input_tokens: int
    price_in: float
    price_out: float
    model: str | None
    phase: object
    rows: tuple[Row, ...]

    def cost(self, output_tokens: float) -> float:
        """What an attempt costs that answers with so many tokens."""
        return self.price_in * self.input_tokens + self.price_out * output_tokens


@dataclass(frozen=True, slots=True)
class Loaded:
    """A file's requests in order of arrival, and whether it names phases."""

    sents: list[Sent]
    has_phases: bool


def load_attempts(path: str | Path) -> Loaded:
    """Read a file of attempts, in any order. Raises SettingError naming the file and, where it can, column and row (from 1,
    the head of a CSV not counted); ImportError without the extra `analysis`."""
    import duckdb

    path = Path(path)
    if not path.is_file():
        raise SettingError("ATTEMPTS", str(path), "an existing Parquet or CSV file")
    source = "read_parquet" if path.suffix in (".parquet", ".pq") else "read_csv"
    with duckdb.connect(config={"autoinstall_known_extensions": False}) as base:
        try:
            base.execute(
                f"create temp view attempts as select row_number() over () as row_, * from {source}('{_quoted(path)}')"
            )
            columns = _columns(base, str(path))
        except duckdb.Error as error:
            allowed = "attempt-level data in Parquet or CSV"
            raise SettingError("ATTEMPTS", str(path), allowed, fix=str(error).splitlines()[0]) from None
    return Loaded(sents_of(columns, where=str(path)), "phase" in columns)


def sents_of(columns: Mapping[str, Sequence[object]], *, where: str = "attempts") -> list[Sent]:
    """Requests in order of arrival, from columns that are sorted by request and attempt. `row_` holds the numbers the rows
    have in error messages; else they count from 1. Raises SettingError naming column and row."""
    _refuse_missing(columns, where)
    n = len(columns["request"])
    if not n:
        raise SettingError("ATTEMPTS", "no rows", "at least one attempt", where=where)
    places = columns.get("row_") or range(1, n + 1)
    numbers = {
        name: _numbers(name, columns[name], _Places(where, places)) if name in columns else [DEFAULTS[name]] * n
        for name in NUMBERS
    }
    _refuse_empty_answers(numbers["output_tokens"], numbers["status"], _Places(where, places))
    names = {name: columns.get(name) or [None] * n for name in NAMES}
    tokens = [int(count) for count in numbers["output_tokens"]]
    rows = [
        Row(ttft_s, token_s, output, min(max(1, int(after)), output), stall_s, int(status))
        for ttft_s, token_s, output, after, stall_s, status in zip(
            numbers["ttft_s"],
            numbers["token_s"],
            tokens,
            numbers["stall_after_tokens"],
            numbers["stall_s"],
            numbers["status"],
            strict=True,
        )
    ]
    found = _requests(columns["request"], numbers, names, rows, _Places(where, places))
    return sorted(found, key=lambda sent: sent.start_s)


@dataclass(frozen=True, slots=True)
class _Places:
    """What rows are called in messages."""

    where: str
    rows: Sequence[object]

    def __getitem__(self, index: int) -> str:
        return f"{self.where}, row {self.rows[index]}"


def _columns(base: "DuckDBPyConnection", where: str) -> dict[str, list[object]]:
    """The columns we know, sorted; what is no number where one should be stays as it is, to be shown."""
    relation = base.sql("from attempts")
    present = set(relation.columns)
    _refuse_missing(present, where)
    wanted = ["row_", "request", *(name for name in (*NUMBERS, *NAMES) if name in present)]
    listed = ", ".join(f'"{name}"' for name in wanted)
    rows = base.sql(f'select {listed} from attempts order by "request", try_cast("attempt" as double), row_').fetchall()
    values = list(zip(*rows, strict=True)) if rows else [()] * len(wanted)
    return {name: list(value) for name, value in zip(wanted, values, strict=True)}


def _quoted(path: Path) -> str:
    """A path as SQL text. A view takes no parameters."""
    return str(path).replace("'", "''")


def _refuse_missing(present: Iterable[str], where: str) -> None:
    present = list(present)
    missing = [name for name in NEEDED if name not in present]
    if missing:
        found = ", ".join(name for name in present if name != "row_")
        allowed = f"at least {', '.join(NEEDED)}"
        raise SettingError("columns", found, allowed, fix=f"add {', '.join(missing)}", where=where)


def _numbers(name: str, values: Sequence[object], places: _Places) -> list[float]:
    low, high = NUMBERS[name]
    high = min(high, MOST_TOKENS) if name in WHOLE else high
    found: list[float] = []
    for index, value in enumerate(values):
        try:
            number = float(cast(float, value))
        except (TypeError, ValueError):
            number = inf
        if not isfinite(number) or not low <= number <= high or (name in WHOLE and number % 1):
            raise SettingError(name, value, _allowed(name, low, high), where=places[index])
        found.append(number)
    return found


def _refuse_empty_answers(output_tokens: Sequence[float], status: Sequence[float], places: _Places) -> None:
    """A failed attempt may have no tokens; an answer without any has neither first token nor pace."""
    for index, (count, code) in enumerate(zip(output_tokens, status, strict=True)):
        if count < 1 and code == 200:
            allowed = "a whole number ≥ 1 where status is 200"
            raise SettingError("output_tokens", int(count), allowed, where=places[index])


def _allowed(name: str, low: float, high: float) -> str:
    kind = "a whole number" if name in WHOLE else "a number"
    if low == -inf:
        return kind
    return f"{kind} ≥ {low:g}" if high == inf else f"{kind} from {low:g} to {high:,.0f}"


def _requests(
    request: Sequence[object],
    numbers: Mapping[str, Sequence[float]],
    names: Mapping[str, Sequence[object]],
    rows: list[Row],
    places: _Places,
) -> Iterable[Sent]:
    first = 0
    for index in range(1, len(rows) + 1):
        expected = index - 1 - first
        if numbers["attempt"][index - 1] != expected:
            raise SettingError(
                "attempt",
                int(numbers["attempt"][index - 1]),
                f"{expected}: the attempts of a request are numbered 0, 1, 2…, each once",
                where=places[index - 1],
            )
        if index == len(rows) or request[index] != request[first]:
            model = names["model"][first]
            yield Sent(
                numbers["start_s"][first],
                int(numbers["input_tokens"][first]),
                numbers["price_in"][first],
                numbers["price_out"][first],
                None if model is None else str(model),
                names["phase"][first],
                tuple(rows[first:index]),
            )
            first = index
