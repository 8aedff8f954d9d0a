"""The part of the page that shows what-ifs: simulated figures, the verdict first."""

from collections.abc import Sequence

from hedgerow.analysis.whatif.run import KeyWhatIf
from hedgerow.cli.page.charts import Dot, frontier_picture
from hedgerow.cli.page.figures import UNKNOWN, count, pair_range, seconds, share, usd
from hedgerow.cli.page.html import Html, element, joined, table
from hedgerow.cli.whatif_table import frontier

__all__ = ["whatif_part"]

HEAD = ["policy", "first token p99", "response p50", "p95", "p99", "backups", "extra cost", "share of the gain", "95 %"]


def whatif_part(found: Sequence[KeyWhatIf]) -> Html:
    """A section for each key that is worth hedging, then the others with their reasons."""
    worth = [each for each in found if each.verdict.worth]
    rest = [each for each in found if not each.verdict.worth]
    whole = rest if len(found) == 1 else []
    return joined(
        *(_section(each) for each in (*worth, *whole)),
        _refused(rest) if rest and not whole else None,
    )


def _section(found: KeyWhatIf) -> Html:
    worth = found.verdict.worth
    verdict = element(
        "div",
        element("b", "Worth it: ") if worth else element("strong", "Not worth it: "),
        found.verdict.reason + ".",
        class_="verdict worth" if worth else "verdict",
    )
    return element(
        "section",
        element("h2", str(found.report.name)),
        verdict,
        None if found.toml is None else joined(element("h3", "Settings to use"), element("pre", found.toml)),
        _picture(found),
        _policies(found),
        _assumed(found),
        _repriced(found),
    )


def _numbered(found: KeyWhatIf) -> list[tuple[int, str]]:
    by_cost = sorted(found.policies, key=lambda each: each.extra_cost_high or 0.0)
    return [(number, each.policy) for number, each in enumerate(by_cost, 1)]


def _picture(found: KeyWhatIf) -> Html | None:
    numbers = {policy: number for number, policy in _numbered(found)}
    best = frontier(found.policies)
    chosen = None if found.verdict.policy is None else found.verdict.policy.policy
    dots = [
        Dot(
            numbers[each.policy],
            each.extra_cost_low or 0.0,
            each.extra_cost_high or 0.0,
            each.full_response.p99,
            each.policy in best,
            each.policy == chosen,
        )
        for each in found.policies
        if each.full_response is not None and each.full_response.p99 is not None
    ]
    title = "p99 against extra cost, simulated; numbers as in the table, the line joins the policies that no other beats in both"
    return frontier_picture(dots, title) if dots else None


def _policies(found: KeyWhatIf) -> Html | None:
    if not found.policies:
        return None
    by_name = {each.policy: each for each in found.policies}
    chosen = None if found.verdict.policy is None else found.verdict.policy.policy
    rows, marked = list[list[str]](), set[int]()
    for number, policy in _numbered(found):
        each = by_name[policy]
        whole, interval = each.full_response, each.interval
        if policy == chosen:
            marked.add(number - 1)
        rows.append(
            [
                f"{number} · {policy}",
                UNKNOWN if each.first_token is None else seconds(each.first_token.p99),
                *(
                    UNKNOWN if whole is None else seconds(value)
                    for value in (whole and whole.p50, whole and whole.p95, whole and whole.p99)
                ),
                share(each.extra_requests, 1),
                pair_range(each.extra_cost_low, each.extra_cost_high, 100, 1, " %"),
                share(each.gain_share_p99),
                UNKNOWN if interval is None else pair_range(interval[0], interval[1], 100, 0, " %"),
            ]
        )
    said = "simulated, in seconds. Share of the gain: of what sending everything twice gains at the p99."
    caption = f"{count(found.report.n)} calls, {said}"
    return table(HEAD, rows, caption=caption, marked=frozenset(marked))


def _assumed(found: KeyWhatIf) -> Html | None:
    if not found.assumptions:
        return None
    said = element("ul", *(element("li", each) for each in found.assumptions))
    return element("details", element("summary", "What these figures rest on"), said)


def _repriced(found: KeyWhatIf) -> Html | None:
    if not found.repriced:
        return None
    rows = [
        [
            each.model if each.tier is None else f"{each.model} ({each.tier})",
            usd(each.usd),
            UNKNOWN if each.times is None else f"{each.times:.2f}",
        ]
        for each in found.repriced
    ]
    return table(
        ["the same tokens under", "USD", "× what they cost now"], rows, caption="Estimated from the price list"
    )


def _refused(rest: Sequence[KeyWhatIf]) -> Html:
    rows = [[str(each.report.name), count(each.report.n), each.verdict.reason] for each in rest]
    return element(
        "section",
        element("h2", "Not worth hedging"),
        element("div", table(["key", "calls", "why"], rows), class_="reasons"),
    )
