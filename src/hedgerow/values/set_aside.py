"""What a gateway sets aside of a client key's day before anybody has answered a call."""

from dataclasses import dataclass

__all__ = ["NO_COST", "SetAside"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAside:
    """What a call may cost at most: all of it, one attempt of it, and how much output that reckons with, in tokens. runs_on: it
    does not end when its caller leaves."""

    usd: float
    attempt_usd: float
    output_tokens: int
    runs_on: bool = False


NO_COST = SetAside(usd=0.0, attempt_usd=0.0, output_tokens=1)
