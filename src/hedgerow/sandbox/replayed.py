"""Plays rows of real calls back in their order: arrival 0 of part i meets row i, later arrivals its neighbours in time.

So copies of a request share what the provider was going through, which independent draws would not.
"""

import csv
import heapq
import statistics
import zlib
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from hedgerow.errors import SettingError
from hedgerow.sandbox.draws import Arrival, Draw

__all__ = ["ReplayedCalls", "load_calls"]

COLUMNS = ("provider", "model", "t_start", "ttft_s", "total_s", "output_tokens", "status")
# Where only one of the two times is known: a first token costs as much as this many later ones (575 ms against
# 11.5 ms in the openai-like profile).
FIRST_TOKEN_WORTH_TOKENS = 50
# The length of an answer where no row of its provider and model tells one.
USUAL_TOKENS = 60
MAX_DIGITS = 18


@dataclass(frozen=True, slots=True)
class _Row:
    group: tuple[str, str]
    t_start_s: float | None
    draw: Draw


class ReplayedCalls:
    """Rows as draws. Immutable after construction; may be shared."""

    def __init__(self, rows: list[_Row]) -> None:
        self._rows = rows
        self._groups: dict[tuple[str, str], list[int]] = defaultdict(list)
        for number, row in enumerate(rows):
            self._groups[row.group].append(number)
        self._without_time = {row.group for row in rows if row.t_start_s is None}

    def __len__(self) -> int:
        return len(self._rows)

    def row_of(self, arrival: Arrival) -> int:
        """The row (from 0) that an arrival meets.

        The part of the case id is the number of the row, modulo the rows there are; a part that is not a number is
        turned into one by its CRC-32. Arrival k takes the k-th nearest row of the same provider and model, by t_start,
        or by position in the file where a row of the model has none; equally near: the earlier. After the last it
        starts again.
        """
        text = arrival.part.removeprefix("#")
        is_number = text.isascii() and text.isdecimal() and len(text) <= MAX_DIGITS
        number = int(text) if is_number else zlib.crc32(arrival.part.encode())
        first = number % len(self._rows)
        group = self._groups[self._rows[first].group]
        rank = arrival.number % len(group)
        if rank == 0:
            return first
        return heapq.nsmallest(rank + 1, group, key=lambda other: self._distance(first, other))[rank]

    def draw(self, arrival: Arrival) -> Draw:
        """The attempt that this arrival meets."""
        return self._rows[self.row_of(arrival)].draw

    def _distance(self, first: int, other: int) -> tuple[bool, float, int]:
        here, there = self._rows[first], self._rows[other]
        if here.group in self._without_time or here.t_start_s is None or there.t_start_s is None:
            return other != first, abs(other - first), other
        return other != first, abs(there.t_start_s - here.t_start_s), other


def load_calls(path: Path) -> ReplayedCalls:
    """Reads a CSV with the columns source, provider, model, t_start, ttft_s, total_s, input_tokens, output_tokens, status.

    Times in seconds. Estimates where a field is empty: output_tokens is the median of its provider and model (60 if it
    has none); of ttft_s and total_s one follows from the other, a first token costing as much as 50 later ones. A status
    other than "ok" answers with the number in it (`error_429`: 429) if that is 400..599, else 500, after total_s.
    Raises SettingError with file and line.
    """
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            missing = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
            if missing:
                raise SettingError("columns", reader.fieldnames, ", ".join(COLUMNS), where=str(path))
            cells = [(f"{path}:{reader.line_num}", row) for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise SettingError("replay", str(path), "a CSV file", fix=f"it cannot be read: {error}") from None
    if not cells:
        raise SettingError("replay", str(path), "a CSV file with at least one row")
    lengths: dict[tuple[str, str], list[float]] = defaultdict(list)
    for where, row in cells:
        if tokens := _number(row, "output_tokens", where):
            lengths[_group(row)].append(tokens)
    return ReplayedCalls([_row(row, where, lengths.get(_group(row), [USUAL_TOKENS])) for where, row in cells])


def _row(row: dict[str, str], where: str, lengths: list[float]) -> _Row:
    status = _status(row.get("status") or "ok")
    first_s, total_s = _number(row, "ttft_s", where), _number(row, "total_s", where)
    tokens = round(_number(row, "output_tokens", where) or statistics.median(lengths)) or 1
    if status != 200:
        draw = Draw(first_token_s=total_s or first_s or 0.0, token_s=0.0, tokens=0, status=status)
        return _Row(_group(row), _number(row, "t_start", where), draw)
    later = max(1, tokens - 1)
    if first_s is None and total_s is None:
        raise SettingError("ttft_s", None, "seconds in ttft_s or total_s", where=where)
    if first_s is None:
        first_s = (total_s or 0.0) * FIRST_TOKEN_WORTH_TOKENS / (FIRST_TOKEN_WORTH_TOKENS + tokens - 1)
    token_s = first_s / FIRST_TOKEN_WORTH_TOKENS if total_s is None else max(0.0, total_s - first_s) / later
    draw = Draw(first_token_s=first_s, token_s=token_s, tokens=tokens)
    return _Row(_group(row), _number(row, "t_start", where), draw)


def _group(row: dict[str, str]) -> tuple[str, str]:
    return row["provider"] or "", row["model"] or ""


def _status(text: str) -> int:
    if text == "ok":
        return 200
    digits = text.rpartition("_")[2]
    return int(digits) if digits.isdecimal() and len(digits) == 3 and 400 <= int(digits) <= 599 else 500


def _number(row: dict[str, str], key: str, where: str) -> float | None:
    text = (row.get(key) or "").strip()
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e12:
        raise SettingError(key, text, "a number ≥ 0, or empty", where=where)
    return value
