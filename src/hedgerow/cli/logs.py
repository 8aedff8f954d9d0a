"""What the commands over logs share: their options, and a log opened as a table of calls with its problems told on stderr."""

import sys
import tomllib
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import typer
from rich.console import Console

from hedgerow.cli.extras import needing
from hedgerow.cli.shown import plain
from hedgerow.cost.prices import PriceBook, PriceRule
from hedgerow.errors import SettingError

if TYPE_CHECKING:
    from hedgerow.analysis.calls import KeyName
    from hedgerow.analysis.describe.analyze import Analysis, Question
    from hedgerow.analysis.ingest.format import Format
    from hedgerow.analysis.ingest.problems import Problems
    from hedgerow.analysis.trace import Trace
    from hedgerow.analysis.whatif.run import KeyWhatIf

__all__ = ["WIDE", "LogOptions", "key_named", "opened_log", "saying_what_is_missing", "tell_problems", "write_page"]

MOST_MESSAGES = 12
WIDE = 110  # columns of a terminal from which on tables have bars


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOptions:
    """Options of every command over logs."""

    log: Annotated[
        list[str],
        typer.Argument(metavar="LOG…", help="files, folders, globs or - for stdin; what each is, is found out"),
    ]
    mapped: Annotated[
        list[str] | None,
        typer.Option(
            "--map", metavar="NAME=FIELD[:UNIT]", help="what a field means, as ttft=first_ms:ms; may be repeated"
        ),
    ] = None
    turns: Annotated[int, typer.Option(min=1, help="calls in a row, for the odds of a stall")] = 25
    parallel: Annotated[int, typer.Option(min=1, help="calls at once, for the odds of a stall")] = 16
    stall_s: Annotated[
        float | None, typer.Option(help="from when on a response is a stall; default 5 × the median")
    ] = None
    time_zone: Annotated[str, typer.Option(help="of the hours of the day, such as Asia/Tokyo")] = "UTC"
    prices: Annotated[Path | None, typer.Option(help="TOML with \\[\\[price]] tables, before the public list")] = None
    report: Annotated[Path | None, typer.Option(help="also write a page of its own, as out.html")] = None
    as_json: Annotated[bool, typer.Option("--json", help="the result as JSON on stdout")] = False

    def question(self) -> "Question":
        """What is asked of the log. Raises SettingError."""
        from hedgerow.analysis.describe.analyze import Question

        try:
            ZoneInfo(self.time_zone)
        except (ZoneInfoNotFoundError, ValueError):
            raise SettingError(
                "--time-zone", self.time_zone, 'a zone of the IANA list, such as "Europe/Berlin"'
            ) from None
        if self.stall_s is not None and not 0 < self.stall_s < inf:
            raise SettingError("--stall-s", self.stall_s, "seconds > 0")
        return Question(
            at=datetime.now(UTC),
            turns=self.turns,
            parallel=self.parallel,
            stall_s=self.stall_s,
            time_zone=self.time_zone,
            book=PriceBook(() if self.prices is None else _rules(self.prices)),
        )


@contextmanager
def opened_log(command: str, options: LogOptions) -> "Generator[Log]":
    """A log read whole. Exits 1 if no call was in it, after saying why."""
    from hedgerow.analysis.ingest.problems import Problems
    from hedgerow.analysis.ingest.read import read_logs
    from hedgerow.analysis.trace import open_trace

    problems = Problems()
    with open_trace() as trace:
        with _waiting("reading"):
            taken = read_logs(options.log, trace, problems, mapped=_mapped(options.mapped or ()))
        if not taken:
            tell_problems(command, problems)
            print(
                f"hedgerow {command}: no calls in {plain(', '.join(options.log))}; see docs/reference/logs.md",
                file=sys.stderr,
            )
            raise typer.Exit(1)
        yield Log(trace, problems)


def _mapped(assignments: Sequence[str]) -> "Format | None":
    if not assignments:
        return None
    from hedgerow.analysis.ingest.mapping import mapped_format

    return mapped_format(assignments)


@dataclass(frozen=True, slots=True)
class Log:
    """A table of calls, and what was wrong with where it comes from."""

    trace: "Trace"
    problems: "Problems"


def tell_problems(command: str, problems: "Problems") -> None:
    """On stderr, the worst first."""
    messages = problems.messages()
    for message in messages[:MOST_MESSAGES]:
        print(f"hedgerow {command}: {plain(message)}", file=sys.stderr)
    if len(messages) > MOST_MESSAGES:
        print(f"hedgerow {command}: … and {len(messages) - MOST_MESSAGES} more (--json has all)", file=sys.stderr)


@contextmanager
def saying_what_is_missing(command: str, extras: str = "analysis") -> Generator[None]:
    """Bad options exit 2 with what is allowed; a missing extra exits 2 with how to install it."""
    try:
        with needing(command, extras):
            yield
    except (SettingError, OSError) as error:
        raise typer.BadParameter(str(error)) from None


@contextmanager
def _waiting(what: str) -> Generator[None]:
    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status(what):
        yield


def _rules(path: Path) -> tuple[PriceRule, ...]:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise SettingError("--prices", str(path), f"TOML ({error})") from None
    rows = document.get("price")
    if not isinstance(rows, list) or not rows:
        raise SettingError("--prices", str(path), "a file with [[price]] tables: model, input, output")
    make = cast(Callable[..., PriceRule], PriceRule)
    try:
        return tuple(make(**row) for row in cast(list[dict[str, object]], rows))
    except TypeError as error:
        raise SettingError(
            "[[price]]", str(error), "model, input, output, cached, provider, service_tier", where=str(path)
        ) from None


def key_named(text: str) -> "KeyName":
    """A key from PROVIDER/MODEL; the model may have slashes of its own."""
    from hedgerow.analysis.calls import KeyName

    provider, slash, model = text.partition("/")
    if not slash:
        raise SettingError("--backup", text, "PROVIDER/MODEL, as `hedgerow analyze` names a key")
    return KeyName(provider=provider, model=model)


def write_page(path: Path, *, analysis: "Analysis | None" = None, found: "Sequence[KeyWhatIf]" = ()) -> None:
    """The page of an analysis or a what-if. Raises OSError where it cannot be written."""
    from hedgerow.cli.page.page import page_of

    path.write_text(page_of(analysis=analysis, found=found), encoding="utf-8")
    print(f"hedgerow: wrote {path}", file=sys.stderr)
