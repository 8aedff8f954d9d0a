"""`hedgerow analyze`: what a log says about the tail of its calls, and how sure that is."""

import orjson
from rich.console import Console

from hedgerow.cli import logs

__all__ = ["analyze"]


def analyze(options: logs.LogOptions) -> None:
    """Percentiles with their intervals, what the tail comes from, stalls per day, odds, hours, self-queueing, cost."""
    with logs.saying_what_is_missing("analyze"):
        from hedgerow.analysis.describe.analyze import analyze as run
        from hedgerow.cli.analysis_table import analysis_lines, analysis_table

        question = options.question()
        with logs.opened_log("analyze", options) as opened:
            analysis = run(opened.trace, opened.problems, question)
        if options.report is not None:
            logs.write_page(options.report, analysis=analysis)
    if options.as_json:
        print(orjson.dumps(analysis.as_dict(), option=orjson.OPT_INDENT_2).decode())
    else:
        console = Console(highlight=False, soft_wrap=True)
        console.print(analysis_table(analysis, wide=console.width >= logs.WIDE))
        for line in analysis_lines(analysis):
            console.print(line)
    logs.tell_problems("analyze", opened.problems)
