"""Which dialect reads which call."""

import pytest

from hedgerow.dialects.generic import ByteCounter
from hedgerow.dialects.registry import DIALECTS, GENERIC, dialect_for
from hedgerow.values.request import WireRequest


def request(method: str, path: str) -> WireRequest:
    return WireRequest(method=method, path=path, headers=(), body=b"{}")


@pytest.mark.parametrize(
    ("method", "path", "name"),
    [
        ("POST", "/v1/chat/completions", "openai_chat"),
        ("post", "/chat/completions/", "openai_chat"),
        ("POST", "/api/v1/chat/completions", "openai_chat"),
        ("POST", "/openai/deployments/gpt/chat/completions", "openai_chat"),
        ("POST", "/v1beta/openai/chat/completions", "openai_chat"),
        ("POST", "/v1/embeddings", "openai_embeddings"),
        ("POST", "/openai/deployments/ada/embeddings", "openai_embeddings"),
        ("GET", "/v1/chat/completions", "generic"),
        ("GET", "/v1/chat/completions/chatcmpl-1", "generic"),
        ("DELETE", "/v1/chat/completions/chatcmpl-1", "generic"),
        ("POST", "/v1/chat/completions/chatcmpl-1", "generic"),
        ("POST", "/v1/completions", "generic"),
        ("POST", "/v1/agents/completions", "generic"),
        ("POST", "/v1/batches", "generic"),
        ("GET", "/v1/embeddings", "generic"),
        ("POST", "/", "generic"),
        ("POST", "", "generic"),
    ],
)
def test_a_call_is_read_by_the_dialect_of_its_path(method, path, name):
    assert dialect_for(request(method, path)).name == name


def test_dialects_have_distinct_names():
    names = [dialect.name for dialect in (*DIALECTS, GENERIC)]
    assert len(set(names)) == len(names)


def test_an_unknown_call_is_never_run_twice_and_its_answer_is_not_judged():
    facts = GENERIC.facts(request("POST", "/v1/files"))
    assert (facts.forbidden, facts.answer_known) == (("endpoint",), False)
    assert not GENERIC.recognises(request("POST", "/v1/files"))
    assert GENERIC.failure(502, [], b"").status == 502


def test_an_unknown_answer_is_counted_and_ends_cleanly():
    reader = GENERIC.reader(GENERIC.facts(request("GET", "/")), [])
    assert isinstance(reader, ByteCounter)
    reader.feed(b"abc")
    reader.feed(b"de")
    assert reader.bytes_seen == 5
    assert not reader.facts.ended
    reader.finish()
    assert reader.facts.ended
    assert not reader.facts.content
