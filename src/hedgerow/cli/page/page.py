"""Puts the page together."""

from collections.abc import Sequence
from importlib.resources import files

from hedgerow.analysis.describe.analyze import Analysis
from hedgerow.analysis.whatif.run import KeyWhatIf
from hedgerow.cli.page.analysis_part import analysis_part, problems_part
from hedgerow.cli.page.figures import count
from hedgerow.cli.page.html import Html, element, joined
from hedgerow.cli.page.whatif_part import whatif_part

__all__ = ["page_of"]


def page_of(*, analysis: Analysis | None = None, found: Sequence[KeyWhatIf] = ()) -> str:
    """A whole page about an analysis, or about what-ifs."""
    title = "The tail of these LLM calls" if analysis is not None else "What a backup would have gained"
    style = files("hedgerow.cli.page").joinpath("page.css").read_text(encoding="utf-8")
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", f"{title} – hedgerow"),
        element("style", Html(style)),
    )
    body = element("body", element("main", element("h1", title), *_parts(analysis, found)), _footer(analysis))
    return "<!DOCTYPE html>\n" + element("html", head, body, lang="en")


def _parts(analysis: Analysis | None, found: Sequence[KeyWhatIf]) -> list[Html | None]:
    if analysis is not None:
        return [element("p", _lead(analysis), class_="lead"), problems_part(analysis), analysis_part(analysis)]
    worth = sum(each.verdict.worth for each in found)
    lead = f"{count(sum(each.report.n for each in found))} calls of {len(found)} keys; {worth} worth hedging."
    return [element("p", lead, class_="lead"), whatif_part(found)]


def _lead(analysis: Analysis) -> str:
    flagged = sum(key.flagged for key in analysis.keys)
    left_out = sum(analysis.problems.rejected.values())
    rows = f"{count(analysis.rows_read)} calls of {len(analysis.keys)} keys"
    rest = f", {count(left_out)} rows left out" if left_out else ""
    return f"{rows}{rest}; {flagged} keys have a p99 of 5 × their median or more."


def _footer(analysis: Analysis | None) -> Html:
    kind = "Measured" if analysis is not None else "Simulated by hedgerow's own race machine over recorded calls"
    return element(
        "footer", joined(f"{kind}; how figures are made: docs/concepts/what-if.md in hedgerow's documentation.")
    )
