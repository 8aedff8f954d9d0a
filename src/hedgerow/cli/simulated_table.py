"""Shows a simulation to a person: sent once, under the policy, sent twice, side by side, and what the policy's backups cost."""

from rich.table import Table

from hedgerow.analysis.figures import Baseline, Figures, Shares, Times
from hedgerow.units import format_share

__all__ = ["simulated_line", "simulated_table"]

UNKNOWN = "–"
QUANTILES = ("p50", "p90", "p95", "p99", "p999", "cvar99")
NAMES = {"p999": "p99.9", "cvar99": "slowest 1 %, mean"}


def simulated_table(figures: Figures) -> Table:
    """One column each for none, the policy and twice, and the policy's share of what twice gains."""
    table = Table()
    table.add_column("simulated seconds", no_wrap=True)
    for name in ("none", figures.policy, "twice", "share of gain"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in _times("full response", figures.full_response, figures.baseline, figures.gain_share):
        table.add_row(*row)
    table.add_section()
    for row in _times("first token", figures.first_token, figures.baseline_first_token, figures.gain_share_first_token):
        table.add_row(*row)
    table.add_section()
    for label, value in _rates(figures):
        table.add_row(label, "", value, "", "")
    return table


def simulated_line(figures: Figures, *, stream: bool) -> str:
    """One sentence on what the policy is worth, or that it is worth nothing here. stream: callers wait for the first token."""
    what, share = ("first-token p99", figures.gain_share_first_token) if stream else ("p99", figures.gain_share)
    baseline, got = (
        (figures.baseline_first_token, figures.first_token) if stream else (figures.baseline, figures.full_response)
    )
    before_s, after_s = baseline.none.p99, got.p99
    if share.p99 is None or before_s is None or after_s is None:
        return f"Sending everything twice does not shorten the {what} here: there is no tail that a backup could cut."
    return (
        f"Simulated: {figures.policy} moves the {what} from {before_s:.2f} s to {after_s:.2f} s, {share.p99:.0%} of what sending "
        f"everything twice gains, for at most {format_share(figures.extra_cost.high)} of extra cost."
    )


def _times(label: str, got: Times, baseline: Baseline, shares: Shares) -> list[tuple[str, ...]]:
    return [
        (
            f"{label} {NAMES.get(quantile, quantile)}",
            *(_time(getattr(each, quantile)) for each in (baseline.none, got, baseline.twice)),
            format_share(getattr(shares, quantile, None)),
        )
        for quantile in QUANTILES
    ]


def _rates(figures: Figures) -> list[tuple[str, str]]:
    cost = figures.extra_cost
    between = UNKNOWN if cost.low is None or cost.high is None else f"{100 * cost.low:.1f}–{100 * cost.high:.1f} %"
    return [
        ("requests", f"{figures.n:,}"),
        ("requests failed", f"{figures.failed:,}"),
        ("requests with a backup", format_share(figures.backup_rate)),
        ("backups per request", f"{figures.backups_per_request:.3f}"),
        ("backups that won", format_share(figures.win_rate)),
        ("losing backups per request", f"{figures.losing_backup_rate:.3f}"),
        ("extra cost", between),
    ]


def _time(seconds: float | None) -> str:
    return UNKNOWN if seconds is None else f"{seconds:.2f}"
