"""Shows a what-if to a person: a row for each policy, its place on the frontier of cost and p99, and the verdict in words."""

from collections.abc import Iterator

from rich.box import SIMPLE_HEAD
from rich.table import Table

from hedgerow.analysis.whatif.figures import PolicyFigures
from hedgerow.analysis.whatif.run import KeyWhatIf
from hedgerow.cli.shown import shown

__all__ = ["frontier", "whatif_lines", "whatif_table"]

UNKNOWN = "–"
BAR_CELLS = 24
HEADINGS = ("first\ntoken", "\np50", "\np99", "back-\nups", "extra\ncost", "share\nof gain", "\n95 %")


def whatif_table(found: KeyWhatIf, *, wide: bool = False) -> Table:
    """The policies by what they cost; ● marks those that no other beats in both cost and p99. wide: with a bar for the p99."""
    title = f"{shown(found.report.name)}: {found.report.n:,} calls, simulated seconds"
    table = Table(title=title, box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("policy", no_wrap=True)
    for heading in HEADINGS:
        table.add_column(heading, justify="right", no_wrap=True)
    if wide:
        table.add_column("", no_wrap=True)
    best = frontier(found.policies)
    slowest = max((_p99(each) or 0.0 for each in found.policies), default=0.0)
    chosen = None if found.verdict.policy is None else found.verdict.policy.policy
    for each in sorted(found.policies, key=lambda figures: figures.extra_cost_high or 0.0):
        cells = [*_cells(each), *([_bar(_p99(each), slowest)] if wide else [])]
        mark = "●" if each.policy in best else " "
        table.add_row(f"{mark} {each.policy}", *cells, style="bold" if each.policy == chosen else None)
    return table


def frontier(policies: list[PolicyFigures]) -> set[str]:
    """The policies that no other one beats in both extra cost and p99."""
    known = [(each.extra_cost_high or 0.0, p99, each.policy) for each in policies if (p99 := _p99(each)) is not None]
    return {
        policy
        for cost, p99, policy in known
        if not any(c <= cost and p <= p99 and (c, p) != (cost, p99) for c, p, _ in known)
    }


def whatif_lines(found: KeyWhatIf) -> Iterator[str]:
    """The verdict, what it rests on, and the settings."""
    verdict = "[bold]worth it[/bold]" if found.verdict.worth else "not worth it"
    yield f"{shown(found.report.name)}: {verdict} — {shown(found.verdict.reason)}."
    if found.verdict.worth:
        for assumption in found.assumptions:
            yield f"  assumed: {shown(assumption)}"
    for each in found.repriced:
        tier = "" if each.tier is None else f" ({shown(each.tier)})"
        times = "at an unknown price" if each.usd is None else f"${each.usd:.4f}"
        ratio = "" if each.times is None else f", {each.times:.2f} × what they cost now"
        yield f"  the same tokens under {shown(each.model)}{tier}: {times}{ratio}"
    if found.toml is not None:
        yield found.toml.replace("[", "\\[")


def _cells(figures: PolicyFigures) -> list[str]:
    first, whole = figures.first_token, figures.full_response
    low, high, interval = figures.extra_cost_low, figures.extra_cost_high, figures.interval
    return [
        UNKNOWN if first is None else _seconds(first.p99),
        *((UNKNOWN, UNKNOWN) if whole is None else (_seconds(whole.p50), _seconds(whole.p99))),
        f"{figures.extra_requests:.1%}",
        UNKNOWN if low is None or high is None else f"{100 * low:.1f}–{100 * high:.1f} %",
        UNKNOWN if figures.gain_share_p99 is None else f"{figures.gain_share_p99:.0%}",
        UNKNOWN if interval is None else f"{100 * interval[0]:.0f}–{100 * interval[1]:.0f} %",
    ]


def _p99(figures: PolicyFigures) -> float | None:
    return None if figures.full_response is None else figures.full_response.p99


def _seconds(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.2f}"


def _bar(value: float | None, most: float) -> str:
    return "" if value is None or not most else "█" * max(1, round(BAR_CELLS * value / most))
