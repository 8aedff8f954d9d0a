"""`hedgerow whatif`: what each policy would have done to a log's calls and cost, and the settings to use, or "not worth it"."""

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Annotated

import orjson
import typer
from rich.console import Console

from hedgerow.cli import logs
from hedgerow.errors import SettingError
from hedgerow.units import parse_window

if TYPE_CHECKING:
    from hedgerow.analysis.whatif.run import KeyWhatIf, Options

__all__ = ["WhatIfOptions", "whatif"]

SHOWN_WHOLE = 3  # keys: of longer lists only those worth hedging get a table


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIfOptions(logs.LogOptions):
    """Options of `hedgerow whatif` alone."""

    pool: Annotated[bool, typer.Option("--pool", help="all calls as one key, backups at other providers")] = False
    within_provider: Annotated[
        bool, typer.Option("--within-provider", help="with --pool: backups at the same provider, other models")
    ] = False
    backup: Annotated[
        str | None,
        typer.Option(metavar="PROVIDER/MODEL", help="whose calls stand for backups; default the call's own key"),
    ] = None
    segments: Annotated[bool, typer.Option("--segments", help="each segment by itself")] = False
    hours: Annotated[bool, typer.Option("--hours", help="each hour of the day by itself, in --time-zone")] = False
    reprice: Annotated[
        list[str] | None,
        typer.Option(metavar="MODEL[/TIER]", help="what the same tokens would cost there; may be repeated"),
    ] = None
    window: Annotated[str, typer.Option(help='what quantile delays look back on: calls, or a time such as "7d"')] = (
        "1000"
    )
    fixed_s: Annotated[float, typer.Option(min=0.0, help="delay of the fixed policy, seconds")] = 2.0
    seed: Annotated[int, typer.Option(min=0, help="of every draw")] = 1

    def asked(self) -> "Options":
        """What is asked of the log. Raises SettingError."""
        from hedgerow.analysis.whatif.policies import Look
        from hedgerow.analysis.whatif.reprice import Elsewhere
        from hedgerow.analysis.whatif.run import Options

        if self.within_provider and not self.pool:
            raise SettingError("--within-provider", True, "together with --pool")
        if self.hours and (self.segments or self.pool):
            raise SettingError("--hours", True, "without --segments and --pool")
        if not 0 <= self.fixed_s < inf:
            raise SettingError("--fixed-s", self.fixed_s, "seconds ≥ 0")
        window = parse_window(int(self.window) if self.window.isdigit() else self.window, name="--window")
        return Options(
            question=self.question(),
            look=Look(window=window, fixed_s=self.fixed_s),
            backup=None if self.backup is None else logs.key_named(self.backup),
            same_provider=self.within_provider,
            by_segment=self.segments or self.hours,
            reprice=tuple(Elsewhere.parse(each) for each in self.reprice or ()),
            seed=self.seed,
        )


def whatif(options: WhatIfOptions) -> None:
    """What each policy would have done to these calls, with intervals; the settings to use, or "not worth it" and why."""
    with logs.saying_what_is_missing("whatif"):
        from hedgerow.analysis.whatif.run import what_if, what_if_pooled

        asked = options.asked()
        with logs.opened_log("whatif", options) as opened:
            if options.hours:
                opened.trace.part_by_hour(options.time_zone)
            run = what_if_pooled if options.pool else what_if
            found = run(opened.trace, opened.problems, asked)
        if options.report is not None:
            logs.write_page(options.report, found=found)
    if options.as_json:
        document = {"keys": [each.as_dict() for each in found], "warnings": opened.problems.messages()}
        print(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode())
    else:
        _show(found)
    logs.tell_problems("whatif", opened.problems)


def _show(found: "list[KeyWhatIf]") -> None:
    from hedgerow.cli.whatif_table import whatif_lines, whatif_table

    console = Console(highlight=False, soft_wrap=True)
    for each in found:
        if each.policies and (each.verdict.worth or len(found) <= SHOWN_WHOLE):
            console.print(whatif_table(each, wide=console.width >= logs.WIDE))
        for line in whatif_lines(each):
            console.print(line)
