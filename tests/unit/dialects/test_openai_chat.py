"""What a chat request asks, and whether it is safe to run twice."""

import orjson
import pytest
from openai.types.chat import completion_create_params

from hedgerow.dialects.openai_chat import OpenAIChat
from hedgerow.dialects.openai_safety import RULES, SAFE_FIELDS
from hedgerow.values.request import RequestFacts, WireRequest

PATH = "/v1/chat/completions"
PLAIN = {"model": "gpt-5.6-mini", "messages": [{"role": "user", "content": "Hello"}]}


def request(body: object = None, *, path: str = PATH, headers: tuple[tuple[bytes, bytes], ...] = ()) -> WireRequest:
    content = body if isinstance(body, bytes) or body is None else orjson.dumps(body)
    return WireRequest(method="POST", path=path, headers=headers, body=content)


def facts_of(headers: tuple[tuple[bytes, bytes], ...] = (), path: str = PATH, **fields: object) -> RequestFacts:
    return OpenAIChat().facts(request({**PLAIN, **fields}, headers=headers, path=path))


def test_a_plain_request_is_safe_and_its_facts_are_read():
    facts = facts_of(stream=True, max_completion_tokens=200, max_tokens=9, reasoning_effort="low")
    assert facts == RequestFacts(
        dialect="openai_chat",
        model="gpt-5.6-mini",
        stream=True,
        effort="low",
        input_tokens_estimate=2,
        max_output_tokens=200,
        answer_known=True,
    )


def test_the_older_limit_counts_where_the_newer_is_absent():
    assert facts_of(max_tokens=9).max_output_tokens == 9
    assert facts_of(max_tokens=None).max_output_tokens is None
    assert facts_of(max_tokens="many").max_output_tokens is None


def test_effort_is_also_found_in_reasoning():
    assert facts_of(reasoning={"effort": "high"}).effort == "high"
    assert facts_of(reasoning="high").effort is None


def test_an_azure_deployment_is_the_model_when_the_body_names_none():
    body = {"messages": []}
    path = "/openai/deployments/my-gpt/chat/completions"
    assert OpenAIChat().facts(request(body, path=path)).model == "my-gpt"


def test_client_side_tools_are_safe_and_said():
    tools = [{"type": "function", "function": {"name": "f"}}, {"type": "custom", "custom": {"name": "g"}}]
    facts = facts_of(tools=tools)
    assert facts.tools
    assert (facts.forbidden, facts.needs) == ((), ())
    assert facts_of(functions=[{"name": "f"}]).tools
    assert not facts_of(tools=[]).tools


def test_the_input_estimate_is_a_quarter_of_the_characters_of_messages_and_tools():
    assert facts_of(messages=[{"role": "user", "content": "x" * 4000}]).input_tokens_estimate == 1000
    parts = [{"type": "text", "text": "x" * 400}, {"type": "text", "text": "x" * 400}]
    assert facts_of(messages=[{"role": "user", "content": parts}]).input_tokens_estimate == 200
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "x" * 400}}
    assert facts_of(messages=[{"role": "assistant", "tool_calls": [call]}]).input_tokens_estimate == 100
    tool = {"type": "function", "function": {"name": "f", "description": "x" * 4000}}
    assert facts_of(tools=[tool]).input_tokens_estimate >= 1000


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 400_000}},
        {"type": "image_url", "image_url": {"url": "https://example.com/cat.png"}},
        {"type": "input_audio", "input_audio": {"data": "A" * 400_000, "format": "wav"}},
        {"type": "file", "file": {"file_data": "A" * 400_000}},
    ],
)
def test_an_attachment_counts_as_800_tokens_and_is_safe(part):
    facts = facts_of(messages=[{"role": "user", "content": [{"type": "text", "text": "x" * 40}, part]}])
    assert facts.input_tokens_estimate == 810
    assert (facts.forbidden, facts.needs) == ((), ())


@pytest.mark.parametrize(
    "messages", [None, 7, "x", [7, None, {"content": 7}, {"content": [7]}, {"tool_calls": [{"function": 1}]}]]
)
def test_messages_of_any_shape_do_not_raise(messages):
    assert facts_of(messages=messages).input_tokens_estimate == 0


@pytest.mark.parametrize(
    ("fields", "forbidden", "needs"),
    [
        ({"store": True}, (), ("store",)),
        ({"store": False}, (), ()),
        ({"n": 2}, (), ("n",)),
        ({"n": 1}, (), ()),
        ({"n": None}, (), ()),
        ({"best_of": 3}, (), ("n",)),
        ({"audio": {"voice": "alloy", "format": "wav"}}, (), ("audio",)),
        ({"modalities": ["text", "audio"]}, (), ("audio",)),
        ({"modalities": ["image", "text"]}, (), ("images",)),
        ({"modalities": ["text"]}, (), ()),
        ({"modalities": ["smell"]}, ("unknown_modality:smell",), ()),
        ({"web_search_options": {}}, (), ("server_tools",)),
        ({"model": "gpt-4o-search-preview"}, (), ("server_tools",)),
        ({"model": "gpt-5-search-api"}, (), ("server_tools",)),
        ({"model": "openai/gpt-5:online"}, (), ("server_tools",)),
        ({"models": ["a", "b:online"]}, (), ("server_tools",)),
        ({"models": ["a", "b"]}, (), ()),
        ({"plugins": [{"id": "web"}]}, (), ("server_tools",)),
        ({"plugins": []}, (), ()),
        ({"data_sources": [{"type": "azure_search"}]}, (), ("server_tools",)),
        ({"search_parameters": {"mode": "auto"}}, (), ("server_tools",)),
        ({"enable_search": True}, (), ("server_tools",)),
        ({"enable_search": False}, (), ()),
        ({"tools": [{"type": "web_search"}]}, (), ("server_tools",)),
        ({"tools": [{"type": "mcp", "server_url": "x"}]}, ("unknown_tool:mcp",), ()),
        ({"tools": [{"type": "code_interpreter"}, {"type": "function"}]}, ("unknown_tool:code_interpreter",), ()),
        ({"tools": [{"function": {"name": "f"}}]}, (), ()),
        ({"tools": [{}]}, ("unknown_tool:unreadable",), ()),
        ({"tools": ["x"]}, ("unknown_tool:unreadable",), ()),
        ({"tools": {"type": "function"}}, ("unknown_tool:unreadable",), ()),
        ({"tools": None}, (), ()),
        ({"service_tier": "flex"}, ("flex",), ()),
        ({"service_tier": "ultrafast"}, ("ultrafast",), ()),
        ({"service_tier": "priority"}, (), ()),
        ({"id_slot": 3}, ("id_slot",), ()),
        ({"background": True}, ("unknown_field:background",), ()),
        ({"conversation": "c1", "tomorrow": None}, ("unknown_field:conversation", "unknown_field:tomorrow"), ()),
        ({"store": True, "n": 2, "web_search_options": {}, "plugins": [1]}, (), ("store", "n", "server_tools")),
    ],
)
def test_what_is_not_safe_to_run_twice_says_why(fields, forbidden, needs):
    facts = facts_of(**fields)
    assert (facts.forbidden, facts.needs) == (forbidden, needs)


@pytest.mark.parametrize(
    "field",
    [
        "top_k",
        "min_p",
        "repetition_penalty",
        "guided_json",
        "chat_template_kwargs",
        "reasoning",
        "provider",
        "transforms",
        "route",
        "models",
        "cache_prompt",
        "stop_token_ids",
        "safe_prompt",
        "prompt_mode",
        "thinking",
        "metadata",
        "prediction",
        "seed",
        "prompt_cache_key",
        "usage",
    ],
)
def test_sampling_fields_of_other_servers_are_safe(field):
    facts = facts_of(**{field: {"any": "value"}})
    assert (facts.forbidden, facts.needs) == ((), ())


def test_every_field_the_sdk_can_send_is_known():
    sent = set(completion_create_params.CompletionCreateParamsStreaming.__annotations__) | set(
        completion_create_params.CompletionCreateParamsBase.__annotations__
    )
    assert sent <= SAFE_FIELDS | set(RULES)


@pytest.mark.parametrize(
    ("headers", "forbidden"),
    [
        (((b"x-openrouter-cache", b"true"),), ("cached",)),
        (((b"X-OpenRouter-Cache", b"True"),), ("cached",)),
        (((b"x-openrouter-cache", b"false"),), ()),
        (((b"x-conversation-id", b"7"),), ("resumable_stream",)),
    ],
)
def test_headers_that_make_a_twin_useless_or_unstoppable_forbid_it(headers, forbidden):
    assert facts_of(headers=headers).forbidden == forbidden


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b"7", b"\x1f\x8b\x08", b"\xff"])
def test_a_body_that_cannot_be_read_is_never_sent_twice(body):
    facts = OpenAIChat().facts(request(body))
    assert facts.forbidden == ("unreadable_body",)


def test_a_body_that_is_not_at_hand_is_never_sent_twice():
    assert OpenAIChat().facts(request(None)).forbidden == ("body_not_replayable",)


def test_its_failures_are_read():
    failure = OpenAIChat().failure(429, [(b"retry-after", b"3")], b'{"error":{"code":"rate_limit_exceeded"}}')
    assert (failure.status, failure.error, failure.retry_after_s) == (429, "rate_limit_exceeded", 3.0)
