"""`hedgerow whatif`: what each policy would have done to a log's calls and cost, and the settings to use, or "not worth it"."""

from typing import Annotated

import orjson
import typer
from rich.console import Console

from hedgerow.cli import logs
from hedgerow.errors import SettingError
from hedgerow.units import parse_window

__all__ = ["whatif"]


def whatif(
    log: logs.LogArguments,
    mapped: logs.MapOption = None,
    pool: Annotated[bool, typer.Option("--pool", help="all calls as one key, backups at other providers")] = False,
    within_provider: Annotated[
        bool, typer.Option("--within-provider", help="with --pool: backups at the same provider, other models")
    ] = False,
    backup: Annotated[
        str | None,
        typer.Option(metavar="PROVIDER/MODEL", help="whose calls stand for backups; default the call's own key"),
    ] = None,
    segments: Annotated[bool, typer.Option("--segments", help="each segment by itself")] = False,
    reprice: Annotated[
        list[str] | None,
        typer.Option(metavar="MODEL[/TIER]", help="what the same tokens would cost there; may be repeated"),
    ] = None,
    window: Annotated[
        str, typer.Option(help='what quantile delays look back on: calls, or a time such as "7d"')
    ] = "1000",
    fixed_s: Annotated[float, typer.Option(min=0.0, help="delay of the fixed policy, seconds")] = 2.0,
    seed: Annotated[int, typer.Option(help="of every draw")] = 1,
    turns: logs.TurnsOption = 25,
    parallel: logs.ParallelOption = 16,
    stall_s: logs.StallOption = None,
    time_zone: logs.ZoneOption = "UTC",
    prices: logs.PricesOption = None,
    report: logs.ReportOption = None,
    as_json: logs.JsonOption = False,
) -> None:
    """What each policy would have done to these calls, with intervals; the settings to use, or "not worth it" and why."""
    with logs.saying_what_is_missing("whatif"):
        from hedgerow.analysis.whatif.policies import Look
        from hedgerow.analysis.whatif.reprice import Elsewhere
        from hedgerow.analysis.whatif.run import Options, what_if, what_if_pooled
        from hedgerow.cli.whatif_table import whatif_lines, whatif_table

        if within_provider and not pool:
            raise SettingError("--within-provider", True, "together with --pool")
        options = Options(
            question=logs.asked(turns=turns, parallel=parallel, stall_s=stall_s, time_zone=time_zone, prices=prices),
            look=Look(
                window=parse_window(int(window) if window.isdigit() else window, name="--window"), fixed_s=fixed_s
            ),
            backup=None if backup is None else logs.key_named(backup),
            same_provider=within_provider,
            by_segment=segments,
            reprice=tuple(Elsewhere.parse(each) for each in reprice or ()),
            seed=seed,
        )
        with logs.opened_log("whatif", log, mapped or []) as opened:
            run = what_if_pooled if pool else what_if
            found = run(opened.trace, opened.problems, options)
        if report is not None:
            logs.write_page(report, found=found)
    if as_json:
        print(orjson.dumps({"keys": [each.as_dict() for each in found]}, option=orjson.OPT_INDENT_2).decode())
    else:
        console = Console(highlight=False, soft_wrap=True)
        for each in found:
            if each.policies and (each.verdict.worth or len(found) <= SHOWN_WHOLE):
                console.print(whatif_table(each, wide=console.width >= logs.WIDE))
            for line in whatif_lines(each):
                console.print(line)
    logs.tell_problems("whatif", opened.problems)


SHOWN_WHOLE = 3  # keys: of longer lists only those worth hedging get a table
