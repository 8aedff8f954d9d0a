"""Embeddings: facts and answers."""

import orjson
import pytest

from hedgerow.dialects.openai_embeddings import OpenAIEmbeddings
from hedgerow.values.answer import AnswerFacts, Usage
from hedgerow.values.request import RequestFacts, WireRequest


def facts_of(body: object) -> RequestFacts:
    content = body if isinstance(body, bytes) or body is None else orjson.dumps(body)
    return OpenAIEmbeddings().facts(WireRequest(method="POST", path="/v1/embeddings", headers=(), body=content))


def read(body: bytes) -> AnswerFacts:
    reader = OpenAIEmbeddings().reader(facts_of({}), [(b"content-type", b"application/json")])
    reader.feed(body[:10])
    reader.feed(body[10:])
    reader.finish()
    return reader.facts


@pytest.mark.parametrize(
    ("text", "tokens"), [("x" * 400, 100), (["x" * 40, "y" * 40], 20), ([1, 2, 3], 3), ([[1, 2], [3]], 3), (None, 0)]
)
def test_a_request_is_safe_to_run_twice_whatever_its_input_is(text, tokens):
    facts = facts_of({"model": "text-embedding-3-small", "input": text, "dimensions": 8, "new_field": 1})
    assert facts == RequestFacts(
        dialect="openai_embeddings", model="text-embedding-3-small", input_tokens_estimate=tokens, answer_known=True
    )


def test_a_body_that_cannot_be_read_is_never_sent_twice():
    assert facts_of(b"{").forbidden == ("unreadable_body",)
    assert facts_of(None).forbidden == ("body_not_replayable",)


def test_an_answer_with_vectors_is_valid():
    body = {
        "object": "list",
        "model": "m",
        "data": [{"embedding": [0.1]}],
        "usage": {"prompt_tokens": 5, "total_tokens": 5},
    }
    facts = read(orjson.dumps(body))
    assert facts.valid
    assert facts.content
    assert (facts.model, facts.usage) == ("m", Usage(input_tokens=5, output_tokens=0))


@pytest.mark.parametrize("body", [b'{"data":[]}', b'{"data":null}', b"{}", b"7", b"[]"])
def test_an_answer_without_vectors_ends_but_is_not_useful(body):
    facts = read(body)
    assert facts.ended
    assert not facts.useful


@pytest.mark.parametrize("body", [b"", b'{"data":[{"embed'])
def test_a_truncated_answer_has_not_ended(body):
    assert not read(body).ended


@pytest.mark.parametrize(
    "body", [b'{"error":{"code":503}}', b'{"object":"error","code":503}', b'[{"error":{"code":503}}]']
)
def test_an_error_inside_a_200_is_a_failure(body):
    facts = read(body)
    assert facts.failure is not None
    assert facts.failure.status == 503
    assert not facts.valid


def test_its_failures_are_read():
    assert OpenAIEmbeddings().failure(503, [], b"").status == 503
