"""`hedgerow serve`: the gateway."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from hedgerow.cli.extras import needing
from hedgerow.errors import HedgerowError

__all__ = ["serve"]


def serve(
    config: Annotated[Path, typer.Argument(help="hedgerow.toml")] = Path("hedgerow.toml"),
    log_requests: Annotated[
        bool, typer.Option("--log-requests", help="one JSON line per request, without content")
    ] = False,
) -> None:
    """One address in front of every provider: clients change only their base URL. Ends gracefully on SIGTERM and Ctrl-C; reads
    its file again when that changes, or on SIGHUP."""
    with needing("serve", "gateway"):
        from hedgerow.gateway.config import load
        from hedgerow.gateway.house import Worker
        from hedgerow.gateway.logs import set_up_logs
        from hedgerow.gateway.serving import bound_socket
        from hedgerow.gateway.serving import serve as serve_here
        from hedgerow.gateway.supervisor import Supervisor
    set_up_logs(each_request=log_requests)
    try:
        read = load(config)
        for warning in read.warnings:
            print(f"warning: {warning}", file=sys.stderr)
        listening = bound_socket(read.host, read.port)
    except (HedgerowError, OSError) as error:
        print(f"hedgerow serve: {error}", file=sys.stderr)
        raise typer.Exit(2) from None
    host = f"[{read.host}]" if ":" in read.host else read.host
    url = f"http://{host}:{listening.getsockname()[1]}"

    def ready() -> None:
        print(f"listening on {url}", file=sys.stderr, flush=True)

    try:
        if read.gateway.workers > 1:
            raise typer.Exit(
                Supervisor(read.path, read.gateway.workers, listening, ready, log_requests=log_requests).run()
            )
        serve_here(read, listening, Worker(), ready)
    except (HedgerowError, OSError) as error:
        print(f"hedgerow serve: {error}", file=sys.stderr)
        raise typer.Exit(1) from None
