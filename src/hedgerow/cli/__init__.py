"""The command line: one file for each command. Data goes to stdout, all else to stderr; exit 0 done, 1 failed, 2 misused."""

import sys
from importlib.metadata import version
from typing import Annotated

import hedgerow

__all__ = ["main"]


def main() -> None:
    """The command `hedgerow`. Says which extra to install, and exits 2, where typer is missing."""
    try:
        import typer
    except ImportError:
        print(
            "the hedgerow command needs an extra: pip install 'hedgerow[cli]' (or hedgerow[gateway])", file=sys.stderr
        )
        sys.exit(2)
    from hedgerow.cli.analyze import analyze
    from hedgerow.cli.check import check
    from hedgerow.cli.demo import demo
    from hedgerow.cli.export import export
    from hedgerow.cli.key import list_keys, new_key
    from hedgerow.cli.logs import LogOptions
    from hedgerow.cli.options import command_of
    from hedgerow.cli.sandbox import sandbox
    from hedgerow.cli.serve import serve
    from hedgerow.cli.simulate import simulate
    from hedgerow.cli.whatif import WhatIfOptions, whatif

    def say_version(asked: bool) -> None:
        if asked:
            print(f"hedgerow {version('hedgerow')}")
            raise typer.Exit

    def of_all_commands(
        *,
        version: Annotated[
            bool, typer.Option("--version", callback=say_version, is_eager=True, help="say it and exit")
        ] = False,
    ) -> None:
        pass

    app = typer.Typer(
        no_args_is_help=True,
        add_completion=False,
        help=hedgerow.__doc__,
        pretty_exceptions_show_locals=False,  # they would show keys
    )
    app.callback()(of_all_commands)
    over_logs = command_of(LogOptions, analyze, "analyze"), command_of(WhatIfOptions, whatif, "whatif")
    for command in (demo, sandbox, serve, check, *over_logs, simulate, export):
        app.command()(command)
    keys = typer.Typer(no_args_is_help=True, help="Client keys of the gateway.")
    keys.command("new")(new_key)
    keys.command("list")(list_keys)
    app.add_typer(keys, name="key")
    app()
