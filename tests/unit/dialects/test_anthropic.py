"""What an Anthropic message asks, and whether it is safe to run twice."""

import re
from typing import Any, get_args, get_type_hints

import anthropic.types
import anthropic.types.beta
import orjson
import pytest
from anthropic.types import message_create_params
from anthropic.types.beta import message_create_params as beta_message_create_params

from hedgerow.dialects.anthropic import AnthropicMessages
from hedgerow.dialects.anthropic_safety import ACTING_TOOL, CLIENT_TOOL, READING_TOOL, RULES, SAFE_FIELDS
from hedgerow.values.failure import FailureKind
from hedgerow.values.request import RequestFacts, WireRequest

PATH = "/v1/messages"
PLAIN = {"model": "claude-sonnet-5", "max_tokens": 200, "messages": [{"role": "user", "content": "Hello"}]}
HEADERS_OF_THE_SDK = {"betas", "user_profile_id", "workspace_id"}  # parameters that it does not put into the body
EPHEMERAL = {"type": "ephemeral"}


def request(body: object = None, *, path: str = PATH, headers: tuple[tuple[bytes, bytes], ...] = ()) -> WireRequest:
    content = body if isinstance(body, bytes) or body is None else orjson.dumps(body)
    return WireRequest(method="POST", path=path, headers=headers, body=content)


def facts_of(headers: tuple[tuple[bytes, bytes], ...] = (), path: str = PATH, **fields: object) -> RequestFacts:
    return AnthropicMessages().facts(request({**PLAIN, **fields}, headers=headers, path=path))


def test_a_plain_request_is_safe_and_its_facts_are_read():
    assert facts_of(stream=True) == RequestFacts(
        dialect="anthropic",
        model="claude-sonnet-5",
        stream=True,
        input_tokens_estimate=2,
        max_output_tokens=200,
        answer_known=True,
    )


@pytest.mark.parametrize(
    ("fields", "effort"),
    [
        ({}, None),
        ({"thinking": {"type": "disabled"}}, "none"),
        ({"thinking": {"type": "adaptive"}}, "adaptive"),
        ({"thinking": {"type": "enabled", "budget_tokens": 1024}}, "budget:8k"),
        ({"thinking": {"type": "enabled", "budget_tokens": 30_000}}, "budget:32k"),
        ({"output_config": {"effort": "high"}}, "high"),
        ({"output_config": {"effort": "low"}, "thinking": {"type": "adaptive"}}, "low"),
        ({"output_config": {"effort": "low"}, "thinking": {"type": "disabled"}}, "none"),
        ({"thinking": "x", "output_config": "y"}, None),
    ],
)
def test_effort_is_what_the_caller_asked_of_thinking(fields, effort):
    assert facts_of(**fields).effort == effort


@pytest.mark.parametrize(
    "fields",
    [
        {"cache_control": EPHEMERAL},
        {"system": [{"type": "text", "text": "x", "cache_control": EPHEMERAL}]},
        {"tools": [{"name": "f", "input_schema": {}, "cache_control": EPHEMERAL}]},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "x", "cache_control": EPHEMERAL}]}]},
        {
            "messages": [
                {
                    "role": "user",
                    "content": [{"type": "tool_result", "content": [{"type": "text", "cache_control": EPHEMERAL}]}],
                }
            ]
        },
    ],
)
def test_a_marked_cache_is_seen_wherever_it_is(fields):
    facts = facts_of(**fields)
    assert facts.cached_context
    assert (facts.forbidden, facts.needs) == ((), ())
    assert not facts_of().cached_context


def test_the_input_estimate_is_a_quarter_of_the_characters():
    text = {"type": "text", "text": "x" * 400}
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * 400_000}}
    plain_text = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x" * 4000}}
    called = {"type": "tool_use", "id": "1", "name": "f", "input": {"a": "x" * 396}}
    result = {"type": "tool_result", "tool_use_id": "1", "content": [text]}
    assert facts_of(system="x" * 400, messages=[]).input_tokens_estimate == 100
    assert facts_of(messages=[{"role": "user", "content": [text, text]}]).input_tokens_estimate == 200
    assert facts_of(messages=[{"role": "user", "content": [image]}]).input_tokens_estimate == 800
    assert facts_of(messages=[{"role": "user", "content": [plain_text]}]).input_tokens_estimate == 1000
    assert facts_of(messages=[{"role": "assistant", "content": [called]}]).input_tokens_estimate in range(99, 104)
    assert facts_of(messages=[{"role": "user", "content": [result]}]).input_tokens_estimate == 100
    assert facts_of(tools=[{"name": "f", "description": "x" * 4000}]).input_tokens_estimate >= 1000


@pytest.mark.parametrize("messages", [None, 7, "x", [7, None, {"content": 7}, {"content": [7, {"source": 7}]}]])
def test_messages_of_any_shape_do_not_raise(messages):
    assert facts_of(messages=messages).input_tokens_estimate <= 1


@pytest.mark.parametrize("field", ["tools", "system", "messages"])
def test_what_json_cannot_write_again_does_not_raise(field):
    body = b'{"model": "m", "%s": [{"input": "\\ud800", "n": 123456789012345678901234567890}]}' % field.encode()
    assert AnthropicMessages().facts(request(body)).model == "m"


@pytest.mark.parametrize(
    ("fields", "forbidden", "needs"),
    [
        ({"tools": [{"name": "f", "input_schema": {}}, {"type": "custom", "name": "g"}]}, (), ()),
        ({"tools": [{"type": "bash_20250124"}, {"type": "memory_20250818"}]}, (), ()),
        ({"tools": [{"type": "text_editor_20990101"}, {"type": "computer_toolset_20260801"}]}, (), ()),
        ({"tools": [{"type": "web_search_20260318", "name": "web_search"}]}, (), ("server_tools",)),
        ({"tools": [{"type": "tool_search_tool_bm25"}]}, (), ("server_tools",)),
        ({"tools": [{"type": "code_execution_20260521"}]}, ("tool:code_execution_20260521",), ()),
        ({"tools": [{"type": "mcp_toolset"}]}, ("tool:mcp_toolset",), ()),
        ({"tools": [{"type": "advisor_20260301"}]}, ("tool:advisor_20260301",), ()),
        ({"tools": [{"type": "web_search_latest"}]}, ("unknown_tool:web_search_latest",), ()),
        ({"tools": [{"type": "bash_code_execution_20250825"}]}, ("unknown_tool:bash_code_execution_20250825",), ()),
        ({"tools": [{"type": 7}, "x"]}, ("unknown_tool:unreadable",), ()),
        ({"tools": {"type": "custom"}}, ("unknown_tool:unreadable",), ()),
        ({"tools": None}, (), ()),
        ({"container": "c_1"}, ("container",), ()),
        ({"container": None}, (), ()),
        ({"mcp_servers": [{"url": "https://x"}]}, ("mcp_servers",), ()),
        ({"mcp_servers": []}, (), ()),
        ({"thread": {"type": "create"}}, ("thread",), ()),
        ({"fallbacks": "default"}, ("fallbacks",), ()),
        ({"fallback_credit_token": "t"}, ("fallback_credit_token",), ()),
        ({"billing_policy": {"type": "billing_policy", "bill_to": "user_profile"}}, ("user_profile",), ()),
        ({"billing_policy": {"type": "billing_policy", "bill_to": "self"}}, (), ()),
        ({"service_tier": "auto"}, (), ()),
        ({"service_tier": "flex"}, ("service_tier:flex",), ()),
        ({"speed": "fast"}, ("speed:fast",), ()),
        ({"speed": "standard"}, (), ()),
        ({"max_tokens": 0}, ("prewarm",), ()),
        ({"tomorrow": None}, ("unknown_field:tomorrow",), ()),
    ],
)
def test_what_is_not_safe_to_run_twice_says_why(fields, forbidden, needs):
    facts = facts_of(**fields)
    assert (facts.forbidden, facts.needs) == (forbidden, needs)


def test_a_tool_declared_in_the_middle_of_a_conversation_is_judged_like_any_other():
    def added(tool: object) -> RequestFacts:
        return facts_of(messages=[{"role": "user", "content": [{"type": "tool_addition", "tool": tool}]}])

    assert added({"type": "tool_reference", "tool_name": "f"}).forbidden == ()
    mcp = {"type": "tool_definition", "definition": {"type": "mcp_toolset"}}
    assert added(mcp).forbidden == ("tool:mcp_toolset",)
    search = {"type": "tool_definition", "definition": {"type": "web_search_20250305"}}
    assert added(search).needs == ("server_tools",)


def test_a_profile_that_is_billed_in_our_place_is_billed_once():
    assert facts_of(headers=((b"anthropic-user-profile-id", b"p"),)).forbidden == ("user_profile",)


@pytest.mark.parametrize("module", [message_create_params, beta_message_create_params], ids=["stable", "beta"])
def test_every_field_the_sdk_can_send_is_classified(module):
    sent: set[str] = set()
    for params in (module.MessageCreateParamsStreaming, module.MessageCreateParamsNonStreaming):
        sent |= set(get_type_hints(params))
    assert len(sent) > 15
    assert sent - HEADERS_OF_THE_SDK - SAFE_FIELDS - set(RULES) == set()


@pytest.mark.parametrize(
    "tools", [anthropic.types.ToolUnionParam, anthropic.types.beta.BetaToolUnionParam], ids=["stable", "beta"]
)
def test_every_tool_the_sdk_can_send_is_classified(tools: Any):
    names = {name for tool in get_args(tools) for name in literals(get_type_hints(tool).get("type"))}
    assert len(names) > 15
    known = (CLIENT_TOOL, READING_TOOL, ACTING_TOOL)
    assert [name for name in names if not any(kind.fullmatch(name) for kind in known)] == []


def literals(hint: Any) -> list[str]:
    """The texts of a Literal, however it is wrapped."""
    return [each for each in get_args(hint) if isinstance(each, str)] + [
        inner for each in get_args(hint) if not isinstance(each, str) for inner in literals(each)
    ]


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b"\xff"])
def test_a_body_that_cannot_be_read_is_never_sent_twice(body):
    assert AnthropicMessages().facts(request(body)).forbidden == ("unreadable_body",)
    assert AnthropicMessages().facts(request(None)).forbidden == ("body_not_replayable",)


@pytest.mark.parametrize(
    ("path", "known"),
    [
        ("/v1/messages", True),
        ("/anthropic/v1/messages/", True),
        ("/v1/projects/p/locations/l/publishers/anthropic/models/claude@1:rawPredict", True),
        ("/v1/projects/p/locations/l/publishers/anthropic/models/claude@1:streamRawPredict", True),
        ("/v1/messages/batches", False),
        ("/v1/messages/count_tokens", False),
        ("/v1/threads/t_1/messages", False),
        ("/v1/projects/p/locations/l/publishers/google/models/g:rawPredict", False),
    ],
)
def test_it_reads_messages_and_nothing_else(path, known):
    assert AnthropicMessages().recognises(request(b"{}", path=path)) is known


def test_a_model_on_vertex_is_named_by_its_path():
    path = "/v1/projects/p/locations/l/publishers/anthropic/models/claude-x@20260101:rawPredict"
    body = {"anthropic_version": "vertex-2023-10-16", "messages": [], "max_tokens": 9}
    facts = AnthropicMessages().facts(request(body, path=path))
    assert (facts.model, facts.forbidden) == ("claude-x@20260101", ())
    assert AnthropicMessages().streamed(request(body, path=path)) is None


@pytest.mark.parametrize(
    ("status", "error", "kind", "name"),
    [
        (529, {"type": "overloaded_error"}, FailureKind.OVERLOADED, "overloaded_error"),
        (429, {"type": "rate_limit_error"}, FailureKind.RATE_LIMITED, "rate_limit_error"),
        (
            429,
            {"type": "rate_limit_error", "details": {"error_code": "enforced_spend_limit_reached"}},
            FailureKind.FATAL,
            "enforced_spend_limit_reached",
        ),
        (402, {"type": "billing_error"}, FailureKind.FATAL, "billing_error"),
        (500, {"type": "api_error"}, FailureKind.TRANSIENT, "api_error"),
        (504, {"type": "timeout_error"}, FailureKind.TRANSIENT, "timeout_error"),
        (400, {"type": "invalid_request_error"}, FailureKind.FATAL, "invalid_request_error"),
    ],
)
def test_its_failures_are_read(status, error, kind, name):
    body = orjson.dumps({"type": "error", "error": error, "request_id": "req_1"})
    failure = AnthropicMessages().failure(status, [(b"retry-after", b"3")], body)
    assert (failure.kind, failure.status, failure.error, failure.retry_after_s) == (kind, status, name, 3.0)


def test_the_patterns_of_tools_do_not_overlap():
    for name in ("bash_20250124", "web_search_20250305", "code_execution_20250522", "custom", "mcp_toolset"):
        assert sum(bool(re.fullmatch(kind, name)) for kind in (CLIENT_TOOL, READING_TOOL, ACTING_TOOL)) == 1
