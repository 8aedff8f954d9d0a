"""Google's errors: retry delays and quotas in `details`, status names, and what each means for the race."""

from typing import Any

import orjson
import pytest

from hedgerow.dialects.gemini import Gemini
from hedgerow.dialects.gemini_failures import gemini_failure_in_band
from hedgerow.values.failure import Failure, FailureKind


def failure(status: int, name: str, details: Any = None, headers: Any = (), as_list: bool = False) -> Failure:
    error = {
        "error": {"code": status, "message": "m", "status": name, **({} if details is None else {"details": details})}
    }
    return Gemini().failure(status, headers, orjson.dumps([error] if as_list else error))


RETRY = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"}
MINUTE = {"violations": [{"quotaId": "GenerateRequestsPerMinutePerProjectPerModel"}]}
DAY = {"violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]}


@pytest.mark.parametrize(
    ("status", "name", "kind"),
    [
        (400, "INVALID_ARGUMENT", FailureKind.FATAL),
        (400, "FAILED_PRECONDITION", FailureKind.FATAL),
        (401, "UNAUTHENTICATED", FailureKind.FATAL),
        (403, "PERMISSION_DENIED", FailureKind.FATAL),
        (404, "NOT_FOUND", FailureKind.FATAL),
        (429, "RESOURCE_EXHAUSTED", FailureKind.RATE_LIMITED),
        (500, "INTERNAL", FailureKind.TRANSIENT),
        (503, "UNAVAILABLE", FailureKind.OVERLOADED),
        (504, "DEADLINE_EXCEEDED", FailureKind.TRANSIENT),
    ],
)
def test_every_status_means_the_same_as_an_http_status_and_inside_a_200(
    status: int, name: str, kind: FailureKind
) -> None:
    plain = failure(status, name)
    assert (plain.kind, plain.status, plain.error) == (kind, status, name)
    in_band = gemini_failure_in_band({"code": status, "message": "m", "status": name})
    assert (in_band.kind, in_band.status, in_band.error) == (kind, status, name)
    by_name = gemini_failure_in_band({"message": "m", "status": name})
    assert by_name.kind is kind


@pytest.mark.parametrize("as_list", [False, True])
def test_the_wait_is_read_from_the_details(as_list: bool) -> None:
    limited = failure(429, "RESOURCE_EXHAUSTED", [MINUTE, RETRY], as_list=as_list)
    assert (limited.kind, limited.retry_after_s) == (FailureKind.RATE_LIMITED, 34.5)
    assert gemini_failure_in_band({"code": 429, "details": [RETRY]}).retry_after_s == 34.5


def test_a_header_counts_before_the_details() -> None:
    assert failure(429, "RESOURCE_EXHAUSTED", [RETRY], [(b"Retry-After", b"7")]).retry_after_s == 7


def test_a_quota_of_the_day_is_spent_not_limited() -> None:
    assert failure(429, "RESOURCE_EXHAUSTED", [DAY, RETRY]).kind is FailureKind.FATAL
    assert failure(429, "RESOURCE_EXHAUSTED", [DAY], as_list=True).kind is FailureKind.FATAL


@pytest.mark.parametrize(
    "details",
    ["odd", [None], [{"retryDelay": 7}], [{"retryDelay": "soon"}], [{"violations": "x"}], [{"violations": [1]}], {}],
)
def test_odd_details_are_passed_over(details: Any) -> None:
    assert failure(429, "RESOURCE_EXHAUSTED", details).kind is FailureKind.RATE_LIMITED


def test_a_body_that_is_no_json_still_has_its_status() -> None:
    assert Gemini().failure(502, (), b"<html>").kind is FailureKind.TRANSIENT
    assert Gemini().failure(503, (), b"").kind is FailureKind.OVERLOADED
