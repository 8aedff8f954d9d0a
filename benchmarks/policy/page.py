"""Writes what was measured as a page of the reference."""

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Line", "page"]

HEAD = """<!-- written by benchmarks/policy/figures.py -->
# Figures of the default policy

Simulated: {requests:,} requests of each workload and seed ({seeds}), by the race machine and the rule that run live, in virtual
time. No constant of the rule was chosen on these seeds. Buffered callers whose answers are streamed upstream, unless the row
says otherwise; cold start included. Share = part of what sending everything twice gains; cost = extra cost in per cent, losers
billed in full. Rule of the first notes = the rule as it was first written down, before its constants and its judgement of stalls
after the first token were changed; an independent program runs it on the same requests, without phases.

The workloads draw stalls of the shape the rule looks for, one pace per attempt, and latencies that do not react to load: trust
orders and ratios, not digits. `make bench-policy` makes this page anew.
"""


@dataclass(frozen=True, slots=True)
class Line:
    """One figure. cells: (value, note) of the product, then of the rule of the first notes. good, best: what passes, what is
    excellent, None = no bar is set. less: smaller is better."""

    label: str
    unit: str
    cells: list[tuple[float, str]]
    good: float | None
    best: float | None
    less: bool = False

    @property
    def verdict(self) -> str:
        """How the product fares."""
        value, good, best = self.cells[0][0], self.good, self.best
        if good is None or best is None:
            return "–"
        if self.less:
            return "excellent" if value <= best else "pass" if value <= good else "**missed**"
        return "excellent" if value >= best else "pass" if value >= good else "**missed**"


def page(
    lines: Sequence[Line],
    baselines: Sequence[tuple[str, list[tuple[float, float]]]],
    seeds: Sequence[int],
    requests: int,
) -> str:
    """The page's text."""
    parts = [HEAD.format(requests=requests, seeds=", ".join(map(str, seeds)))]
    parts += ["| | product | | pass | excellent | rule of the first notes |", "|---|---|---|---|---|---|"]
    for line in lines:
        product, reference = (f"{_number(value)} {note}".strip() for value, note in line.cells)
        label = f"{line.label}, {line.unit}" if line.unit else line.label
        bars = [_bar(line.good, less=line.less), _bar(line.best, less=line.less)]
        parts.append(f"| {label} | {product} | {line.verdict} | {bars[0]} | {bars[1]} | {reference} |")
    parts += ["", "Fan-out is not measured: phases are not simulated yet.", "", "## Beside other policies", ""]
    parts += ["Share of the p99 gain, % (extra cost, %), buffered callers.", "", "| | O | G | S |", "|---|---|---|---|"]
    for name, cells in baselines:
        parts.append(f"| {name} | " + " | ".join(f"{round(share)} ({cost:.1f})" for share, cost in cells) + " |")
    return "\n".join(parts) + "\n"


def _number(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 20 and value % 1 == 0 else f"{value:.1f}"


def _bar(value: float | None, *, less: bool) -> str:
    return "–" if value is None else f"{'≤' if less else '≥'} {value:g}"
