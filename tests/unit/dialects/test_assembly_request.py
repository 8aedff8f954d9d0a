"""Which calls are streamed on their caller's behalf, and what is sent then."""

from dataclasses import replace

import orjson
import pytest

from hedgerow.dialects.anthropic import AnthropicMessages
from hedgerow.dialects.gemini import Gemini
from hedgerow.dialects.openai_chat import OpenAIChat
from hedgerow.dialects.openai_responses import OpenAIResponses
from hedgerow.values.request import WireRequest

ASKED = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}


def streamed(body: bytes | None) -> bytes | None:
    return OpenAIChat().streamed(WireRequest(method="POST", path="/v1/chat/completions", headers=(), body=body))


def streamed_with(**fields: object) -> dict[str, object] | None:
    body = streamed(orjson.dumps({**ASKED, **fields}))
    return None if body is None else orjson.loads(body)


def test_a_stream_with_usage_is_asked_for_and_nothing_else_changes():
    assert streamed_with(seed=7) == {**ASKED, "seed": 7, "stream": True, "stream_options": {"include_usage": True}}


@pytest.mark.parametrize("stream", [False, None])
def test_an_explicit_no_is_no_stream_either(stream):
    assert streamed_with(stream=stream)["stream"] is True


def test_other_stream_options_are_kept():
    options = {"include_obfuscation": False, "include_usage": False}
    assert streamed_with(stream_options=options)["stream_options"] == {**options, "include_usage": True}


@pytest.mark.parametrize(
    "fields",
    [
        {"n": 3},
        {"logprobs": True, "top_logprobs": 5},
        {"prediction": {"type": "content", "content": "x"}},
        {"response_format": {"type": "json_object"}},
        {"functions": [{"name": "f"}]},
        {"tools": [{"type": "function", "function": {"name": "f"}}, {"type": "custom", "custom": {"name": "g"}}]},
        {"modalities": ["text"], "audio": None},
        {"best_of": 1, "use_beam_search": False, "echo": False, "prompt_logprobs": None},
        {"store": True, "service_tier": "priority", "return_token_ids": True, "timings_per_token": True},
    ],
)
def test_what_a_stream_says_in_full_is_streamed(fields):
    assert streamed_with(**fields) is not None


@pytest.mark.parametrize(
    "fields",
    [
        {"stream": True},
        {"stream": "yes"},
        {"stream_options": "all"},
        {"modalities": ["text", "audio"], "audio": {"voice": "alloy", "format": "wav"}},
        {"modalities": ["image", "text"]},
        {"audio": {"voice": "alloy", "format": "wav"}},
        {"best_of": 2},
        {"use_beam_search": True},
        {"prompt_logprobs": 0},
        {"echo": True},
        {"return_progress": True},
        {"web_search_options": {}},
        {"tools": [{"type": "web_search"}]},
        {"model": "gpt-5-search-api"},
        {"model": "x/y:online"},
        {"plugins": [{"id": "web"}]},
        {"data_sources": [{"type": "azure_search"}]},
        {"a_field_of_next_year": 1},
    ],
    ids=str,
)
def test_what_a_stream_would_not_say_in_full_goes_as_it_was_asked(fields):
    assert streamed_with(**fields) is None


@pytest.mark.parametrize("body", [None, b"", b"{", b"[]", b'{"temperature": NaN}', b'{"user": "\\ud83c"}'])
def test_a_body_that_cannot_be_written_again_goes_as_it_was_asked(body):
    assert streamed(body) is None


@pytest.mark.parametrize(
    ("dialect", "path"),
    [
        (OpenAIChat(), "/v1/chat/completions"),
        (OpenAIResponses(), "/v1/responses"),
        (AnthropicMessages(), "/v1/messages"),
        (Gemini(), "/v1beta/models/m:generateContent"),
    ],
    ids=lambda given: getattr(given, "name", ""),
)
def test_a_body_under_an_aws_signature_goes_as_it_was_asked(dialect, path):
    plain = WireRequest(method="POST", path=path, headers=(), body=b"{}")
    signature = (b"authorization", b"AWS4-HMAC-SHA256 Credential=x, Signature=y")
    assert dialect.streamed(plain) is not None
    assert dialect.streamed(replace(plain, headers=(signature,))) is None
