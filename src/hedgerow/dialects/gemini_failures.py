"""What Gemini's errors mean for the race: Google's status names, its retry delays, and quotas that last until tomorrow."""

import re
from dataclasses import replace
from datetime import datetime

from hedgerow.dialects.failures import failure_in_band, failure_of_status
from hedgerow.dialects.headers import Headers
from hedgerow.dialects.lenient_json import is_array, is_object, loads_or_none, text_of
from hedgerow.values.failure import Failure, FailureKind

__all__ = ["gemini_failure_in_band", "gemini_failure_of_status"]

DURATION = re.compile(r"([0-9]{1,9}(?:\.[0-9]+)?)s")
SPENT_UNTIL_TOMORROW = "PerDay"


def gemini_failure_of_status(status: int, *, headers: Headers, body: bytes, now: datetime | None) -> Failure:
    """The failure of an answer with an HTTP error status; `now` as failure_of_status takes it."""
    failure = failure_of_status(status, headers=headers, body=body, now=now)
    return _with_details(failure, loads_or_none(body) if body else None)


def gemini_failure_in_band(error: object) -> Failure:
    """The failure that an error inside a 200 stands for."""
    return _with_details(failure_in_band(error), error)


def _with_details(failure: Failure, error: object) -> Failure:
    """Google says in `error.details` how long to wait, and which quota was hit."""
    if is_array(error) and error:
        error = error[0]
    if is_object(error) and is_object(inner := error.get("error")):
        error = inner
    details = error.get("details") if is_object(error) else None
    for detail in details if is_array(details) else []:
        if not is_object(detail):
            continue
        wait = DURATION.fullmatch(text_of(detail.get("retryDelay")) or "")
        if wait and failure.retry_after_s is None:
            failure = replace(failure, retry_after_s=float(wait[1]))
        if failure.kind is FailureKind.RATE_LIMITED and _is_of_the_day(detail.get("violations")):
            failure = replace(failure, kind=FailureKind.FATAL)
    return failure


def _is_of_the_day(violations: object) -> bool:
    return any(
        is_object(violation) and SPENT_UNTIL_TOMORROW in (text_of(violation.get("quotaId")) or "")
        for violation in (violations if is_array(violations) else [])
    )
