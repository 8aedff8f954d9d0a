"""What a Gemini request asks: from its path, its body in either spelling, and its headers."""

from typing import Any

import orjson
import pytest

from hedgerow.dialects.gemini import Gemini
from hedgerow.dialects.gemini_whole import GeminiWhole, GeminiWholeReader
from hedgerow.dialects.registry import dialect_for
from hedgerow.values.request import RequestFacts, StreamedRequest, WireRequest

HI = [{"role": "user", "parts": [{"text": "hello there, how are you?"}]}]
WHOLE = "/v1beta/models/gemini-x:generateContent"
STREAM = "/v1beta/models/gemini-x:streamGenerateContent"


def request(
    path: str = WHOLE, body: Any = None, headers: tuple[tuple[bytes, bytes], ...] = (), **fields: Any
) -> WireRequest:
    content = orjson.dumps({"contents": HI, **fields} if body is None else body)
    return WireRequest(method="POST", path=path, headers=headers, body=content)


def facts(path: str = WHOLE, **fields: Any) -> RequestFacts:
    return Gemini().facts(request(path, **fields))


@pytest.mark.parametrize(
    ("path", "dialect", "model", "stream"),
    [
        (WHOLE, "gemini", "gemini-x", False),
        (STREAM, "gemini", "gemini-x", True),
        ("/v1/models/gemini-x:generateContent", "gemini", "gemini-x", False),
        ("/v1beta/tunedModels/mine-1:streamGenerateContent", "gemini", "tunedModels/mine-1", True),
        (
            "/v1beta1/projects/p/locations/l/publishers/google/models/gemini-x:streamGenerateContent",
            "gemini",
            "gemini-x",
            True,
        ),
        ("/v1/projects/p/locations/l/endpoints/123:generateContent", "gemini", "endpoints/123", False),
        ("/behind/a/gateway/v1beta/models/gemini-x:generateContent", "gemini", "gemini-x", False),
        ("/models/gemini-x:generateContent", "gemini", "gemini-x", False),
        ("/v1beta/models/e:embedContent", "gemini_whole", "e", False),
        ("/v1beta/models/e:batchEmbedContents", "gemini_whole", "e", False),
        ("/v1beta/models/gemini-x:countTokens", "gemini_whole", "gemini-x", False),
    ],
)
def test_model_and_stream_are_read_from_the_path(path: str, dialect: str, model: str, stream: bool) -> None:
    asked = request(path)
    assert dialect_for(asked).name == dialect
    read = dialect_for(asked).facts(asked)
    assert (read.dialect, read.model, read.stream, read.answer_known) == (dialect, model, stream, True)
    assert (read.forbidden, read.needs) == ((), ())


@pytest.mark.parametrize(
    "path",
    [
        "/v1beta/models",
        "/v1beta/models/gemini-x",
        "/v1beta/models/imagen:predict",
        "/v1beta/models/veo:predictLongRunning",
        "/v1beta/models/e:asyncBatchEmbedContent",
        "/v1beta/models/gemini-x:batchGenerateContent",
        "/v1beta/cachedContents",
        "/v1beta/interactions",
        "/upload/v1beta/files",
    ],
)
def test_everything_else_of_googles_is_not_ours_to_hedge(path: str) -> None:
    assert dialect_for(request(path)).facts(request(path)).forbidden == ("endpoint",)


@pytest.mark.parametrize("camel", [True, False])
def test_facts_are_read_in_both_spellings(camel: bool) -> None:
    settings = {"maxOutputTokens": 99, "thinkingConfig": {"thinkingLevel": "HIGH"}}
    fields: dict[str, Any] = {"generationConfig": settings, "cachedContent": "cachedContents/1"}
    if not camel:
        settings = {"max_output_tokens": 99, "thinking_config": {"thinking_level": "HIGH"}}
        fields = {"generation_config": settings, "cached_content": "cachedContents/1"}
    read = facts(**fields)
    assert (read.max_output_tokens, read.effort, read.cached_context) == (99, "high", True)
    assert (read.forbidden, read.needs) == ((), ())


@pytest.mark.parametrize(
    ("thinking", "effort"),
    [
        ({"thinkingBudget": 0}, "none"),
        ({"thinkingBudget": -1}, "dynamic"),
        ({"thinkingBudget": 512}, "budget_1k"),
        ({"thinkingBudget": 24_000}, "budget_32k"),
        ({"thinkingLevel": "LOW", "thinkingBudget": 5}, "low"),
        ({"includeThoughts": True}, None),
        ({}, None),
        (None, None),
    ],
)
def test_thinking_is_effort(thinking: Any, effort: str | None) -> None:
    assert facts(generationConfig={"thinkingConfig": thinking}).effort == effort


def test_tools_are_seen_and_functions_are_safe() -> None:
    read = facts(tools=[{"functionDeclarations": [{"name": "f"}]}, {"computer_use": {}}])
    assert (read.tools, read.forbidden, read.needs) == (True, (), ())
    assert facts().tools is False


def test_input_is_estimated_from_texts_attachments_and_declarations() -> None:
    assert facts().input_tokens_estimate == 7
    attached = [{"parts": [{"inlineData": {"data": "A" * 99_999}}, {"fileData": {"fileUri": "gs://x"}}]}]
    assert facts(contents=attached).input_tokens_estimate == 1600
    assert facts(system_instruction={"parts": [{"text": "x" * 400}]}).input_tokens_estimate == 107
    assert facts(tools=[{"functionDeclarations": [{"name": "f" * 400}]}]).input_tokens_estimate > 100


@pytest.mark.parametrize("content", [b"", b"[]", b"not json", None])
def test_a_body_that_cannot_be_read_is_never_sent_twice(content: bytes | None) -> None:
    for dialect, path in ((Gemini(), STREAM), (GeminiWhole(), "/v1/models/e:embedContent")):
        asked = WireRequest(method="POST", path=path, headers=(), body=content)
        assert dialect.facts(asked).forbidden == ("body_not_replayable" if content is None else "unreadable_body",)


def test_embeddings_are_measured_over_all_their_texts() -> None:
    body = {"requests": [{"model": "models/e", "content": {"parts": [{"text": "x" * 40}]}}] * 3}
    asked = request("/v1beta/models/e:batchEmbedContents", body=body)
    assert GeminiWhole().facts(asked).input_tokens_estimate == 30


@pytest.mark.parametrize(
    ("body", "useful", "failed"),
    [
        (b'{"embeddings":[{"values":[0.1]}]}', True, False),
        (b'{"embedding":{"values":[0.1]}}', True, False),
        (b'{"totalTokens":3}', True, False),
        (b'{"totalTokens":0}', True, False),
        (b'{"embeddings":[]}', False, False),
        (b'{"error":{"code":503,"status":"UNAVAILABLE"}}', False, True),
        (b'[{"error":{"code":503,"status":"UNAVAILABLE"}}]', False, True),
        (b'{"embeddings":[{"val', False, False),
    ],
)
def test_answers_of_one_body(body: bytes, useful: bool, failed: bool) -> None:
    reader = GeminiWholeReader([(b"content-type", b"application/json")])
    reader.feed(body)
    reader.finish()
    assert (reader.facts.valid, reader.facts.failure is not None) == (useful, failed)


def test_a_stream_is_asked_for_at_its_own_address() -> None:
    asked = request()
    assert Gemini().streamed(asked) == StreamedRequest(
        body=asked.body or b"", ending=(":generateContent", ":streamGenerateContent"), query=(("alt", "sse"),)
    )


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        (STREAM, {}),
        ("/v1beta/models/gemini-x-image:generateContent", {}),
        (WHOLE, {"generationConfig": {"candidateCount": 2}}),
        (WHOLE, {"generationConfig": {"responseLogprobs": True}}),
        (WHOLE, {"generationConfig": {"logprobs": 0}}),
        (WHOLE, {"generationConfig": {"responseModalities": ["AUDIO"]}}),
        (WHOLE, {"generationConfig": {"response_modalities": ["TEXT", "IMAGE"]}}),
        (WHOLE, {"generationConfig": {"somethingNew": 1}}),
        (WHOLE, {"somethingNew": 1}),
        (WHOLE, {"tools": [{"googleSearch": {}}]}),
        (WHOLE, {"tools": [{"somethingNew": {}}]}),
        (WHOLE, {"tool_config": {"function_calling_config": {"stream_function_call_arguments": True}}}),
    ],
)
def test_what_a_stream_would_not_say_in_full_goes_as_it_was_asked(path: str, fields: dict[str, Any]) -> None:
    assert Gemini().streamed(request(path, **fields)) is None


@pytest.mark.parametrize(
    ("status", "said", "refused"),
    [
        (400, "streamGenerateContent is not supported for this model", True),
        (400, "Streaming is not supported", True),
        (400, "contents is not specified", False),
        (404, "models/x is not found, or is not supported for streamGenerateContent", False),
        (503, "streamGenerateContent is not available", False),
    ],
)
def test_models_without_streams_are_told_from_other_errors(status: int, said: str, refused: bool) -> None:
    body = orjson.dumps({"error": {"code": status, "message": said, "status": "INVALID_ARGUMENT"}})
    assert Gemini().refuses_streaming(status, body) is refused
