"""`hedgerow key`: client keys of the gateway."""

import re
import secrets
import sys
from pathlib import Path
from typing import Annotated

import typer

from hedgerow.cli.extras import needing
from hedgerow.errors import HedgerowError

__all__ = ["list_keys", "new_key"]

PREFIX = "hr-"


def new_key(name: Annotated[str, typer.Argument(help="whose it is: ios-app")]) -> None:
    """Makes a client key. It is printed once, with the lines for hedgerow.toml, which keep only its hash."""
    with needing("key", "gateway"):
        from hedgerow.gateway.client_keys import digest_of
        from hedgerow.gateway.sections import NAME
    if not re.match(NAME, name):
        raise typer.BadParameter(f"{name!r} is not possible: allowed are letters, digits, . _ and -, at most 64")
    key = PREFIX + secrets.token_urlsafe(32)
    print(f"the key, shown only now: {key}", file=sys.stderr)
    print(f'[[client_key]]\nname = "{name}"\nsha256 = "{digest_of(key)}"')


def list_keys(config: Annotated[Path, typer.Argument(help="hedgerow.toml")] = Path("hedgerow.toml")) -> None:
    """The client keys of a file: name, segment, limits and the beginning of the hash."""
    with needing("key", "gateway"):
        from hedgerow.gateway.config import load
    try:
        keys = load(config).client_keys
    except (HedgerowError, OSError) as error:
        print(f"hedgerow key list: {error}", file=sys.stderr)
        raise typer.Exit(2) from None
    for key in keys:
        limits = [
            f"{key.requests_per_minute} requests/min" if key.requests_per_minute else "",
            f"{key.usd_per_day:g} USD/day" if key.usd_per_day else "",
        ]
        print("\t".join([key.name, key.segment or "-", ", ".join(filter(None, limits)) or "-", key.sha256[:12]]))
