"""Facts of a call that only its caller knows, carried by a context variable: `with hedgerow.context(segment="pro"): …`"""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace

from hedgerow.errors import SettingError
from hedgerow.values.set_aside import SetAside

__all__ = ["CallContext", "context", "current_context", "said_of_call"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallContext:
    """segment: class of the caller. deadline_s: after so many seconds the answer is of no use. hedge: False = never hedge.

    What a gateway adds for the record: id: of the event, None = a new one; route, client_key: their names; trace_id: W3C;
    set_aside: of the client key's day, None = nothing is counted.
    """

    segment: str | None = None
    deadline_s: float | None = None
    hedge: bool = True
    id: str | None = None
    route: str | None = None
    client_key: str | None = None
    trace_id: str | None = None
    set_aside: SetAside | None = None


NOTHING_SAID = CallContext()
CURRENT: ContextVar[CallContext] = ContextVar("hedgerow_context", default=NOTHING_SAID)


@contextmanager
def context(
    *, segment: str | None = None, deadline_s: float | None = None, hedge: bool | None = None
) -> Generator[None]:
    """Say something of every call made inside: `segment` (a name the policy's `segments` go by), `deadline_s` (> 0 seconds
    after which an answer is useless: no backup is sent that could not be in time; `timeout_s` is what ends calls),
    `hedge=False` (send each once). What is left out stays as it was outside. SettingError for a deadline ≤ 0."""
    if deadline_s is not None and not deadline_s > 0:
        raise SettingError("deadline_s", deadline_s, "> 0 seconds", fix="leave it out for none")
    said = {"segment": segment, "deadline_s": deadline_s, "hedge": hedge}
    token = CURRENT.set(replace(CURRENT.get(), **{name: value for name, value in said.items() if value is not None}))
    try:
        yield
    finally:
        CURRENT.reset(token)


@contextmanager
def said_of_call(said: CallContext) -> Generator[None]:
    """Say all of it at once of the calls made inside."""
    token = CURRENT.set(said)
    try:
        yield
    finally:
        CURRENT.reset(token)


def current_context() -> CallContext:
    """What has been said of the call being made."""
    return CURRENT.get()
