"""What an error means for the race: HTTP statuses, error codes and in-band errors are read here and nowhere else.

The rules are those of "which failures start the next attempt": the same request sent again may succeed (transient,
overloaded), may succeed with another key (rate limited), or fails the same way everywhere (fatal).
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from hedgerow.dialects.headers import Headers, header_value
from hedgerow.dialects.lenient_json import is_array, is_object, loads_or_none
from hedgerow.short_text import name_of
from hedgerow.values.failure import Failure, FailureKind

__all__ = ["failure_in_band", "failure_of_finish", "failure_of_status", "retry_after_s"]

KIND_OF_STATUS = {
    408: FailureKind.TRANSIENT,
    409: FailureKind.TRANSIENT,
    421: FailureKind.TRANSIENT,  # wrong connection for this host: a new one helps
    425: FailureKind.TRANSIENT,
    429: FailureKind.RATE_LIMITED,
    498: FailureKind.RATE_LIMITED,  # Groq: no capacity in this tier
    499: FailureKind.TRANSIENT,  # a proxy lost us on the way; our own cancellations are never classified
    501: FailureKind.FATAL,
    503: FailureKind.OVERLOADED,
    505: FailureKind.FATAL,
    529: FailureKind.OVERLOADED,
}

# Under 429, but no waiting and no twin helps: the account has run dry.
SPENT_QUOTA = frozenset(
    {
        "billing_hard_limit_reached",
        "billing_not_active",
        "contract_spend_limit_reached",
        "credit_balance_exhausted",
        "enforced_spend_limit_reached",
        "insufficient_quota",
        "linked_organization_spend_limit_reached",
        "organization_spend_limit_exceeded",
        "organization_usage_limit_exceeded",
        "project_spend_limit_exceeded",
    }
)

# Names of in-band errors, as snake case without a final "_error".
STATUS_OF_NAME = {
    "bad_request": 400,
    "bio_policy": 400,
    "content_filter": 400,
    "context_length_exceeded": 400,
    "data_residency_mismatch": 400,
    "empty_image_file": 400,
    "failed_to_download_image": 400,
    "failed_precondition": 400,
    "image_content_policy_violation": 400,
    "image_file_not_found": 400,
    "image_file_too_large": 400,
    "image_parse_error": 400,
    "image_too_large": 400,
    "image_too_small": 400,
    "invalid_argument": 400,
    "invalid_base64_image": 400,
    "invalid_image": 400,
    "invalid_image_format": 400,
    "invalid_image_mode": 400,
    "invalid_image_url": 400,
    "invalid_prompt": 400,
    "invalid_request": 400,
    "misalignment_policy_violation": 400,
    "unsupported_image_media_type": 400,
    "authentication": 401,
    "invalid_api_key": 401,
    "unauthenticated": 401,
    "billing": 402,
    "permission": 403,
    "permission_denied": 403,
    "model_not_found": 404,
    "not_found": 404,
    "request_timeout": 408,
    "conflict": 409,
    "request_too_large": 413,
    "unprocessable_entity": 422,
    "rate_limit": 429,
    "rate_limit_exceeded": 429,
    "requests": 429,
    "resource_exhausted": 429,
    "slow_down": 429,
    "tokens": 429,
    "too_many_requests": 429,
    "api": 500,
    "internal": 500,
    "internal_server": 500,
    "server": 500,
    "bad_gateway": 502,
    "insufficient_system_resource": 503,
    "service_unavailable": 503,
    "unavailable": 503,
    "deadline_exceeded": 504,
    "gateway_timeout": 504,
    "timeout": 504,
    "vector_store_timeout": 504,
    "engine_overloaded": 529,
    "overloaded": 529,
}
UNNAMED_IN_BAND_STATUS = 500
# Finish reasons, in lower case, by which an engine says that it broke the answer off of its own accord, and the status each
# stands for: vLLM's, SGLang's and TensorRT-LLM's abort, OpenRouter's and Mistral's error, DeepSeek's lack of resources.
STATUS_OF_FINISH = {
    "abort": 502,
    "aborted": 502,
    "cancelled": 502,
    "canceled": 502,
    "engine_error": 502,
    "error": 502,
    "failed": 502,
    "finish_reason_error": 502,
    "insufficient_system_resource": 503,
    "internal_error": 502,
    "internal_server_error": 502,
    "interrupted": 502,
    "model_error": 502,
    "overloaded": 529,
    "server_error": 502,
    "timeout": 504,
    "unavailable": 503,
}


def failure_of_status(status: int, *, headers: Headers = (), body: bytes = b"", now: datetime | None = None) -> Failure:
    """The failure of an answer with an HTTP error status (≥ 400).

    `now` (aware) is what a Retry-After date is counted from when the response has no Date of its own.
    """
    names = _names(_error_object(loads_or_none(body)) if body else None)
    return Failure(
        kind=_kind(status, names),
        status=status,
        error=names[0] if names else f"http_{status}",
        retry_after_s=retry_after_s(headers, now=now),
    )


def failure_in_band(error: object) -> Failure:
    """The failure that an error inside a 200 stands for. `error` is the error object, or a text, as the server sent it.

    Its status is the number it carries, else the one of its code or type, else 500.
    """
    error = _error_object(error)
    names = _names(error)
    status = _stated_status(error) or next(
        (STATUS_OF_NAME[plain] for plain in map(_plain_name, names) if plain in STATUS_OF_NAME), None
    )
    if any(name in SPENT_QUOTA for name in names):
        status = 429
    status = status or UNNAMED_IN_BAND_STATUS
    name = names[0] if names else f"http_{status}"
    return Failure(kind=_kind(status, names), status=status, error=name, in_answer=True)


def failure_of_finish(reason: str) -> Failure | None:
    """The failure that a finish reason stands for by which the server says that it gave up; None for all others."""
    status = STATUS_OF_FINISH.get(reason.lower())
    if status is None:
        return None
    return Failure(kind=_kind(status, ()), status=status, error=reason.lower(), in_answer=True, given_up=True)


def retry_after_s(headers: Headers, *, now: datetime | None = None) -> float | None:
    """Seconds ≥ 0 the provider asks to wait: retry-after-ms, or Retry-After as seconds or date; None if it asks nothing.

    A date is counted from the response's own Date, so that a wrong clock here does no harm, else from `now` (aware).
    """
    if (wait_ms := _number(header_value(headers, b"retry-after-ms"))) is not None:
        return wait_ms / 1000
    stated = header_value(headers, b"retry-after")
    if (wait_s := _number(stated)) is not None:
        return wait_s
    until, sent = _date(stated), _date(header_value(headers, b"date")) or now
    return max(0.0, (until - sent).total_seconds()) if until and sent else None


def _kind(status: int, names: Sequence[str]) -> FailureKind:
    if status == 429 and any(name in SPENT_QUOTA for name in names):
        return FailureKind.FATAL
    return KIND_OF_STATUS.get(status, FailureKind.TRANSIENT if status >= 500 else FailureKind.FATAL)


def _error_object(value: object) -> object:
    """The innermost error: `{"error": {…}}`, or the first of a list (Gemini's OpenAI endpoint sends one)."""
    if is_array(value) and value:
        value = value[0]
    if is_object(value) and value.get("error"):
        return value["error"]
    return value


def _names(error: object) -> list[str]:
    """Code, type and status name, in the order in which they are believed; Anthropic has its codes in `details`."""
    if not is_object(error):
        return []
    details = error.get("details")
    detailed = details.get("error_code") if is_object(details) else None
    named = [detailed, *(error.get(field) for field in ("code", "type", "status"))]
    return [name for name in map(name_of, named) if name and not name.isdigit()]


def _stated_status(error: object) -> int | None:
    if not is_object(error):
        return None
    for field in ("code", "status", "status_code"):
        value = error.get(field)
        if isinstance(value, str) and re.fullmatch("[45][0-9]{2}", value):
            value = int(value)
        if isinstance(value, int) and 400 <= value <= 599:
            return value
    return None


def _plain_name(name: str) -> str:
    """ "BadRequestError", "RESOURCE_EXHAUSTED" and "server_error" as they stand in STATUS_OF_NAME."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower().removesuffix("_error")


def _number(value: str | None) -> float | None:
    return float(value) if value and re.fullmatch(r"\s*[0-9]{1,12}(\.[0-9]*)?\s*", value) else None


def _date(value: str | None) -> datetime | None:
    try:
        moment = parsedate_to_datetime(value) if value else None
    except (ValueError, OverflowError):  # a day, a year or a zone of more digits than a date has
        return None
    return moment.replace(tzinfo=UTC) if moment and moment.tzinfo is None else moment
