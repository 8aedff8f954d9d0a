"""How an attempt failed: the one value that says what may follow. Statuses and codes are read in dialects/failures.py."""

from dataclasses import dataclass
from enum import Enum

__all__ = ["Failure", "FailureKind", "Repeats"]

REQUEST_TIMEOUT, CONFLICT, TOO_MANY, SERVER_ERRORS = 408, 409, 429, 500


class FailureKind(Enum):
    """What a failure means for the race (errors.md)."""

    TRANSIENT = "transient"  # 408, 409, 5xx, refused or reset connections, a cut before content: the next attempt starts at once
    OVERLOADED = "overloaded"  # 503, 529: one replacement at once, then the target is left alone for a while
    RATE_LIMITED = "rate_limited"  # 429: only a target with another key or base URL may help
    FATAL = "fatal"  # 400, 401, 404…, spent quota: every copy would fail the same way
    TIMEOUT = "timeout"  # an attempt ran out of one of our own time-outs
    CALLER_LIMIT = "caller_limit"  # the caller's own connect, read or pool time-out: it ends the try, as without us
    LOCAL = "local"  # our own side failed (a full pool, an unusable URL): a copy would meet the same


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One attempt's failure. `status` is the HTTP status, or the one an in-band error stands for; `error` its class or code.

    `retry_after_s`: what the provider asked for, uncapped, None if it did not. `in_answer`: it came in place of an answer under
    a 2xx, or broke one off, so that no client above would send the request again. `given_up`: it is a whole answer whose finish
    reason says that the server broke off; the bare client's caller gets it.
    """

    kind: FailureKind
    status: int | None = None
    error: str = ""
    retry_after_s: float | None = None
    in_answer: bool = False
    given_up: bool = False

    @property
    def may_start_next(self) -> bool:
        """May another attempt start because of this failure (budget permitting)?"""
        return self.kind not in (FailureKind.FATAL, FailureKind.LOCAL, FailureKind.CALLER_LIMIT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeats:
    """After which failures a client that has tries left sends its request again.

    statuses: HTTP statuses, None = 408, 409, 429 and all from 500 on; errors: class names of errors without a status, None =
    all. The defaults are what OpenAI's SDK and Anthropic's do.
    """

    statuses: frozenset[int] | None = None
    errors: frozenset[str] | None = None

    def after(self, failure: Failure) -> bool:
        """Does it, after this one?"""
        if failure.in_answer:
            return False
        if failure.kind is FailureKind.TIMEOUT:
            return True  # told as the client's own read time-out
        if failure.status is None:
            return self.errors is None or failure.error in self.errors
        if self.statuses is not None:
            return failure.status in self.statuses
        return failure.status >= SERVER_ERRORS or failure.status in (REQUEST_TIMEOUT, CONFLICT, TOO_MANY)
