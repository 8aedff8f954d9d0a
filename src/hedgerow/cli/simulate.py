"""`hedgerow simulate`: what a policy would have done to recorded or drawn attempts, by the very rules that run live."""

import sys
import tomllib
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

import orjson
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from hedgerow.analysis.attempts import load_attempts
from hedgerow.errors import SettingError
from hedgerow.settings import Policy

__all__ = ["simulate"]


def simulate(
    attempts: Annotated[Path, typer.Argument(metavar="ATTEMPTS", help="attempt-level data, Parquet or CSV")],
    policy: Annotated[Path, typer.Option(help="P.toml, which holds one \\[policy.NAME]")],
    caller: Annotated[
        Literal["stream", "buffer"],
        typer.Option(
            help="stream: tied to an attempt by its first token; buffer: by its whole answer, streamed upstream"
        ),
    ] = "buffer",
    as_json: Annotated[bool, typer.Option("--json", help="the result as JSON on stdout")] = False,
) -> None:
    """What a policy would have done to a file of attempts, in virtual time: percentiles, backups, cost, share of the gain."""
    try:
        chosen = Policy.load(policy)
        loaded = load_attempts(attempts)
        from hedgerow.analysis.figures import figures_of
        from hedgerow.analysis.simulate import simulate as run
        from hedgerow.cli.simulated_table import simulated_line, simulated_table
    except (SettingError, OSError) as error:
        raise typer.BadParameter(str(error)) from None
    except ImportError as error:
        print(f"hedgerow simulate needs an extra: pip install 'hedgerow[analysis]' ({error})", file=sys.stderr)
        raise typer.Exit(2) from None
    if loaded.has_phases:
        print("hedgerow simulate: phases are not looked at: each request is judged by itself", file=sys.stderr)
    with _progress(len(loaded.sents)) as progress:
        outcomes = run(loaded.sents, chosen, stream=caller == "stream", progress=progress)
    figures = figures_of(outcomes, _name_in(policy))
    if as_json:
        print(orjson.dumps(figures.as_dict(), option=orjson.OPT_INDENT_2).decode())
    else:
        console = Console(highlight=False, soft_wrap=True)
        console.print(simulated_table(figures))
        console.print(simulated_line(figures, stream=caller == "stream"))
    if figures.failed == figures.n:
        print("hedgerow simulate: every request failed", file=sys.stderr)
        raise typer.Exit(1)


def _name_in(policy: Path) -> str:
    """The NAME of the one [policy.NAME] in a file that has been loaded."""
    return next(iter(tomllib.loads(policy.read_text(encoding="utf-8"))["policy"]))


@contextmanager
def _progress(requests: int) -> Generator[Callable[[int], object] | None]:
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns = (TextColumn("requests"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, refresh_per_second=4, transient=True) as bar:
        task = bar.add_task("requests", total=requests)
        yield lambda more: bar.advance(task, more)
