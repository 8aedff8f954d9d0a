"""The record of one request and its attempts: the only contract between live and offline (docs/reference/events.md).

Times are seconds, shares 0..1, money USD; `None` = not known or did not happen. No prompt, answer or key is ever in it.
"""

from dataclasses import asdict, dataclass
from datetime import datetime

__all__ = ["SCHEMA_VERSION", "AttemptEvent", "Event"]

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptEvent:
    """One upstream call. `started_s` counts from the request, the other times from the attempt's own start."""

    attempt: int
    target: str
    model: str | None = None
    service_tier: str | None = None
    started_s: float = 0.0
    reason: str = "primary"
    headers_s: float | None = None
    first_token_s: float | None = None
    ended_s: float | None = None
    outcome: str = "won"
    status: int | None = None
    error: str | None = None
    upstream_request_id: str | None = None
    tokens_seen: int = 0
    input_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    pool_wait_s: float | None = None
    connection: str | None = None
    close_s: float | None = None
    cost_low_usd: float | None = None
    cost_high_usd: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One request, from the caller's first byte to the last."""

    v: int = SCHEMA_VERSION
    id: str
    at: datetime
    measured_at: str = "client"
    source: str = ""
    route: str | None = None
    policy: str = "default"
    mode: str = "act"
    segment: str | None = None
    client_key: str | None = None
    dialect: str
    model: str | None = None
    stream: bool = False
    upstream_stream: bool = False
    tools: bool = False
    effort: str | None = None
    deadline_s: float | None = None
    input_tokens_estimate: int = 0
    max_output_tokens: int | None = None
    phase: str | None = None
    trace_id: str | None = None
    sdk_retry: int = 0
    plan: str = "hedge"
    d_s: float | None = None
    b_s: float | None = None
    tau_s: float | None = None
    inflation: float | None = None
    win_rate: float | None = None
    bucket: float | None = None
    trigger_at_s: float | None = None
    outcome: str
    error: str | None = None
    winner: int | None = None
    first_token_s: float | None = None
    first_delivered_s: float | None = None
    full_response_s: float | None = None
    cost_low_usd: float | None = None
    cost_high_usd: float | None = None
    winner_cost_usd: float | None = None
    price_source: str | None = None
    counted_usd: float | None = None
    attempts: tuple[AttemptEvent, ...] = ()

    def as_dict(self) -> dict[str, object]:
        """JSON-ready: `at` as ISO 8601 in UTC, attempts nested."""
        fields = asdict(self)
        fields["at"] = self.at.isoformat()
        fields["attempts"] = list(fields["attempts"])
        return fields
