"""Which OpenAI responses are safe to run twice: a table of the fields and tools that are known, beta ones included.

A response is stored unless the request says `store: false`, so without that it takes the permission "store".
"""

from collections.abc import Mapping
from types import MappingProxyType

from hedgerow.dialects import openai_safety
from hedgerow.dialects.lenient_json import is_array, is_object, text_of
from hedgerow.dialects.safety_rules import FREE, Reservations, Rule, forbids, joined, judged
from hedgerow.short_text import safe_name
from hedgerow.values.request import WireRequest

__all__ = ["RULES", "SAFE_FIELDS", "reservations", "tool_reservations"]

# They shape one answer and leave nothing behind. `previous_response_id` only reads; what it forks is stored with `store`.
# fmt: off
SAFE_FIELDS = frozenset({
    "access_programs", "context_management", "frequency_penalty", "image", "include", "instructions",
    "max_output_tokens", "max_tool_calls", "metadata", "moderation", "parallel_tool_calls", "presence_penalty",
    "previous_response_id", "prompt_cache_key", "prompt_cache_retention", "provider", "reasoning", "safety_identifier",
    "stream", "stream_options", "temperature", "text", "tool_choice", "top_k", "top_logprobs", "top_p", "truncation",
    "user", "verbosity",
})
# fmt: on
# The client runs these: only the winner's call reaches it.
CLIENT_TOOLS = frozenset({"apply_patch", "computer", "computer_use_preview", "custom", "function", "local_shell"})
# OpenAI runs these; they only read, but the fee is paid twice.
READING_TOOLS = openai_safety.READING_TOOLS | {"tool_search", "web_search_2025_08_26"}
# OpenAI runs these, and they act, or cost as a model does.
ACTING_TOOLS = frozenset({"code_interpreter", "image_generation", "mcp", "programmatic_tool_calling", "shell"})


def reservations(body: Mapping[str, object], request: WireRequest) -> Reservations:
    """What stands against running this request twice; both parts empty = safe."""
    return joined(
        (
            judged(body, safe=SAFE_FIELDS, rules=RULES),
            FREE if body.get("store") is False else ((), ("store",)),
            openai_safety.reservations({}, request),  # its headers
        )
    )


def tool_reservations(tool: object) -> Reservations:
    """What stands against one entry of `tools`."""
    if not is_object(tool):
        return ("unknown_tool:unreadable",), ()
    kind = text_of(tool.get("type")) or "unreadable"
    environment = tool.get("environment")
    on_the_client = tool.get("execution") == "client" or (is_object(environment) and environment.get("type") == "local")
    if kind in CLIENT_TOOLS or (kind in ("shell", "tool_search") and on_the_client):
        return FREE
    if kind == "namespace":
        return _tools(tool.get("tools"))
    if kind in READING_TOOLS:
        return (), ("server_tools",)
    return (f"tool:{kind}" if kind in ACTING_TOOLS else f"unknown_tool:{safe_name(kind)}",), ()


def _tools(value: object) -> Reservations:
    if value is None:
        return FREE
    return joined(map(tool_reservations, value)) if is_array(value) else (("unknown_tool:unreadable",), ())


def _input(value: object) -> Reservations:
    """Tools may also be declared in the middle of a conversation."""
    items = value if is_array(value) else []
    return joined(
        _tools(item.get("tools")) for item in items if is_object(item) and item.get("type") == "additional_tools"
    )


def _prompt_cache_options(value: object) -> Reservations:
    """A prewarming call answers nothing: there is nothing to wait for."""
    return (("prewarm",), ()) if is_object(value) and value.get("prewarm") else FREE


def _generate(value: object) -> Reservations:
    return (("prewarm",), ()) if value is False else FREE


def _multi_agent(value: object) -> Reservations:
    """Its agents share state on the server while they run."""
    return FREE if value is None or (is_object(value) and value.get("enabled") is False) else (("multi_agent",), ())


def _store(_: object) -> Reservations:
    """Judged by what is not there, too: see `reservations`."""
    return FREE


RULES: Mapping[str, Rule] = MappingProxyType(
    {
        "background": forbids("background"),
        "background_options": forbids("background"),
        "conversation": forbids("conversation"),
        "generate": _generate,
        "input": _input,
        "model": openai_safety.RULES["model"],
        "multi_agent": _multi_agent,
        "plugins": openai_safety.RULES["plugins"],
        "prompt": forbids("prompt"),  # a template on the server, which may bring tools that are not seen here
        "prompt_cache_options": _prompt_cache_options,
        "service_tier": openai_safety.RULES["service_tier"],
        "store": _store,
        "tools": _tools,
    }
)
