"""Errors that object to being asked for a stream, and errors that object to something else."""

import orjson
import pytest

from hedgerow.dialects.openai_chat import OpenAIChat

ECHO = {"model": "m", "messages": [], "stream": True, "stream_options": {"include_usage": True}}


def openai(message: str, param: str | None = None, code: str | None = None) -> object:
    return {"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}}


def pydantic(*loc: object, msg: str = "Extra inputs are not permitted", kind: str = "extra_forbidden") -> object:
    return {"type": kind, "loc": ["body", *loc], "msg": msg, "input": ECHO}


def refuses(said: object, status: int = 400) -> bool:
    return OpenAIChat().refuses_streaming(status, said if isinstance(said, bytes) else orjson.dumps(said))


@pytest.mark.parametrize(
    "said",
    [
        openai("Your organization must be verified to stream this model.", "stream", "unsupported_value"),
        openai("Unsupported value: 'stream' does not support true with this model.", "stream", "unsupported_value"),
        openai("Unknown parameter: 'stream_options'.", "stream_options", "unknown_parameter"),
        openai("Unknown parameter: 'stream_options.include_usage'.", "stream_options.include_usage"),
        openai("Unrecognized request argument supplied: stream_options"),
        openai("Unrecognized request argument supplied: stream"),
        openai("json mode is not supported with stream=true", "response_format"),
        openai("Streaming is not supported for this model.", "model"),
        openai("property 'stream_options' is unsupported"),
        {"error": {"code": 400, "message": "Cannot use tools with stream", "type": "invalid_request_error"}},
        {"error": {"code": 400, "message": "Cannot use custom grammar with streaming.", "type": "x"}},
        {"message": "This model doesn't support tool use in streaming mode."},
        {"message": "The model is not supported for streaming"},
        {"detail": [pydantic("stream_options")]},
        {"detail": [pydantic("ChatCompletionRequest", "stream_options")]},
        {"detail": [pydantic("model", msg="Field required"), pydantic("stream_options", "include_usage")]},
        {"object": "error", "message": {"detail": [pydantic("stream_options")]}, "type": "invalid_request_error"},
        {"detail": [pydantic(msg="Value error, Stream options can only be defined when `stream=True`.")]},
        {"detail": "stream must be false"},
        {
            "object": "error",
            "message": str(
                [{"type": "extra_forbidden", "loc": ("body", "stream_options"), "msg": "Extra", "input": ECHO}]
            ),
        },
        {
            "error": {
                "message": "Provider returned error",
                "code": 400,
                "metadata": {"raw": orjson.dumps(openai("stream is not supported", "stream")).decode()},
            }
        },
        b"Streaming is not supported by this deployment.",
    ],
)
def test_an_objection_to_the_stream_is_seen(said):
    assert refuses(said)
    assert refuses(said, 422)


@pytest.mark.parametrize(
    "said",
    [
        openai("This model's maximum context length is 8192 tokens.", "messages", "context_length_exceeded"),
        openai("Invalid value for 'messages[0].content': \"stream\" is not supported", "messages[0].content"),
        openai("Invalid schema for function 'stream': not a valid schema", "tools[0].function.parameters"),
        openai("Invalid schema for function 'open_stream': streaming_url must not be empty"),
        openai("Unsupported parameter: 'max_tokens' is not supported with this model.", "max_tokens"),
        openai("Could not parse the JSON body of your request: the stream ended early."),
        openai("The request stream is not readable"),
        openai("upstream request was not accepted"),
        openai("The model `streamer-1` does not exist", None, "model_not_found"),
        openai("", None),
        {"detail": [pydantic("messages", msg="Field required", kind="missing")]},
        {"detail": [pydantic("messages", 0, "stream", msg="Extra inputs are not permitted")]},
        {
            "object": "error",
            "message": str([{"type": "missing", "loc": ("body", "messages"), "msg": "Field required", "input": ECHO}]),
        },
        {"error": {"message": "bad", "input": ECHO, "ctx": {"error": "stream_options"}}},
        ECHO,
        b"",
        b"<html>400 Bad Request</html>",
    ],
)
def test_an_error_about_something_else_is_left_alone(said):
    assert not refuses(said)


@pytest.mark.parametrize("status", [401, 403, 404, 429, 500, 503])
def test_other_statuses_are_never_about_the_stream(status):
    assert not refuses(openai("Unknown parameter: 'stream_options'.", "stream_options"), status)


def test_an_error_nested_deeper_than_anyone_means_is_no_trouble():
    assert not refuses(b'{"error":' * 900 + b"{}" + b"}" * 900)
