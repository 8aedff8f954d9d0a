"""Anthropic messages, drawn, and the streams that the API would have sent of them."""

import itertools
from typing import Any

import orjson
from hypothesis import strategies as st

__all__ = ["CUTS", "ENDS", "MESSAGES", "events_of", "pieces", "wire"]

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=24)
SCALARS = (
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | TEXT
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3), max_leaves=6
)
INPUTS = st.dictionaries(TEXT, VALUES, max_size=4)
# Fields that no SDK knows yet must come through all the same.
NOVELTIES = st.dictionaries(st.sampled_from(["novelty", "trace"]), VALUES, max_size=1)
COUNTS = st.integers(0, 10**6)
ENDS = st.sampled_from(["\n", "\r\n", "\r"])
CUTS = st.lists(st.integers(0, 5000), max_size=25)
CITATION = st.fixed_dictionaries(
    {"type": st.just("char_location"), "cited_text": TEXT, "document_index": COUNTS, "start_char_index": COUNTS}
)


def block(kind: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    known = st.fixed_dictionaries({"type": st.just(kind), **fields})
    return st.tuples(known, NOVELTIES).map(lambda both: {**both[1], **both[0]})


TEXTS = block("text", text=TEXT)
CITED = block("text", text=TEXT, citations=st.lists(CITATION, min_size=1, max_size=3))
THOUGHTS = block("thinking", thinking=TEXT, signature=TEXT.filter(bool))
REDACTED = block("redacted_thinking", data=TEXT)
CALLS = block("tool_use", id=TEXT, name=TEXT, input=INPUTS)
SERVER_CALLS = block("server_tool_use", id=TEXT, name=st.just("web_search"), input=INPUTS)
RESULTS = block("web_search_tool_result", tool_use_id=TEXT, content=st.lists(INPUTS, max_size=2))
UNHEARD_OF = block("hologram", data=VALUES)
BLOCKS = TEXTS | CITED | THOUGHTS | REDACTED | CALLS | SERVER_CALLS | RESULTS | UNHEARD_OF
USAGE = st.fixed_dictionaries(
    {"input_tokens": COUNTS, "output_tokens": COUNTS},
    optional={
        "cache_creation_input_tokens": COUNTS,
        "cache_read_input_tokens": COUNTS,
        "cache_creation": st.fixed_dictionaries(
            {"ephemeral_5m_input_tokens": COUNTS, "ephemeral_1h_input_tokens": COUNTS}
        ),
        "output_tokens_details": st.fixed_dictionaries({"thinking_tokens": COUNTS}),
        "server_tool_use": st.fixed_dictionaries({"web_search_requests": COUNTS}),
        "service_tier": st.sampled_from(["standard", "priority"]),
        "inference_geo": TEXT,
        "novelty": COUNTS,
    },
)
STOPS = st.sampled_from(
    [
        {"stop_reason": "end_turn", "stop_sequence": None},
        {"stop_reason": "max_tokens", "stop_sequence": None},
        {"stop_reason": "tool_use", "stop_sequence": None},
        {"stop_reason": "pause_turn", "stop_sequence": None},
        {"stop_reason": "stop_sequence", "stop_sequence": "END"},
        {"stop_reason": "refusal", "stop_sequence": None, "stop_details": {"type": "refusal", "category": "cyber"}},
    ]
)
MESSAGES = st.builds(
    lambda content, usage, stop, novelty: {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-x",
        **novelty,
        "content": content,
        "usage": usage,
        **stop,
    },
    st.lists(BLOCKS, max_size=5),
    USAGE,
    STOPS,
    NOVELTIES,
)


def events_of(message: dict[str, Any], draw: st.DrawFn) -> list[dict[str, Any]]:
    """The message as the API streams it; `draw` decides how texts are cut and where pings and unknown events come."""
    usage = message["usage"]
    late = {
        name: usage[name] for name in ("output_tokens", "output_tokens_details", "server_tool_use") if name in usage
    }
    early = {name: count for name, count in usage.items() if name not in late} | {"output_tokens": 1}
    opening = {**message, "content": [], "usage": early, "stop_reason": None, "stop_sequence": None}
    opening.pop("stop_details", None)
    events: list[dict[str, Any]] = [{"type": "message_start", "message": opening}]
    for index, whole in enumerate(message["content"]):
        start, deltas = _opened(whole, draw)
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    stop = {name: message[name] for name in ("stop_reason", "stop_sequence", "stop_details") if name in message}
    events += [{"type": "message_delta", "delta": stop, "usage": late}, {"type": "message_stop"}]
    for at in draw(st.lists(st.integers(1, len(events)), max_size=4)):
        events.insert(at, draw(st.sampled_from([{"type": "ping"}, {"type": "novelty_delta", "index": 0, "delta": {}}])))
    return events


def wire(events: list[dict[str, Any]], end: str) -> bytes:
    """As server-sent events."""
    return b"".join(
        f"event: {event['type']}{end}".encode() + b"data: " + orjson.dumps(event) + (end * 2).encode()
        for event in events
    )


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    """The bytes as a network might hand them over."""
    at = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(at)]


def _opened(whole: dict[str, Any], draw: st.DrawFn) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A block as it starts, and its deltas."""
    kind = whole["type"]
    if kind == "text":
        start = {**whole, "text": ""} | ({"citations": []} if "citations" in whole else {})
        cited = [{"type": "citations_delta", "citation": each} for each in whole.get("citations", ())]
        return start, [*cited, *_cut(whole["text"], "text_delta", "text", draw)]
    if kind == "thinking":
        signed = {"type": "signature_delta", "signature": whole["signature"]}
        return {**whole, "thinking": "", "signature": ""}, [
            *_cut(whole["thinking"], "thinking_delta", "thinking", draw),
            signed,
        ]
    if kind in ("tool_use", "server_tool_use"):
        written = orjson.dumps(whole["input"]).decode()
        deltas = [
            {"type": "input_json_delta", "partial_json": ""},
            *_cut(written, "input_json_delta", "partial_json", draw),
        ]
        return {**whole, "input": {}}, deltas
    return whole, []


def _cut(text: str, kind: str, field: str, draw: st.DrawFn) -> list[dict[str, Any]]:
    at = [0, *sorted(draw(st.lists(st.integers(0, len(text)), max_size=3))), len(text)]
    return [{"type": kind, field: text[start:end]} for start, end in itertools.pairwise(at)]
