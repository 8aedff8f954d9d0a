"""A worker as a process of its own, started by the supervisor with the socket to listen on."""

import logging
import os
import socket
import sys
from argparse import ArgumentParser
from contextlib import suppress

from hedgerow.errors import HedgerowError
from hedgerow.gateway.config import load
from hedgerow.gateway.house import Worker
from hedgerow.gateway.serving import serve


def main() -> int:
    parser = ArgumentParser(prog="python -m hedgerow.gateway")
    parser.add_argument("config")
    for name in ("worker", "of", "socket"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--tell", type=int)
    asked = parser.parse_args()
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s %(message)s")

    def ready() -> None:
        if asked.tell is not None:
            with suppress(BrokenPipeError):  # another was the first to say so
                os.write(asked.tell, b"1")
            os.close(asked.tell)

    try:
        config = load(asked.config)
        serve(config, socket.socket(fileno=asked.socket), Worker(number=asked.worker, of=asked.of), ready)
    except (HedgerowError, OSError) as error:
        print(f"hedgerow: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
