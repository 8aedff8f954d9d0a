"""What a command needs beyond the command line itself."""

import sys
from collections.abc import Generator
from contextlib import contextmanager

import typer

__all__ = ["needing"]


@contextmanager
def needing(command: str, extra: str) -> Generator[None]:
    """Around what imports an optional package: where it is missing, the command says how to install it and exits 2."""
    try:
        yield
    except ImportError as error:
        print(f"hedgerow {command} needs an extra: pip install 'hedgerow[{extra}]' ({error})", file=sys.stderr)
        raise typer.Exit(2) from None
