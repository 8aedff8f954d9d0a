"""Which Gemini requests are safe to run twice: the fields of generateContent, in camelCase and in snake_case, on both hosts.

tests/unit/dialects/test_gemini_safety.py holds the table against every field that Google's SDK can send.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from hedgerow.dialects.gemini_paths import in_camel_case, may_draw
from hedgerow.dialects.lenient_json import is_array, is_object
from hedgerow.dialects.safety_rules import FREE, Reservations, Rule, asks, forbids, joined, judged
from hedgerow.short_text import safe_name
from hedgerow.values.request import WireRequest

__all__ = ["READING_TOOLS", "reservations", "tools_in"]

# fmt: off
SAFE_FIELDS = frozenset({
    "cachedContent",  # read, never written
    "contents", "labels", "model", "modelArmorConfig", "safetySettings", "systemInstruction", "toolConfig",
})
SAFE_SETTINGS = frozenset({
    "audioTimestamp", "audioTranscriptionConfig", "enableAffectiveDialog", "enableEnhancedCivicAnswers",
    "frequencyPenalty", "imageConfig", "logprobs", "maxOutputTokens", "mediaResolution", "modelConfig",
    "modelSelectionConfig", "presencePenalty", "responseFormat", "responseJsonSchema", "responseLogprobs",
    "responseMimeType", "responseSchema", "routingConfig", "seed", "speechConfig", "stopSequences", "temperature",
    "thinkingConfig", "topK", "topP", "translationConfig",
})
# The client runs these: only the winner's call reaches it.
CLIENT_TOOLS = frozenset({"functionDeclarations", "computerUse"})
# Google runs these; they read, or count in a sandbox that nobody else sees, but the fee is paid twice.
READING_TOOLS = frozenset({
    "codeExecution", "enterpriseWebSearch", "exaAiSearch", "fileSearch", "googleMaps", "googleSearch",
    "googleSearchRetrieval", "parallelAiSearch", "retrieval", "urlContext",
})
# fmt: on
ACTING_TOOLS = MappingProxyType({"mcpServers": "mcp"})
TIER_HEADERS = (b"x-vertex-ai-llm-shared-request-type", b"x-vertex-ai-llm-request-type")


def reservations(body: Mapping[str, object], request: WireRequest) -> Reservations:
    """What stands against running this request twice; both parts empty = safe."""
    return joined(
        (judged(in_camel_case(body), safe=SAFE_FIELDS, rules=RULES), _of_headers(request), _of_model(request))
    )


def tools_in(body: Mapping[str, object]) -> list[str]:
    """The kinds of tools that are offered, in camelCase; "unreadable" for what is no tool."""
    tools = in_camel_case(body).get("tools")
    listed = tools if is_array(tools) else [] if tools is None else [tools]
    kinds: list[str] = []
    for tool in listed:
        kinds += (
            [kind for kind, value in in_camel_case(tool).items() if value is not None]
            if is_object(tool)
            else [UNREADABLE]
        )
    return kinds


UNREADABLE = "unreadable"


def _of_headers(request: WireRequest) -> Reservations:
    asked = {(request.header(name) or "").strip().lower() for name in TIER_HEADERS}
    return (("flex",) if "flex" in asked else ()), ()


def _of_model(request: WireRequest) -> Reservations:
    return (), ("images",) if may_draw(request) else ()


def _settings(value: object) -> Reservations:
    if value is None:
        return FREE
    if not is_object(value):
        return ("unreadable_body",), ()
    return judged(in_camel_case(value), safe=SAFE_SETTINGS, rules=RULES_OF_SETTINGS)


def _counted(value: object) -> Reservations:
    return (), () if value is None or value == 1 else ("n",)


def _modalities(value: object) -> Reservations:
    kinds = [str(kind).lower() for kind in value] if is_array(value) else [] if value is None else [str(value).lower()]
    permissions = {"audio": "audio", "image": "images"}
    plain = ("text", "modality_unspecified")
    unknown = tuple(
        f"unknown_modality:{safe_name(kind)}" for kind in kinds if kind not in permissions and kind not in plain
    )
    return unknown, tuple(permissions[kind] for kind in kinds if kind in permissions)


def _service_tier(value: object) -> Reservations:
    tier = str(value).lower().removeprefix("service_tier_") if value is not None else "standard"
    if tier in ("standard", "priority", "unspecified"):
        return FREE
    return ((tier,) if tier == "flex" else (f"unknown_tier:{safe_name(tier)}",)), ()


def _tools(value: object) -> Reservations:
    forbidden: list[str] = []
    needs: list[str] = []
    for kind in tools_in({"tools": value}):
        if kind in READING_TOOLS:
            needs.append("server_tools")
        elif kind not in CLIENT_TOOLS:
            forbidden.append(ACTING_TOOLS.get(kind) or f"unknown_tool:{safe_name(kind)}")
    return tuple(forbidden), tuple(needs)


RULES: Mapping[str, Rule] = MappingProxyType(
    {
        "continuationToken": forbids("continuation"),
        "generationConfig": _settings,
        "generationOutputConfig": forbids("stored_output"),
        "outputConfig": forbids("stored_output"),
        "serviceTier": _service_tier,
        "store": asks("store"),
        "tools": _tools,
    }
)
RULES_OF_SETTINGS: Mapping[str, Callable[[object], Reservations]] = MappingProxyType(
    {"candidateCount": _counted, "responseModalities": _modalities}
)
