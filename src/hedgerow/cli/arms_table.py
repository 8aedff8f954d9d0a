"""Shows a comparison of arms to a person: a table, the proof in one line, and one sentence on what it comes to."""

from collections.abc import Callable, Mapping

from rich.table import Table

from hedgerow.replay.arms import BASELINE, PRIORITY
from hedgerow.replay.paired import Difference
from hedgerow.replay.proof import Proof
from hedgerow.replay.result import ArmResult, Comparison
from hedgerow.sandbox.profiles import Profile
from hedgerow.units import format_seconds, format_share

__all__ = ["arms_table", "priority_note", "proof_line", "verdict"]

Row = tuple[str, Callable[[ArmResult], str]]
UNKNOWN = "–"
ASSUMED = "*"
# A gain that may be smaller than this share of the p99 is not told from the timing of this machine.
FAINT = 0.01


def arms_table(comparison: Comparison, base_cost_usd: float) -> Table:
    """One column for each arm. base_cost_usd: what the baseline cost, which extra costs are a share of."""
    table = Table()
    table.add_column("provider seconds", no_wrap=True)
    for arm in comparison.arms:
        heading = f"{arm.arm}{ASSUMED}" if arm.arm == PRIORITY else arm.arm
        table.add_column(heading, justify="right", no_wrap=True)
    differences = {difference.arm: difference for difference in comparison.paired}
    for rows in (_times(), _backups(), _money(base_cost_usd), _paired(differences)):
        for label, cell in rows:
            table.add_row(label, *(cell(arm) for arm in comparison.arms))
        table.add_section()
    return table


def priority_note(profile: Profile, *, replayed: bool) -> str:
    """What the arm `priority` rests on. replayed: its times are those of recorded calls, as of every arm."""
    price, priority = f"price {profile.prices.priority_ratio:g} ×", profile.priority
    if replayed or (priority.trouble_ratio, priority.speed_ratio) == (1, 1):
        latency = "latency as of the standard tier, for want of figures"
    else:
        latency = f"latency assumed (trouble {priority.trouble_ratio:g} ×, times {priority.speed_ratio:g} ×)"
    return f"{ASSUMED} {PRIORITY}: {latency}, {price}; see docs/reference/demo.md"


def proof_line(proof: Proof) -> str:
    """What the sandbox saw of the promise that losers are stopped."""
    ratio = UNKNOWN if proof.answers_per_request is None else f"{proof.answers_per_request:.6g}"
    return (
        f"Proof, from the sandbox's own counters: {ratio} answers per request, "
        f"{proof.losers_closed:,} losers closed, {proof.losers_open:,} still open."
    )


def verdict(comparison: Comparison, arm: str, base_cost_usd: float) -> str:
    """One sentence on what `arm` did for the p99, and an honest one where that is not certain to be a gain."""
    results: Mapping[str, ArmResult] = {result.arm: result for result in comparison.arms}
    difference = next((each for each in comparison.paired if each.arm == arm), None)
    before_s, after_s = results[BASELINE].full_response.p99, results[arm].full_response.p99
    if difference is None or difference.interval is None or before_s is None or after_s is None:
        return f"Nothing can be said about {arm}: too few calls were answered."
    if not results[arm].backups.sent:
        return f"Nothing can be said about {arm}: it sent no backup in {results[arm].n:,} calls; try more requests."
    low_s, high_s = difference.interval
    moved = f"the p99 from {format_seconds(before_s)} to {format_seconds(after_s)}"
    price = f"for {_extra_percent(results[arm], base_cost_usd)} % of extra cost"
    interval = f"95 % interval of the difference {low_s:+.2f} to {high_s:+.2f} s"
    if high_s < -FAINT * before_s:
        return f"{arm} cut {moved}, {1 - after_s / before_s:.0%} less, {price} ({interval})."
    if low_s > FAINT * before_s:
        return f"Hedging hurt here: {arm} raised {moved} {price} ({interval})."
    return (
        f"Hedging is not shown to help here: {arm} moved {moved} {price}, which may as well be chance ({interval}); "
        "more requests would tell."
    )


def _times() -> list[Row]:
    rows: list[Row] = []
    # p99.9 too: an arm that leaves hangs to fewer than one call in a hundred shows no trace of them in its p99.
    for share in ("p50", "p90", "p95", "p99", "p99.9"):
        key = share.replace(".", "")
        rows.append((f"full response {share}", lambda arm, key=key: _time(getattr(arm.full_response, key))))
    for share in ("p50", "p99"):
        rows.append((f"first token {share}", lambda arm, share=share: _time(getattr(arm.first_token, share))))
    return rows


def _backups() -> list[Row]:
    def win_rate(arm: ArmResult) -> str:
        return format_share(arm.backups.won / arm.backups.sent if arm.backups.sent else None)

    return [
        ("calls answered", lambda arm: f"{arm.n - arm.errors:,}"),
        ("calls failed", lambda arm: f"{arm.errors:,}"),
        ("backups per call", lambda arm: f"{arm.backups.sent / arm.n:.3f}"),
        ("backups that won", win_rate),
    ]


def _money(base_cost_usd: float) -> list[Row]:
    def per_thousand(arm: ArmResult) -> str:
        return UNKNOWN if arm.cost_per_call.mean is None else f"{1000 * arm.cost_per_call.mean:.4f}"

    def extra(arm: ArmResult) -> str:
        return UNKNOWN if arm.arm == BASELINE else _extra_percent(arm, base_cost_usd)

    def saved(arm: ArmResult) -> str:
        ratio = arm.p99_seconds_saved_per_usd
        return UNKNOWN if ratio is None else f"{round(ratio):,}"

    return [
        ("extra cost, %", extra),
        ("$ per 1,000, high", per_thousand),
        ("p99 s saved per $", saved),
    ]


def _paired(differences: Mapping[str, Difference]) -> list[Row]:
    def by(arm: ArmResult) -> str:
        difference = differences.get(arm.arm)
        return UNKNOWN if difference is None else _signed(difference.p99_difference_s)

    def end(arm: ArmResult, which: int) -> str:
        difference = differences.get(arm.arm)
        return UNKNOWN if difference is None or difference.interval is None else _signed(difference.interval[which])

    return [
        (f"p99 less {BASELINE}'s", by),
        ("  95 % interval from", lambda arm: end(arm, 0)),
        ("  to", lambda arm: end(arm, 1)),
    ]


def _time(seconds: float | None) -> str:
    return UNKNOWN if seconds is None else f"{seconds:.2f}"


def _signed(seconds: float | None) -> str:
    return UNKNOWN if seconds is None else f"{seconds:+.2f}"


def _extra_percent(arm: ArmResult, base_cost_usd: float) -> str:
    if not base_cost_usd:
        return UNKNOWN
    low, high = (f"{100 * usd / base_cost_usd:.1f}" for usd in (arm.extra.low_usd, arm.extra.high_usd))
    return low if low == high else f"{low}–{high}"
