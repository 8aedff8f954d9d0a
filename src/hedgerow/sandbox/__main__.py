"""`python -m hedgerow.sandbox`: the same options as `hedgerow sandbox`, without any extra installed."""

import argparse
import sys

from hedgerow.errors import SettingError
from hedgerow.sandbox.meter import BILLS
from hedgerow.sandbox.profile_files import PROFILE_NAMES
from hedgerow.sandbox.server import SandboxSettings
from hedgerow.sandbox.serving import serve_until_told

__all__ = ["main"]


def main() -> int:
    """Reads the options and serves; the exit code is 2 for options that cannot be."""
    usual = SandboxSettings()
    parser = argparse.ArgumentParser(prog="python -m hedgerow.sandbox", description="A loopback LLM provider.")
    parser.add_argument("--port", type=int, default=usual.port, help="0 = any free port")
    parser.add_argument("--profile", default=usual.profile, help=f"{', '.join(PROFILE_NAMES)} or FILE.toml")
    parser.add_argument("--replay", metavar="FILE.csv", help="rows of real calls in place of the profile's draws")
    parser.add_argument("--seed", type=int, default=usual.seed)
    parser.add_argument("--time-scale", type=float, default=usual.time_scale, help="real seconds per provider second")
    parser.add_argument("--bill", choices=BILLS, default=usual.bill, help="what a disconnected request is charged")
    parser.add_argument("--tls", action="store_true", help="https with a self-signed certificate")
    try:
        settings = SandboxSettings(**vars(parser.parse_args()))
    except SettingError as error:
        parser.error(str(error))
    return serve_until_told(settings)


if __name__ == "__main__":
    sys.exit(main())
