"""Which headers go on is remembered by name, within bounds: names are strangers' words."""

from hedgerow.gateway.headers import (
    COMES_DOWN,
    LONGEST_REMEMBERED,
    MOST_REMEMBERED,
    WITHOUT_KEYS,
    answer_headers,
    upstream_headers,
)


def test_names_beyond_the_bound_are_judged_all_the_same() -> None:
    invented = [(b"x-%d" % number, b"1") for number in range(2 * MOST_REMEMBERED)]
    late = [(b"x-forwarded-%d" % number, b"1") for number in range(MOST_REMEMBERED)]
    kept = upstream_headers([*invented, *late], keep_keys=False, decodable=True)
    assert kept == invented
    assert answer_headers([*invented, (b"access-control-odd", b"1")], []) == invented
    assert max(len(WITHOUT_KEYS), len(COMES_DOWN)) <= MOST_REMEMBERED


def test_a_long_name_is_not_remembered() -> None:
    name = b"x-" + b"a" * LONGEST_REMEMBERED
    assert upstream_headers([(name, b"1")], keep_keys=False, decodable=False) == [(name, b"1")]
    assert name not in WITHOUT_KEYS


def test_a_key_goes_through_only_where_that_is_asked_for_and_spelt_plainly() -> None:
    headers = [(b"x-api-key", b"a"), (b"x_api_key", b"b"), (b"accept", b"c")]
    assert upstream_headers(headers, keep_keys=True, decodable=False) == [(b"x-api-key", b"a"), (b"accept", b"c")]
    assert upstream_headers(headers, keep_keys=False, decodable=False) == [(b"accept", b"c")]
