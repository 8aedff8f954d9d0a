"""What one request has cost so far, over the tries of the SDK above us: its retries must not multiply ours.

A context variable holds it, set at the SDK's first try: the tries that follow run in the same task or thread.
"""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from hedgerow.values.failure import Repeats

__all__ = [
    "NOT_AGAIN",
    "Ledger",
    "counted_tries",
    "ledger_of",
    "next_try",
    "tries_announced",
    "tries_before",
]

NOT_AGAIN = (b"x-should-retry", b"false")
Request = tuple[str, str, int]


@dataclass(slots=True)
class Ledger:
    """One request's account. began_s: on the hedger's clock, set by its first try; attempts: upstream calls of all tries so far,
    of which `backups` were ours."""

    request: Request = field(repr=False)  # its URL may hold a key (Gemini's)
    began_s: float | None = None
    attempts: int = 0
    backups: int = 0


@dataclass(slots=True)
class _Tries:
    most: int
    repeats: Repeats
    begun: int = 0


TRIES: ContextVar[_Tries | None] = ContextVar("hedgerow_tries", default=None)
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


@contextmanager
def counted_tries(most: int, repeats: Repeats) -> Generator[None]:
    """What is sent inside are the tries of one request, `most` at most: for SDKs that do not say so in a header (Google's).
    repeats: the failures after which there is another."""
    token = TRIES.set(_Tries(most, repeats))
    try:
        yield
    finally:
        TRIES.reset(token)


def next_try() -> None:
    """Another try begins, in the caller's own context."""
    if (tries := TRIES.get()) is not None:
        tries.begun += 1


def tries_before() -> int:
    """How many tries there were before the one that runs; 0 where nobody counts."""
    tries = TRIES.get()
    return 0 if tries is None else max(0, tries.begun - 1)


def tries_announced() -> tuple[int, Repeats] | None:
    """How many tries there will be at most, and after which failures; None where nobody counts."""
    tries = TRIES.get()
    return None if tries is None else (tries.most, tries.repeats)
