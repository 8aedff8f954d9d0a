"""`hedgerow analyze`: what a log says about the tail of its calls, and how sure that is."""

import orjson
from rich.console import Console

from hedgerow.cli import logs

__all__ = ["analyze"]


def analyze(
    log: logs.LogArguments,
    mapped: logs.MapOption = None,
    turns: logs.TurnsOption = 25,
    parallel: logs.ParallelOption = 16,
    stall_s: logs.StallOption = None,
    time_zone: logs.ZoneOption = "UTC",
    prices: logs.PricesOption = None,
    report: logs.ReportOption = None,
    as_json: logs.JsonOption = False,
) -> None:
    """Percentiles with their intervals, what the tail comes from, stalls per day, odds, hours, self-queueing, cost."""
    with logs.saying_what_is_missing("analyze"):
        from hedgerow.analysis.describe.analyze import analyze as run
        from hedgerow.cli.analysis_table import analysis_lines, analysis_table

        question = logs.asked(turns=turns, parallel=parallel, stall_s=stall_s, time_zone=time_zone, prices=prices)
        with logs.opened_log("analyze", log, mapped or []) as opened:
            analysis = run(opened.trace, opened.problems, question)
        if report is not None:
            logs.write_page(report, analysis=analysis)
    if as_json:
        print(orjson.dumps(analysis.as_dict(), option=orjson.OPT_INDENT_2).decode())
    else:
        console = Console(highlight=False, soft_wrap=True)
        console.print(analysis_table(analysis, wide=console.width >= logs.WIDE))
        for line in analysis_lines(analysis):
            console.print(line)
    logs.tell_problems("analyze", opened.problems)
