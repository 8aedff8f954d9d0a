"""Statuses, codes and in-band errors."""

from datetime import UTC, datetime

import orjson
import pytest

from hedgerow.dialects.failures import failure_in_band, failure_of_status, retry_after_s
from hedgerow.values.failure import FailureKind

TRANSIENT, OVERLOADED, RATE_LIMITED, FATAL = (
    FailureKind.TRANSIENT,
    FailureKind.OVERLOADED,
    FailureKind.RATE_LIMITED,
    FailureKind.FATAL,
)
NOON = datetime(2026, 10, 21, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("kind", "statuses"),
    [
        (TRANSIENT, (408, 409, 421, 425, 499, 500, 502, 504, 520, 522, 524, 599)),
        (OVERLOADED, (503, 529)),
        (RATE_LIMITED, (429, 498)),
        (
            FATAL,
            (400, 401, 402, 403, 404, 405, 406, 410, 411, 413, 414, 415, 417, 418, 422, 424, 428, 431, 451, 501, 505),
        ),
    ],
)
def test_every_status_has_its_kind(kind, statuses):
    assert {status: failure_of_status(status).kind for status in statuses} == dict.fromkeys(statuses, kind)


@pytest.mark.parametrize(
    "code",
    [
        "billing_hard_limit_reached",
        "credit_balance_exhausted",
        "enforced_spend_limit_reached",
        "insufficient_quota",
        "organization_spend_limit_exceeded",
        "organization_usage_limit_exceeded",
        "project_spend_limit_exceeded",
    ],
)
@pytest.mark.parametrize("field", ["code", "type"])
def test_a_spent_quota_under_429_is_fatal(code, field):
    body = orjson.dumps({"error": {"message": "…", "type": "x", "code": None, field: code}})
    assert failure_of_status(429, body=body).kind is FATAL
    assert failure_in_band({field: code}).kind is FATAL
    assert failure_in_band({field: code}).status == 429


def test_a_real_rate_limit_is_not_fatal():
    body = b'{"error":{"message":"slow down","type":"requests","code":"rate_limit_exceeded"}}'
    failure = failure_of_status(429, body=body, headers=[(b"Retry-After", b"7")])
    assert (failure.kind, failure.error, failure.retry_after_s) == (RATE_LIMITED, "rate_limit_exceeded", 7.0)


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"[]", b"null", b'{"error":"busy"}', b'{"error":{"code":503}}', b"\xff"]
)
def test_an_error_without_a_name_is_called_by_its_status(body):
    assert failure_of_status(503, body=body).error == "http_503"


def test_an_error_wrapped_in_a_list_is_read():
    body = b'[{"error":{"code":429,"message":"x","status":"RESOURCE_EXHAUSTED"}}]'
    assert failure_of_status(429, body=body).error == "RESOURCE_EXHAUSTED"


@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        ({"type": "overloaded_error"}, 529, OVERLOADED),
        ({"type": "error", "error": {"type": "overloaded_error"}}, 529, OVERLOADED),
        ({"code": "rate_limit_exceeded"}, 429, RATE_LIMITED),
        ({"type": "rate_limit_error"}, 429, RATE_LIMITED),
        ({"type": "server_error"}, 500, TRANSIENT),
        ({"type": "server_error", "code": "rate_limit_exceeded"}, 429, RATE_LIMITED),
        ({"type": "api_error"}, 500, TRANSIENT),
        ({"code": 503}, 503, OVERLOADED),
        ({"code": "503"}, 503, OVERLOADED),
        ({"status": 502, "type": "what"}, 502, TRANSIENT),
        ({"code": 400, "type": "BadRequestError"}, 400, FATAL),
        ({"type": "BadRequestError"}, 400, FATAL),
        ({"type": "InternalServerError"}, 500, TRANSIENT),
        ({"type": "invalid_request_error", "code": "no_idea"}, 400, FATAL),
        ({"type": "authentication_error"}, 401, FATAL),
        ({"code": "context_length_exceeded"}, 400, FATAL),
        ({"status": "UNAVAILABLE"}, 503, OVERLOADED),
        ({"type": "timeout_error"}, 504, TRANSIENT),
        ({"message": "no name at all"}, 500, TRANSIENT),
        ({"code": True}, 500, TRANSIENT),
        ({"code": 1234, "type": 7}, 500, TRANSIENT),
        ("upstream went away", 500, TRANSIENT),
        (None, 500, TRANSIENT),
    ],
)
def test_an_in_band_error_stands_for_a_status(error, status, kind):
    failure = failure_in_band(error)
    assert (failure.status, failure.kind) == (status, kind)


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        ([], None),
        ([(b"retry-after", b"7")], 7.0),
        ([(b"Retry-After", b" 0.5 ")], 0.5),
        ([(b"retry-after-ms", b"250"), (b"retry-after", b"7")], 0.25),
        ([(b"retry-after-ms", b"soon"), (b"retry-after", b"7")], 7.0),
        ([(b"retry-after", b"Wed, 21 Oct 2026 12:00:30 GMT")], 30.0),
        ([(b"retry-after", b"Wed, 21 Oct 2026 11:00:00 GMT")], 0.0),
        ([(b"retry-after", b"Wed, 21 Oct 2026 12:00:30 -0000")], 30.0),
        ([(b"retry-after", b"Wed, 21 Oct 2026 09:00:30 GMT"), (b"date", b"Wed, 21 Oct 2026 09:00:10 GMT")], 20.0),
        ([(b"retry-after", b"-3")], None),
        ([(b"retry-after", b"nan")], None),
        ([(b"retry-after", b"in a while")], None),
        ([(b"retry-after", b"Wed, 99999999999 Oct 2026 12:00:30 GMT")], None),
        ([(b"retry-after", b"Wed, 21 Oct 2026 12:00:30 +99999999999999999")], None),
        (
            [(b"retry-after", b"Wed, 21 Oct 2026 12:00:30 GMT"), (b"date", b"Wed, 21 Oct 99999999999 12:00:00 GMT")],
            30.0,
        ),
        ([(b"retry-after", b"\xff\xfe")], None),
        ([(b"retry-after", b"")], None),
    ],
)
def test_retry_after_in_seconds_milliseconds_or_as_a_date(headers, wait_s):
    assert retry_after_s(headers, now=NOON) == wait_s


def test_a_date_without_anything_to_count_from_says_nothing():
    assert retry_after_s([(b"retry-after", b"Wed, 21 Oct 2026 12:00:30 GMT")]) is None


def test_only_a_fatal_failure_keeps_the_next_attempt_from_starting():
    may = {status: failure_of_status(status).may_start_next for status in (400, 429, 500, 529)}
    assert may == {400: False, 429: True, 500: True, 529: True}
