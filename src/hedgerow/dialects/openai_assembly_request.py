"""Which chat requests that did not ask for a stream may be streamed upstream, and how they are then written.

Only those whose stream says all that the whole answer would have said. What is not known is sent as it was asked.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from hedgerow.dialects.lenient_json import is_array, is_object
from hedgerow.dialects.openai_safety import READING_TOOLS, RULES, SAFE_FIELDS
from hedgerow.dialects.request_body import rewritten

__all__ = ["streamed_request"]


def streamed_request(body: Mapping[str, object]) -> bytes | None:
    """The request with `stream` and `stream_options.include_usage` laid in, other stream options kept.

    None if it must go upstream as it was asked: it is a stream already, or its stream would say less than its answer.
    """
    options = body.get("stream_options")
    if body.get("stream") not in (None, False) or not (options is None or is_object(options)):
        return None
    if any(_loses_something(field, value) for field, value in body.items()):
        return None
    usage_asked = {**(options or {}), "include_usage": True}
    return rewritten(body, stream=True, stream_options=usage_asked)


def _loses_something(field: str, value: object) -> bool:
    rule = WHOLE_ONLY.get(field)
    if rule is None:
        return field not in SAFE_FIELDS and field not in RULES
    return value is not None and rule(value)


def _if_set(value: object) -> bool:
    return value is not False and value != []


def _more_than_one(value: object) -> bool:
    return value != 1


def _other_than_text(value: object) -> bool:
    return not is_array(value) or any(kind != "text" for kind in value)


def _searches(value: object) -> bool:
    names = value if is_array(value) else [value]
    return any(isinstance(name, str) and ("-search-" in name or name.endswith(":online")) for name in names)


def _has_reading_tool(value: object) -> bool:
    return is_array(value) and any(is_object(tool) and tool.get("type") in READING_TOOLS for tool in value)


# Everything else that openai_safety knows is in the stream, too: logprobs, n > 1, predictions, formats, legacy functions,
# token ids (vLLM sends those of the prompt in the first chunk), timings (llama.cpp's last ones are those of the answer).
WHOLE_ONLY: Mapping[str, Callable[[object], bool]] = MappingProxyType(
    {
        # Sound is streamed as bare pcm16 only, without the container format that was asked for; images in parts, if at all.
        "audio": _if_set,
        "modalities": _other_than_text,
        # vLLM answers 400 or leaves it out of a stream: these are known only when all is known.
        "best_of": _more_than_one,
        "prompt_logprobs": _if_set,
        "use_beam_search": _if_set,
        # The repeated prompt comes as if it were a delta of the answer.
        "echo": _if_set,
        # llama.cpp reports progress in streams only; the whole answer has no such field.
        "return_progress": _if_set,
        # Searches on the server: the chunk type of OpenAI's SDK knows no annotations, and where the others put sources
        # (Azure's context, Perplexity's citations, Qwen's search_info) differs between stream and answer.
        "data_sources": _if_set,
        "enable_search": _if_set,
        "model": _searches,
        "models": _searches,
        "plugins": _if_set,
        "search_parameters": _if_set,
        "tools": _has_reading_tool,
        "web_search_options": _if_set,
    }
)
