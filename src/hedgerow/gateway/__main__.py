"""A worker as a process of its own, started by the supervisor with the socket to listen on."""

import os
import socket
import sys
from argparse import ArgumentParser
from contextlib import suppress

from hedgerow.errors import HedgerowError
from hedgerow.gateway.config import load
from hedgerow.gateway.house import Worker
from hedgerow.gateway.logs import set_up_logs
from hedgerow.gateway.serving import serve


def main() -> int:
    parser = ArgumentParser(prog="python -m hedgerow.gateway")
    parser.add_argument("config")
    for name in ("worker", "of", "socket"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--tell", type=int)
    parser.add_argument("--log-requests", action="store_true")
    asked = parser.parse_args()
    set_up_logs(each_request=asked.log_requests)

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
