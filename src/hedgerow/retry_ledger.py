"""What one request has cost so far, over the tries of the SDK above us: its retries must not multiply ours.

A context variable holds it, set at the SDK's first try: the tries that follow run in the same task or thread.
"""

from contextvars import ContextVar
from dataclasses import dataclass

__all__ = ["Ledger", "ledger_of"]

Request = tuple[str, str, int]


@dataclass(slots=True)
class Ledger:
    """One request's account. began_s: on the hedger's clock, set by its first try; attempts: upstream calls of all tries so far,
    of which `backups` were ours."""

    request: Request
    began_s: float | None = None
    attempts: int = 0
    backups: int = 0


CURRENT: ContextVar[Ledger | None] = ContextVar("hedgerow_ledger", default=None)


def ledger_of(request: Request, sdk_retry: int) -> Ledger | None:
    """The ledger of a request (its method, URL and size), to be asked for in the caller's own context. At the first try a new
    one; later the one from then, None if that was elsewhere."""
    if not sdk_retry:
        ledger = Ledger(request)
        CURRENT.set(ledger)
        return ledger
    known = CURRENT.get()
    return known if known is not None and known.request == request else None
