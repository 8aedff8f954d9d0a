"""What an OpenAI response request asks, and whether it is safe to run twice."""

from typing import Any, get_args, get_type_hints

import openai.types.beta
import openai.types.responses
import orjson
import pytest
from openai.types.beta import response_create_params as beta_response_create_params
from openai.types.responses import response_create_params

from hedgerow.dialects.openai_responses import OpenAIResponses
from hedgerow.dialects.openai_responses_safety import (
    ACTING_TOOLS,
    CLIENT_TOOLS,
    READING_TOOLS,
    RULES,
    SAFE_FIELDS,
)
from hedgerow.values.request import RequestFacts, WireRequest

PLAIN = {"model": "gpt-5.6-mini", "input": "Hello", "store": False}
FUNCTION = {"type": "function", "name": "f", "parameters": {}}


def request(body: object = None, *, headers: tuple[tuple[bytes, bytes], ...] = ()) -> WireRequest:
    content = body if isinstance(body, bytes) or body is None else orjson.dumps(body)
    return WireRequest(method="POST", path="/v1/responses", headers=headers, body=content)


def facts_of(headers: tuple[tuple[bytes, bytes], ...] = (), **fields: object) -> RequestFacts:
    return OpenAIResponses().facts(request({**PLAIN, **fields}, headers=headers))


def test_a_plain_request_is_safe_and_its_facts_are_read():
    facts = facts_of(stream=True, max_output_tokens=200, reasoning={"effort": "low"}, prompt_cache_key="k")
    assert facts == RequestFacts(
        dialect="openai_responses",
        model="gpt-5.6-mini",
        stream=True,
        effort="low",
        cached_context=True,
        input_tokens_estimate=2,
        max_output_tokens=200,
        answer_known=True,
    )


@pytest.mark.parametrize("store", [{}, {"store": None}, {"store": True}])
def test_a_response_is_stored_unless_the_request_says_otherwise(store):
    body = {"model": "m", "input": "x", **store}
    assert OpenAIResponses().facts(request(body)).needs == ("store",)


def test_the_input_estimate_is_a_quarter_of_the_characters_of_all_items():
    message = {"role": "user", "content": [{"type": "input_text", "text": "x" * 400}]}
    image = {"role": "user", "content": [{"type": "input_image", "image_url": "data:" + "A" * 400_000}]}
    call = {"type": "function_call", "name": "f", "arguments": "x" * 400}
    result = {"type": "function_call_output", "output": "x" * 400}
    assert facts_of(instructions="x" * 400, input="").input_tokens_estimate == 100
    assert facts_of(input=[message, call, result]).input_tokens_estimate == 300
    assert facts_of(input=[image]).input_tokens_estimate == 800
    assert facts_of(tools=[{**FUNCTION, "description": "x" * 4000}]).input_tokens_estimate >= 1000


@pytest.mark.parametrize("value", [None, 7, [7, None, {"content": 7}], [{"output": {"x": 1}}]])
def test_input_of_any_shape_does_not_raise(value):
    assert facts_of(input=value).input_tokens_estimate == 0


@pytest.mark.parametrize(
    ("fields", "forbidden", "needs"),
    [
        ({"tools": [FUNCTION, {"type": "custom", "name": "g"}, {"type": "apply_patch"}]}, (), ()),
        ({"tools": [{"type": "local_shell"}, {"type": "computer"}]}, (), ()),
        ({"tools": [{"type": "namespace", "name": "crm", "tools": [FUNCTION]}]}, (), ()),
        ({"tools": [{"type": "namespace", "name": "crm", "tools": [{"type": "mcp"}]}]}, ("tool:mcp",), ()),
        ({"tools": [{"type": "shell", "environment": {"type": "local"}}]}, (), ()),
        ({"tools": [{"type": "shell"}]}, ("tool:shell",), ()),
        ({"tools": [{"type": "shell", "environment": {"type": "container_auto"}}]}, ("tool:shell",), ()),
        ({"tools": [{"type": "tool_search", "execution": "client"}]}, (), ()),
        ({"tools": [{"type": "tool_search"}]}, (), ("server_tools",)),
        ({"tools": [{"type": "web_search"}, {"type": "file_search"}]}, (), ("server_tools",)),
        ({"tools": [{"type": "code_interpreter"}]}, ("tool:code_interpreter",), ()),
        ({"tools": [{"type": "image_generation"}]}, ("tool:image_generation",), ()),
        ({"tools": [{"type": "mcp", "require_approval": "never"}]}, ("tool:mcp",), ()),
        ({"tools": [{"type": "teleport"}, 7]}, ("unknown_tool:teleport", "unknown_tool:unreadable"), ()),
        ({"input": [{"type": "additional_tools", "tools": [{"type": "mcp"}]}]}, ("tool:mcp",), ()),
        ({"background": True}, ("background",), ()),
        ({"background": False}, (), ()),
        ({"conversation": "conv_1"}, ("conversation",), ()),
        ({"previous_response_id": "resp_1"}, (), ()),
        ({"previous_response_id": "resp_1", "store": True}, (), ("store",)),
        ({"prompt": {"id": "pmpt_1"}}, ("prompt",), ()),
        ({"prompt_cache_options": {"prewarm": True}}, ("prewarm",), ()),
        ({"prompt_cache_options": {"mode": "explicit"}}, (), ()),
        ({"generate": False}, ("prewarm",), ()),
        ({"multi_agent": {"enabled": True}}, ("multi_agent",), ()),
        ({"multi_agent": {"enabled": False}}, (), ()),
        ({"service_tier": "flex"}, ("flex",), ()),
        ({"service_tier": "ultrafast"}, ("ultrafast",), ()),
        ({"service_tier": "priority"}, (), ()),
        ({"model": "gpt-5-search-api"}, (), ("server_tools",)),
        ({"tomorrow": None}, ("unknown_field:tomorrow",), ()),
    ],
)
def test_what_is_not_safe_to_run_twice_says_why(fields, forbidden, needs):
    facts = facts_of(**fields)
    assert (facts.forbidden, facts.needs) == (forbidden, needs)


def test_headers_that_make_a_twin_useless_forbid_it():
    assert facts_of(headers=((b"x-openrouter-cache", b"true"),)).forbidden == ("cached",)


@pytest.mark.parametrize("module", [response_create_params, beta_response_create_params], ids=["stable", "beta"])
def test_every_field_the_sdk_can_send_is_classified(module):
    sent: set[str] = set()
    for params in (module.ResponseCreateParamsStreaming, module.ResponseCreateParamsNonStreaming):
        sent |= set(get_type_hints(params))
    assert len(sent) > 20
    assert sent - {"betas"} - SAFE_FIELDS - set(RULES) == set()


@pytest.mark.parametrize(
    "tools", [openai.types.responses.ToolParam, openai.types.beta.BetaToolParam], ids=["stable", "beta"]
)
def test_every_tool_the_sdk_can_send_is_classified(tools: Any):
    names = {name for tool in get_args(tools) for name in literals(get_type_hints(tool).get("type"))}
    assert len(names) > 12
    assert names - CLIENT_TOOLS - READING_TOOLS - ACTING_TOOLS == {"namespace"}


def literals(hint: Any) -> list[str]:
    """The texts of a Literal, however it is wrapped."""
    return [each for each in get_args(hint) if isinstance(each, str)] + [
        inner for each in get_args(hint) if not isinstance(each, str) for inner in literals(each)
    ]


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b"\xff"])
def test_a_body_that_cannot_be_read_is_never_sent_twice(body):
    assert OpenAIResponses().facts(request(body)).forbidden == ("unreadable_body",)
    assert OpenAIResponses().facts(request(None)).forbidden == ("body_not_replayable",)


@pytest.mark.parametrize(
    ("path", "known"),
    [
        ("/v1/responses", True),
        ("/openai/v1/responses", True),
        ("/openai/responses/", True),
        ("/v1/responses/resp_1/cancel", False),
        ("/v1/responses/compact", False),
        ("/v1/responses/input_tokens", False),
    ],
)
def test_it_reads_responses_and_nothing_else(path, known):
    wire = WireRequest(method="POST", path=path, headers=(), body=b"{}")
    assert OpenAIResponses().recognises(wire) is known


@pytest.mark.parametrize(
    "fields", [{"stream": True}, {"background": True}, {"tomorrow": 1}, {"stream": "yes"}], ids=str
)
def test_what_cannot_be_asked_for_as_a_stream_goes_as_it_was_asked(fields):
    assert OpenAIResponses().streamed(request({**PLAIN, **fields})) is None
    assert OpenAIResponses().streamed(request(b"nonsense")) is None


def test_a_call_asked_for_as_a_stream_differs_in_nothing_else():
    streamed = OpenAIResponses().streamed(request(PLAIN))
    assert orjson.loads(streamed or b"") == {**PLAIN, "stream": True}
