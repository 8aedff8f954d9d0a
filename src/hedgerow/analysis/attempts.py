"""Attempt-level data: one row per attempt, read from Parquet or CSV (docs/reference/attempts.md).

Token j (from 1) of an attempt arrives at ttft_s + (j-1)·token_s, later by stall_s if j > stall_after_tokens; the attempt ends
at ttft_s + output_tokens·token_s + stall_s, or at ttft_s with an error if its status is not 200.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from hedgerow.errors import SettingError

__all__ = ["NEEDED", "Row", "Sent", "load_attempts", "sents_of"]

NEEDED = (
    "request",
    "attempt",
    "start_s",
    "input_tokens",
    "output_tokens",
    "ttft_s",
    "token_s",
    "stall_after_tokens",
    "stall_s",
)
OPTIONAL = {"status": 200, "phase": None, "model": None, "price_in": 1.0, "price_out": 4.0}
NO_TIME_S = 1e-9


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

    def arrival_s(self, token: int) -> float:
        """When its token number `token` (from 1) arrives."""
        return self.ttft_s + (token - 1) * self.token_s + (self.stall_s if token > self.stall_after else 0.0)

    def tokens_by(self, age_s: float) -> int:
        """How many tokens have arrived by this age."""
        if self.status != 200 or age_s < self.ttft_s:
            return 0
        before = min(self.stall_after, self._even(age_s - self.ttft_s))
        return min(self.output_tokens, max(before, self._even(age_s - self.ttft_s - self.stall_s)))

    def _even(self, elapsed_s: float) -> int:
        """Tokens so long after the first one, without a stall."""
        if elapsed_s < 0:
            return 0
        return self.output_tokens if self.token_s <= 0 else int(elapsed_s / self.token_s + NO_TIME_S) + 1


@dataclass(frozen=True, slots=True)
class Sent:
    """One request and what each attempt of it would do."""

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


def load_attempts(path: str | Path) -> list[Sent]:
    """The requests of a file, in order of arrival. Raises SettingError naming the file and what is missing in it."""
    import duckdb

    path = Path(path)
    if not path.exists():
        raise SettingError("ATTEMPTS", str(path), "an existing Parquet or CSV file")
    source = "read_parquet" if path.suffix == ".parquet" else "read_csv"
    with duckdb.connect(config={"autoinstall_known_extensions": False}) as base:
        try:
            relation = base.sql(f"select * from {source}(?) order by request, attempt", params=[str(path)])
            columns = {name: relation.select(f'"{name}"').fetchall() for name in relation.columns}
        except duckdb.Error as error:
            raise SettingError(
                "ATTEMPTS", str(path), "attempt-level Parquet or CSV", fix=str(error).splitlines()[0]
            ) from None
    return sents_of({name: [value for (value,) in values] for name, values in columns.items()}, where=str(path))


def sents_of(columns: dict[str, list], *, where: str = "attempts") -> list[Sent]:  # pyright: ignore
    """Requests from columns that are sorted by request and attempt."""
    missing = [name for name in NEEDED if name not in columns]
    if missing:
        raise SettingError(
            "columns", ", ".join(columns), f"at least {', '.join(NEEDED)}", fix=f"add {', '.join(missing)}", where=where
        )
    n = len(columns["request"])
    full = {name: columns.get(name, [default] * n) for name, default in OPTIONAL.items()} | {
        k: columns[k] for k in NEEDED
    }
    rows = map(
        Row,
        map(float, full["ttft_s"]),
        map(float, full["token_s"]),
        map(int, full["output_tokens"]),
        (
            min(max(1, int(after)), int(out))
            for after, out in zip(full["stall_after_tokens"], full["output_tokens"], strict=True)
        ),
        map(float, full["stall_s"]),
        map(int, full["status"]),
    )
    return sorted(_requests(full, list(rows)), key=lambda sent: sent.start_s)


def _requests(full: dict[str, list], rows: list[Row]) -> Iterable[Sent]:  # pyright: ignore
    number, first = full["request"], 0
    for end in range(1, len(rows) + 1):
        if end == len(rows) or number[end] != number[first]:
            yield Sent(
                float(full["start_s"][first]),
                int(full["input_tokens"][first]),
                float(full["price_in"][first]),
                float(full["price_out"][first]),
                full["model"][first],
                full["phase"][first],
                tuple(rows[first:end]),
            )
            first = end
