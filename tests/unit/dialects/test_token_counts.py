"""Calls that only count: always safe, read at their end."""

import pytest

from hedgerow.dialects.lenient_json import whole_number
from hedgerow.dialects.registry import dialect_for
from hedgerow.dialects.token_counts import TokenCountReader, TokenCounts
from hedgerow.values.request import WireRequest

JSON = [(b"content-type", b"application/json")]


def request(path: str, body: bytes | None = b'{"model": "m", "tomorrow": 1}') -> WireRequest:
    return WireRequest(method="POST", path=path, headers=(), body=body)


@pytest.mark.parametrize(
    "path", ["/v1/messages/count_tokens", "/v1/responses/input_tokens", "/openai/responses/input_tokens/"]
)
def test_a_count_is_safe_whatever_it_counts(path):
    dialect = dialect_for(request(path))
    assert dialect.name == "token_counts"
    facts = dialect.facts(request(path))
    assert (facts.model, facts.forbidden, facts.needs, facts.answer_known) == ("m", (), (), True)


def test_a_body_that_cannot_be_read_is_not_sent_twice():
    assert TokenCounts().facts(request("/v1/messages/count_tokens", None)).forbidden == ("body_not_replayable",)


@pytest.mark.parametrize(
    ("body", "valid", "failed"),
    [
        (b'{"input_tokens": 0}', True, False),
        (b'{"object": "response.input_tokens", "input_tokens": 7}', True, False),
        (b'{"type": "error", "error": {"type": "overloaded_error"}}', False, True),
        (b'{"input_tok', False, False),
        (b"[]", False, False),
        (b"", False, False),
    ],
)
def test_an_answer_is_one_with_a_count(body, valid, failed):
    reader = TokenCountReader(JSON)
    reader.feed(body)
    assert not reader.facts.ended
    reader.finish()
    assert (reader.facts.valid, reader.facts.failure is not None) == (valid, failed)


def test_its_failures_are_read():
    assert TokenCounts().failure(529, [], b"").status == 529


@pytest.mark.parametrize(
    ("said", "count"), [(7, 7), (2.0, 2), (2**53, 2**53), (2**53 + 1, None), (1e300, None), (-1, None)]
)
def test_a_count_is_a_whole_number_that_every_reader_of_json_can_hold(said: float, count: int | None) -> None:
    assert whole_number(said) == count
