"""What the gateway says on stderr: its own news in plain lines, and on request one JSON object per request, without content."""

import logging
import sys

import orjson

from hedgerow.values.event import Event

__all__ = ["log_request", "set_up_logs"]

FIELDS = (
    "id",
    "route",
    "policy",
    "client_key",
    "segment",
    "dialect",
    "model",
    "stream",
    "plan",
    "outcome",
    "error",
    "winner",
    "first_token_s",
    "full_response_s",
    "cost_low_usd",
    "cost_high_usd",
    "trace_id",
)

requests = logging.getLogger("hedgerow.requests")


def set_up_logs(*, each_request: bool) -> None:
    """For a process that is the gateway's own: warnings and errors, and each request's line if asked for."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    if each_request:
        plain = logging.StreamHandler(sys.stderr)
        plain.setFormatter(logging.Formatter("%(message)s"))
        requests.addHandler(plain)
        requests.setLevel(logging.INFO)
        requests.propagate = False


def log_request(event: Event) -> None:
    """One line for a request that is over."""
    if requests.isEnabledFor(logging.INFO):
        line = {"at": event.at.isoformat(), **{name: getattr(event, name) for name in FIELDS}}
        line["attempts"] = [[each.target, each.reason, each.outcome, each.status] for each in event.attempts]
        requests.info(orjson.dumps(line).decode())
