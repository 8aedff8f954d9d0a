"""Which Anthropic messages are safe to run twice: a table of the fields and tools that are known, beta ones included."""

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from hedgerow.dialects.lenient_json import is_array, is_object, text_of
from hedgerow.dialects.safety_rules import FREE, Reservations, Rule, forbids, joined, judged
from hedgerow.short_text import safe_name
from hedgerow.values.request import WireRequest

__all__ = ["RULES", "SAFE_FIELDS", "reservations", "tool_reservations"]

# They shape one answer and leave nothing behind; a prompt cache is written at most twice.
# fmt: off
SAFE_FIELDS = frozenset({
    "cache_control", "compaction", "context_management", "diagnostics", "inference_geo", "metadata", "model",
    "output_config", "output_format", "stop_sequences", "stream", "system", "temperature", "thinking", "tool_choice",
    "top_k", "top_p",
    # Vertex and Bedrock put into the body what is a header elsewhere.
    "anthropic_beta", "anthropic_version",
})
# fmt: on
# Versions are dates; of a tool whose version is written otherwise nothing is known.
# The client runs these: only the winner's call reaches it.
CLIENT_TOOL = re.compile(r"custom|(bash|browser_toolset|computer|computer_toolset|memory|text_editor)_\d{8}")
# Anthropic runs these; they only read, but the fee is paid twice.
READING_TOOL = re.compile(r"(web_search|web_fetch)_\d{8}|tool_search_tool_(bm25|regex)(_\d{8})?")
# Anthropic runs these, and they act, or cost as a model does.
ACTING_TOOL = re.compile(r"(code_execution|advisor)_\d{8}|mcp_toolset")


def reservations(body: Mapping[str, object], request: WireRequest) -> Reservations:
    """What stands against running this message twice; both parts empty = safe."""
    billed_elsewhere = request.header(b"anthropic-user-profile-id") is not None
    return joined((judged(body, safe=SAFE_FIELDS, rules=RULES), (("user_profile",), ()) if billed_elsewhere else FREE))


def tool_reservations(tool: object) -> Reservations:
    """What stands against one entry of `tools`; one without a type is the client's own."""
    if not is_object(tool):
        return ("unknown_tool:unreadable",), ()
    kind = tool.get("type") or "custom"
    name = text_of(kind) or "unreadable"
    if CLIENT_TOOL.fullmatch(name):
        return FREE
    if READING_TOOL.fullmatch(name):
        return (), ("server_tools",)
    return (f"tool:{safe_name(name)}" if ACTING_TOOL.fullmatch(name) else f"unknown_tool:{safe_name(name)}",), ()


def _tools(value: object) -> Reservations:
    if value is None:
        return FREE
    return joined(map(tool_reservations, value)) if is_array(value) else (("unknown_tool:unreadable",), ())


def _messages(value: object) -> Reservations:
    """Tools may also be declared in the middle of a conversation (beta)."""
    return joined(map(tool_reservations, _tools_declared_in(value)))


def _tools_declared_in(messages: object) -> Iterator[object]:
    for message in messages if is_array(messages) else ():
        content = message.get("content") if is_object(message) else None
        for block in content if is_array(content) else ():
            tool = block.get("tool") if is_object(block) and block.get("type") == "tool_addition" else None
            if is_object(tool) and tool.get("type") == "tool_definition":
                yield tool.get("definition")


def _max_tokens(value: object) -> Reservations:
    """0 writes the prompt cache and answers nothing: there is nothing to wait for."""
    return (("prewarm",), ()) if value == 0 else FREE


def _billing_policy(value: object) -> Reservations:
    own = value is None or (is_object(value) and value.get("bill_to") in (None, "self"))
    return FREE if own else (("user_profile",), ())


def _one_of(field: str, *usual: str) -> Rule:
    """Words that are known to be harmless; others forbid: "fast" costs up to six times as much, "flex" is slow on purpose."""

    def judge(value: object) -> Reservations:
        if value is None or value in usual:
            return FREE
        return (f"{field}:{safe_name(value)}",), ()

    return judge


RULES: Mapping[str, Rule] = MappingProxyType(
    {
        "billing_policy": _billing_policy,
        "container": forbids("container"),
        "fallback_credit_token": forbids("fallback_credit_token"),
        "fallbacks": forbids("fallbacks"),
        "max_tokens": _max_tokens,
        "mcp_servers": forbids("mcp_servers"),
        "messages": _messages,
        "service_tier": _one_of("service_tier", "auto", "standard_only"),
        "speed": _one_of("speed", "standard"),
        "thread": forbids("thread"),
        "tools": _tools,
    }
)
