"""Which Gemini requests may run twice, and that every field which Google's SDK can send has been judged."""

from typing import Any

import pytest
from google.genai import models, types
from pydantic.alias_generators import to_camel

from hedgerow.dialects import gemini_safety as safety
from hedgerow.dialects.gemini_paths import camel
from hedgerow.values.request import WireRequest

# Fields of the SDK's configuration that it does not send: they steer the SDK.
OF_THE_SDK = {"httpOptions", "shouldReturnHttpResponse", "automaticFunctionCalling", "automaticContinuation"}
# Where a field is called otherwise on the wire.
ON_THE_WIRE = {"modelSelectionConfig": "modelConfig", "generationOutputConfig": "outputConfig"}


def reservations(
    path: str = "/v1/models/gemini-x:generateContent", headers: dict[str, str] | None = None, **body: Any
) -> Any:
    raw = tuple((name.encode(), value.encode()) for name, value in (headers or {}).items())
    return safety.reservations(body, WireRequest(method="POST", path=path, headers=raw, body=b""))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"contents": []}, ((), ())),
        ({"store": True}, ((), ("store",))),
        ({"store": False}, ((), ())),
        ({"continuationToken": "x"}, (("continuation",), ())),
        ({"continuation_token": "x"}, (("continuation",), ())),
        ({"outputConfig": {"gcs": "x"}}, (("stored_output",), ())),
        ({"serviceTier": "flex"}, (("flex",), ())),
        ({"service_tier": "SERVICE_TIER_FLEX"}, (("flex",), ())),
        ({"serviceTier": "priority"}, ((), ())),
        ({"serviceTier": "standard"}, ((), ())),
        ({"serviceTier": "new"}, (("unknown_tier:new",), ())),
        ({"somethingNew": 1}, (("unknown_field:somethingNew",), ())),
        ({"something_new": 1}, (("unknown_field:somethingNew",), ())),
        ({"generationConfig": {"somethingNew": 1}}, (("unknown_field:somethingNew",), ())),
        ({"generationConfig": "odd"}, (("unreadable_body",), ())),
        ({"generationConfig": {"candidateCount": 1}}, ((), ())),
        ({"generation_config": {"candidate_count": 2}}, ((), ("n",))),
        ({"generationConfig": {"responseModalities": ["TEXT"]}}, ((), ())),
        ({"generationConfig": {"responseModalities": ["TEXT", "IMAGE"]}}, ((), ("images",))),
        ({"generationConfig": {"responseModalities": ["AUDIO"]}}, ((), ("audio",))),
        ({"generationConfig": {"responseModalities": ["VIDEO"]}}, (("unknown_modality:video",), ())),
        ({"tools": [{"functionDeclarations": []}, {"computerUse": {}}]}, ((), ())),
        ({"tools": [{"googleSearch": {}}]}, ((), ("server_tools",))),
        ({"tools": [{"google_search": {}, "url_context": {}}]}, ((), ("server_tools",))),
        ({"tools": [{"codeExecution": {}}]}, ((), ("server_tools",))),
        ({"tools": [{"mcpServers": [{}]}]}, (("mcp",), ())),
        ({"tools": [{"somethingNew": {}}]}, (("unknown_tool:somethingNew",), ())),
        ({"tools": {"functionDeclarations": []}}, ((), ())),
        ({"tools": ["odd"]}, (("unknown_tool:unreadable",), ())),
        ({"tools": None}, ((), ())),
    ],
)
def test_what_stands_against_running_it_twice(body: dict[str, Any], expected: Any) -> None:
    assert reservations(**body) == expected


def test_vertex_says_flex_in_a_header() -> None:
    assert reservations(headers={"x-vertex-ai-llm-shared-request-type": "Flex"}) == (("flex",), ())
    assert reservations(headers={"x-vertex-ai-llm-shared-request-type": "priority"}) == ((), ())


def test_models_that_draw_ask_for_the_permission_of_images() -> None:
    assert reservations("/v1/models/gemini-2.5-flash-image:generateContent") == ((), ("images",))


def test_every_field_of_the_sdks_configuration_is_judged() -> None:
    judged = safety.SAFE_FIELDS | safety.SAFE_SETTINGS | set(safety.RULES) | set(safety.RULES_OF_SETTINGS)
    fields = {to_camel(name) for name in types.GenerateContentConfig.model_fields} - OF_THE_SDK
    assert {ON_THE_WIRE.get(name, name) for name in fields} - judged == set()
    settings = {ON_THE_WIRE.get(name, name) for name in map(to_camel, types.GenerationConfig.model_fields)}
    assert settings - safety.SAFE_SETTINGS - set(safety.RULES_OF_SETTINGS) == set()


@pytest.mark.parametrize("convert", ["_GenerateContentConfig_to_mldev", "_GenerateContentConfig_to_vertex"])
def test_every_name_that_the_sdk_writes_is_judged(convert: str) -> None:
    """Read from the SDK's own converters, since names on the wire may differ from those of its configuration."""
    code = getattr(models, convert).__code__
    written = {name for const in code.co_consts if isinstance(const, str) for name in [const] if name.isidentifier()}
    names = {
        name for name in written if name != name.lower() or name in ("labels", "tools", "store", "seed", "temperature")
    }
    judged = safety.SAFE_FIELDS | safety.SAFE_SETTINGS | set(safety.RULES) | set(safety.RULES_OF_SETTINGS)
    assert names, "the converters are written in another way now"
    assert names - judged == set()


def test_every_tool_of_the_sdk_is_judged() -> None:
    tools = {to_camel(name) for name in types.Tool.model_fields}
    assert tools - safety.CLIENT_TOOLS - safety.READING_TOOLS - set(safety.ACTING_TOOLS) == set()


def test_both_spellings_are_one_name() -> None:
    assert [camel(name) for name in ("max_output_tokens", "maxOutputTokens", "top_k", "seed")] == [
        "maxOutputTokens",
        "maxOutputTokens",
        "topK",
        "seed",
    ]
