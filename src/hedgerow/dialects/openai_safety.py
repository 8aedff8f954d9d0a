"""Which OpenAI chat requests are safe to run twice: a table of the fields that are known, of all who speak this API.

What is not in the table is not hedged: a field we have not heard of may keep state, cost a fee or act on the world.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from hedgerow.dialects.lenient_json import is_array, is_object
from hedgerow.short_text import safe_name
from hedgerow.values.request import WireRequest

__all__ = ["Reservations", "reservations"]

Reservations = tuple[tuple[str, ...], tuple[str, ...]]
"""(forbidden, needs): why it must never run twice, and which permissions it takes to run it twice."""

# They shape one answer and leave nothing behind.
# fmt: off
SAFE_FIELDS = frozenset({
    # OpenAI, Azure
    "frequency_penalty", "function_call", "functions", "logit_bias", "logprobs", "max_completion_tokens", "max_tokens",
    "messages", "metadata", "moderation", "parallel_tool_calls", "prediction", "presence_penalty", "prompt_cache_key",
    "prompt_cache_options", "prompt_cache_retention", "reasoning_effort", "response_format", "safety_identifier",
    "seed", "stop", "stream", "stream_options", "temperature", "tool_choice", "top_logprobs", "top_p", "user",
    "user_security_context", "verbosity",
    # OpenRouter, DeepSeek, Qwen, Mistral, Ollama
    "enable_thinking", "format", "include_reasoning", "keep_alive", "min_p", "options", "prompt_mode",
    "provider", "random_seed", "reasoning", "reasoning_format", "repetition_penalty", "route", "safe_prompt", "think",
    "thinking", "thinking_budget", "top_a", "top_k", "transforms", "usage",
    # vLLM, SGLang
    "add_generation_prompt", "add_special_tokens", "allowed_token_ids", "bad_words", "cache_salt", "chat_template",
    "chat_template_kwargs", "continue_final_message", "documents", "ebnf", "echo", "guided_choice",
    "guided_decoding_backend", "guided_grammar", "guided_json", "guided_regex", "guided_whitespace_pattern",
    "ignore_eos", "include_stop_str_in_output", "length_penalty", "lora_path", "min_tokens", "mm_processor_kwargs",
    "no_stop_trim", "priority", "prompt_logprobs", "regex", "return_token_ids", "return_tokens_as_token_ids",
    "separate_reasoning", "skip_special_tokens", "spaces_between_special_tokens", "stop_token_ids", "stream_reasoning",
    "structural_tag", "structured_outputs", "thinking_token_budget", "truncate_prompt_tokens", "use_beam_search",
    # llama.cpp
    "cache_prompt", "dry_allowed_length", "dry_base", "dry_multiplier", "dry_penalty_last_n", "dry_sequence_breakers",
    "dynatemp_exponent", "dynatemp_range", "grammar", "json_schema", "min_keep", "mirostat", "mirostat_eta",
    "mirostat_tau", "n_keep", "n_predict", "n_probs", "parse_tool_calls", "post_sampling_probs", "repeat_last_n",
    "repeat_penalty", "return_progress", "samplers", "t_max_predict_ms", "thinking_forced_open", "timings_per_token",
    "typical_p", "xtc_probability", "xtc_threshold",
})
# fmt: on
# The client runs these: only the winner's call reaches it.
CLIENT_TOOLS = frozenset({"function", "custom"})
# The provider runs these; they only read, but the fee is paid twice.
READING_TOOLS = frozenset(
    {
        "browser_search",
        "file_search",
        "openrouter:web_search",
        "web_search",
        "web_search_preview",
        "web_search_preview_2025_03_11",
    }
)


def reservations(body: Mapping[str, object], request: WireRequest) -> Reservations:
    """What stands against running this chat request twice; both parts empty = safe. Order follows the body's fields."""
    forbidden: dict[str, None] = {}
    needs: dict[str, None] = {}
    for field, value in body.items():
        if field in SAFE_FIELDS:
            continue
        rule = RULES.get(field)
        found = rule(value) if rule else ((f"unknown_field:{safe_name(field)}",), ())
        forbidden.update(dict.fromkeys(found[0]))
        needs.update(dict.fromkeys(found[1]))
    forbidden.update(dict.fromkeys(_of_headers(request)))
    return tuple(forbidden), tuple(needs)


def _of_headers(request: WireRequest) -> list[str]:
    reasons: list[str] = []
    if (request.header(b"x-openrouter-cache") or "").strip().lower() == "true":
        reasons.append("cached")  # the twin would be the same answer once more, just as late
    if request.header(b"x-conversation-id") is not None:
        reasons.append("resumable_stream")  # llama.cpp then generates on after the connection is closed
    return reasons


def _asks(permission: str) -> Callable[[object], Reservations]:
    """A field that takes a permission as soon as it is set; `{}` sets it, too: it asks for the defaults."""
    return lambda value: ((), () if value is None or value is False or value == [] else (permission,))


def _counted(value: object) -> Reservations:
    return (), () if value is None or value == 1 else ("n",)


def _model(value: object) -> Reservations:
    """Models that search the web by themselves; OpenRouter's `models` lists what to fall back on."""
    names = value if is_array(value) else [value]
    searches = any(isinstance(name, str) and ("-search-" in name or name.endswith(":online")) for name in names)
    return (), ("server_tools",) if searches else ()


def _service_tier(value: object) -> Reservations:
    return (value,) if isinstance(value, str) and value in {"flex", "ultrafast"} else (), ()


def _modalities(value: object) -> Reservations:
    kinds = [kind for kind in value if kind != "text"] if is_array(value) else []
    permissions = {"audio": "audio", "image": "images"}
    unknown = tuple(f"unknown_modality:{safe_name(kind)}" for kind in kinds if str(kind) not in permissions)
    return unknown, tuple(permissions[str(kind)] for kind in kinds if str(kind) in permissions)


def _tools(value: object) -> Reservations:
    if value is None:
        return (), ()
    kinds = [_tool_type(tool) for tool in value] if is_array(value) else ["unreadable"]
    unknown = tuple(f"unknown_tool:{safe_name(kind)}" for kind in kinds if kind not in CLIENT_TOOLS | READING_TOOLS)
    return unknown, ("server_tools",) if any(kind in READING_TOOLS for kind in kinds) else ()


def _tool_type(tool: object) -> str:
    if not is_object(tool):
        return "unreadable"
    # Mistral lets the type of a function be left out.
    return str(tool.get("type") or ("function" if is_object(tool.get("function")) else "unreadable"))


RULES: Mapping[str, Callable[[object], Reservations]] = MappingProxyType(
    {
        "audio": _asks("audio"),
        "best_of": _counted,
        "data_sources": _asks("server_tools"),
        "enable_search": _asks("server_tools"),
        "id_slot": lambda _: (("id_slot",), ()),
        "modalities": _modalities,
        "model": _model,
        "models": _model,
        "n": _counted,
        "plugins": _asks("server_tools"),
        "search_parameters": _asks("server_tools"),
        "service_tier": _service_tier,
        "store": _asks("store"),
        "tools": _tools,
        "web_search_options": _asks("server_tools"),
    }
)
