"""A whole answer is made first, then cut into a stream as its provider would; what is assembled from it must be the answer.

Two judges: the answer itself, value by value, and the openai SDK's own accumulator on the same bytes.
"""

import itertools
from collections.abc import Iterator
from random import Random

import httpx2
import orjson
from hypothesis import given, settings
from hypothesis import strategies as st
from openai import OpenAI
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletion

from hedgerow.dialects.openai_chat_answer import ChatAnswerReader
from hedgerow.dialects.openai_chat_assembly import AssemblingChatReader

Json = dict[str, object]
SSE = [("content-type", "text/event-stream")]
RAW_SSE = [(name.encode(), value.encode()) for name, value in SSE]
WORDS = ["a", " über", "🌿", "\n", '"', "\\", "{", "data: ", " the", " stream", "\u2028", "\r\n", "0"]
EMPTY_DELTA_KEYS = [{}, {"content": None}, {"content": ""}]
# What the SDK's accumulator (3.57) does not keep as it was; each is in the answers, and judged by the answer itself:
LOST_BY_SDK = {
    "answer": {"provider", "citations", "prompt_filter_results", "timings", "x_groq"},  # kept from the first chunk only
    "choice": {"native_finish_reason", "stop_reason", "content_filter_results", "token_ids"},  # the same
    "message": {"label", "score"},  # unknown texts are joined, unknown numbers added up
}


class Maker:
    """Draws one answer with its seed. `for_sdk`: without what the SDK's accumulator cannot take at all."""

    def __init__(self, seed: int, *, for_sdk: bool = False) -> None:
        self.dice = Random(seed)
        self.for_sdk = for_sdk
        self.padded = self.maybe()

    def maybe(self, share: float = 0.5) -> bool:
        return self.dice.random() < share

    def text(self, most: int = 8) -> str:
        return "".join(self.dice.choices(WORDS, k=self.dice.randint(1, most)))

    def whole_numbers(self) -> list[int]:
        return [self.dice.randint(0, 99_999) for _ in range(self.dice.randint(0, 6))]

    def some(self, fields: Json) -> Json:
        return {name: value for name, value in fields.items() if self.maybe(0.4)}

    def answer(self) -> Json:
        details = {
            "prompt_tokens_details": {
                "cached_tokens": 3,
                "cache_write_tokens": 0,
                "audio_tokens": 0,
                "image_tokens": 1,
            },
            "completion_tokens_details": {"reasoning_tokens": 5, "accepted_prediction_tokens": 1, "audio_tokens": None},
            "cost": 0.00012,
            "prompt_cache_hit_tokens": 2,
        }
        usage = {"prompt_tokens": self.dice.randint(0, 9_999), "completion_tokens": 7, "total_tokens": 8}
        extras = {
            "service_tier": "priority",
            "system_fingerprint": self.dice.choice(["fp_1", None]),
            "usage": usage | self.some(details),
            "moderation": {side: {"type": "error", "code": "c", "message": "m"} for side in ("input", "output")},
            "provider": "Novita",
            "citations": ["https://a.example", "https://b.example"],
            "prompt_filter_results": [{"prompt_index": 0, "content_filter_results": {"hate": {"filtered": False}}}],
            "timings": {"predicted_n": 5, "predicted_per_second": 80.25},
            "x_groq": {"id": "req_1", "usage": {"queue_time": 0.5}},
        }
        choices = [self.choice(index) for index in range(self.dice.choice([1, 1, 2, 3]))]
        known = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1_790_000_000, "model": "m-2026"}
        return {**known, "choices": choices, **self.some(extras)}

    def choice(self, index: int) -> Json:
        extras = {
            "logprobs": self.dice.choice([None, self.logprobs(), self.logprobs()]),
            "native_finish_reason": "STOP",
            "stop_reason": self.dice.choice([None, 128_001, "###"]),
            "content_filter_results": {"hate": {"filtered": False, "severity": "safe"}},
            "token_ids": self.whole_numbers(),
        }
        finish = self.dice.choice(["stop", "length", "tool_calls", "content_filter", "function_call"])
        return {"index": index, "message": self.message(), "finish_reason": finish, **self.some(extras)}

    def logprobs(self) -> Json:
        top = [{"token": "b", "logprob": -9999.0, "bytes": None}]
        tokens = [
            {"token": self.text(1), "logprob": -0.25 * n, "bytes": [32, 97], "top_logprobs": top}
            for n in range(self.dice.randint(1, 5))
        ]
        none = {"content": None, "refusal": None}
        return none | {self.dice.choice(["content", "refusal"]): tokens}

    def message(self) -> Json:
        message: Json = {"role": "assistant", "content": None, "refusal": None}
        kind = self.dice.choice(["text", "text", "refusal", "tools", "function", "empty", "parts"])
        if kind == "text" or (kind == "parts" and self.for_sdk):
            message["content"] = self.text(40)
        elif kind == "refusal":
            message["refusal"] = self.text(20)
        elif kind == "empty":
            message["content"] = ""
        elif kind == "parts":
            message["content"] = self.mistral_parts()
        elif kind == "function":
            message["function_call"] = {"name": "look_up", "arguments": self.text(20)}
        else:
            message["tool_calls"] = [self.call(number) for number in range(self.dice.randint(1, 3))]
            if self.maybe(0.3):
                message["content"] = self.text(20)
        reasoning = self.dice.choice(["reasoning_content", "reasoning", "thinking", "reasoning_text"])
        extras = {reasoning: self.text(30), "label": "blue", "score": 0.5, "images": [{"image_url": {"url": "data:,"}}]}
        message |= self.some(extras)
        if self.padded:
            message["annotations"] = [self.citation(n) for n in range(self.dice.randint(0, 1 if self.for_sdk else 3))]
        if self.maybe(0.2) and not self.for_sdk:
            message["reasoning_details"] = self.reasoning_details()
        return message

    def citation(self, number: int) -> Json:
        cited = {"start_index": number, "end_index": 9, "title": self.text(), "url": "https://a.example"}
        return {"type": "url_citation", "url_citation": cited}

    def call(self, number: int) -> Json:
        if self.maybe(0.3) and not self.for_sdk:
            return {
                "id": f"call_{number}",
                "type": "custom",
                "custom": {"name": f"tool_{number}", "input": self.text(20)},
            }
        called = {"name": f"tool_{number}", "arguments": self.text(20)}
        extra = {"extra_content": {"google": {"thought_signature": "c2ln"}}} if self.maybe(0.2) else {}
        return {"id": f"call_{number}", "type": "function", "function": called, **extra}

    def mistral_parts(self) -> list[Json]:
        thinking = {"type": "thinking", "thinking": [{"type": "text", "text": self.text(20)}]}
        text = {"type": "text", "text": self.text(20)}
        return [thinking, text, *([{"type": "reference", "reference_ids": [1, 2]}] if self.maybe() else [])]

    def reasoning_details(self) -> list[Json]:
        known = {"format": "anthropic-claude-v1", "id": None}
        return [
            {"type": "reasoning.text", "text": self.text(20), "signature": "c2ln", "index": 0, **known},
            {"type": "reasoning.summary", "summary": self.text(20), "index": 1, **known},
            {"type": "reasoning.encrypted", "data": "eA==", "index": 2, **known},
            {"type": "reasoning.encrypted", "data": "eQ==", "index": 3, **known},
        ]


class Cutter:
    """Cuts an answer into chunks, and those into bytes, as providers do."""

    def __init__(self, maker: Maker) -> None:
        self.dice, self.maker = maker.dice, maker

    def pieces(self, text: str) -> list[str]:
        at = sorted(self.dice.randint(0, len(text)) for _ in range(self.dice.randint(0, 5)))
        return [text[start:end] for start, end in itertools.pairwise([0, *at, len(text)])]

    def chunks(self, answer: Json) -> list[Json]:
        fields = {name: value for name, value in answer.items() if name not in ("object", "choices", "usage")}
        last = {name: fields.pop(name) for name in ("timings", "moderation") if name in fields}
        first = {name: fields.pop(name) for name in ("prompt_filter_results",) if name in fields}
        envelope = {"object": "chat.completion.chunk", **({"usage": None} if "usage" in answer else {})}
        if self.maker.padded:
            envelope["obfuscation"] = "x7f"
        whole_choices = answer["choices"]
        queues = [[{"index": choice["index"], **delta} for delta in self.choice(choice)] for choice in whole_choices]
        turns = [[queue.pop(0)] for queue in queues]  # OpenAI opens all choices before it goes on with one
        while queues := [queue for queue in queues if queue]:
            together = self.dice.sample(queues, self.dice.randint(1, len(queues)) if self.maker.maybe(0.2) else 1)
            turns.append([queue.pop(0) for queue in together])
        chunks = [{**fields, **envelope, "choices": turn} for turn in turns]
        if first and not self.maker.for_sdk:  # Azure
            chunks.insert(0, {"id": "", "object": "", "created": 0, "model": "", "choices": [], **first})
        chunks[0 if self.maker.for_sdk else len(chunks) - 1] |= last | first if self.maker.for_sdk else last
        if "usage" in answer and self.maker.maybe(0.2):  # vLLM: the total so far on every chunk
            for number, chunk in enumerate(chunks):
                chunk["usage"] = {"completion_tokens": number, "so_far": True}
        if "usage" in answer:
            chunks.append({**fields, **envelope, "choices": [], "usage": answer["usage"]})
        elif self.maker.maybe(0.2) and not self.maker.for_sdk:
            chunks.append({**fields, **envelope, "choices": []})
        return chunks

    def choice(self, choice: Json) -> list[Json]:
        """The choice objects of all its chunks, the role first, the finish reason last."""
        deltas = self.deltas(choice["message"])
        last = len(deltas) - 1
        chunks: list[Json] = [{"delta": delta, "finish_reason": None} for delta in deltas]
        chunks[-1]["finish_reason"] = choice["finish_reason"]
        for name in {"native_finish_reason", "stop_reason", "content_filter_results"} & choice.keys():
            empty: object = {} if name == "content_filter_results" else None
            at = self.dice.randint(0, last)
            for number, chunk in enumerate(chunks):
                chunk[name] = choice[name] if number == at else empty
        if "logprobs" in choice:
            for chunk in chunks:
                chunk["logprobs"] = None
            for name, entries in (choice["logprobs"] or {}).items():
                for number, entry in enumerate(entries or ()):
                    chunk = chunks[min(1 + number, last)]  # in order, never on the opening delta
                    chunk["logprobs"] = chunk["logprobs"] or {"content": None, "refusal": None}
                    chunk["logprobs"][name] = [*(chunk["logprobs"][name] or ()), entry]
        if "token_ids" in choice:
            cut = self.dice.randint(0, len(choice["token_ids"]))
            chunks[0]["token_ids"], chunks[-1]["token_ids"] = choice["token_ids"][:cut], choice["token_ids"][cut:]
        return chunks

    def deltas(self, message: Json) -> list[Json]:
        """The opening delta, then each field's pieces: fields interleave, the pieces of one stay in order."""
        opening: Json = {"role": "assistant", "content": message["content"] and ""}
        if message["content"] == "" or (message["content"] is None and self.maker.maybe()):
            opening["content"] = ""
        if self.maker.maybe():
            opening["refusal"] = None
        queues: list[list[Json]] = []
        for name, value in message.items():
            if name == "tool_calls":
                queues.extend(self.call(number, call) for number, call in enumerate(value))
            elif name == "function_call":
                named = {"name": value["name"], "arguments": ""}
                queues.append([{name: each} for each in (named, *self.argument_pieces("arguments", value))])
            elif name in ("label", "score"):
                queues.append([{name: value}] * self.dice.randint(1, 3))  # repeated, not in pieces
            elif name == "reasoning_details" or (name == "content" and isinstance(value, list)):
                queues.append([{name: piece} for piece in self.part_pieces(value)])
            elif name != "role" and isinstance(value, str):
                queues.append([{name: piece} for piece in self.pieces(value)])
            elif name == "annotations":
                queues.append([{name: [entry]} for entry in value])
            elif isinstance(value, list):
                queues.append([{name: value}])
        deltas = [opening]
        if "tool_calls" in message:  # the calls begin in order, as they do everywhere
            deltas += [queue.pop(0) for queue in queues if "tool_calls" in (*queue, {})[0]]
        while queues := [queue for queue in queues if queue]:
            deltas.append(self.dice.choice(queues).pop(0))
        return [*deltas, self.dice.choice(EMPTY_DELTA_KEYS if message["content"] else EMPTY_DELTA_KEYS[:1])]

    def argument_pieces(self, name: str, called: Json) -> list[Json]:
        return [{name: piece} for piece in self.pieces(called[name])]

    def call(self, number: int, call: Json) -> list[Json]:
        kind = call["type"]
        grown = "arguments" if kind == "function" else "input"
        opening = {**call, "index": number, kind: {"name": call[kind]["name"], grown: ""}}
        rest = [{"index": number, kind: piece} for piece in self.argument_pieces(grown, call[kind])]
        return [{"tool_calls": [piece]} for piece in (opening, *rest)]

    def part_pieces(self, parts: list[Json]) -> Iterator[object]:
        """Parts one by one, their texts in pieces; Mistral's answer text after its thinking comes as bare strings."""
        for part in parts:
            field = next((name for name in ("text", "summary", "thinking") if name in part), None)
            if field is None:
                yield [part]
            elif field == "thinking":
                for piece in self.pieces(part["thinking"][0]["text"]):
                    yield [{**part, "thinking": [{"type": "text", "text": piece}]}]
            elif part["type"] == "text" and self.maker.maybe():
                yield from self.pieces(part["text"])
            else:
                yield from ([{**part, field: piece}] for piece in self.pieces(part[field]))

    def stream(self, chunks: list[Json], line_ends: list[bytes]) -> bytes:
        end = self.dice.choice(line_ends)
        frames: list[bytes] = []
        for chunk in chunks:
            pretty = self.maker.maybe(0.1)
            data = orjson.dumps(chunk, option=orjson.OPT_INDENT_2 if pretty else None)
            frames += [b"data: " + line + end for line in data.split(b"\n")] + [end]
            if self.maker.maybe(0.1):
                frames.append(b": OPENROUTER PROCESSING" + end + end)
        return b"".join(frames) + b"data: [DONE]" + end + end

    def bytes_in_pieces(self, stream: bytes) -> list[bytes]:
        at = sorted(self.dice.randint(0, len(stream)) for _ in range(self.dice.choice([0, 3, 30, 300])))
        return [stream[start:end] for start, end in itertools.pairwise([0, *at, len(stream)])]


def assembling(parts: list[bytes]) -> AssemblingChatReader:
    reader = AssemblingChatReader(RAW_SSE)
    for part in parts:
        reader.feed(part)
    reader.finish()
    return reader


def cut_answer(seed: int, line_ends: list[bytes], *, for_sdk: bool = False) -> tuple[Json, list[bytes]]:
    maker = Maker(seed, for_sdk=for_sdk)
    answer = maker.answer()
    cutter = Cutter(maker)
    return answer, cutter.bytes_in_pieces(cutter.stream(cutter.chunks(orjson.loads(orjson.dumps(answer))), line_ends))


def accumulated_by_sdk(parts: list[bytes]) -> Json:
    def respond(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers=SSE, content=iter(parts))

    with OpenAI(api_key="x", http_client=httpx2.Client(transport=httpx2.MockTransport(respond))) as client:
        state = ChatCompletionStreamState()
        with client.chat.completions.create(model="m", messages=[], stream=True) as stream:
            for chunk in stream:
                state.handle_chunk(chunk)
    return state.current_completion_snapshot.model_dump()


def as_far_as_the_sdk_goes(completion: Json) -> Json:
    """Without what the SDK loses, and with what it merely leaves as the deltas had it made that of a whole answer."""
    kept = {name: value for name, value in completion.items() if name not in LOST_BY_SDK["answer"]}
    kept.pop("obfuscation", None)
    choices = []
    for choice in kept["choices"]:
        message = {name: value for name, value in choice["message"].items() if name not in LOST_BY_SDK["message"]}
        message.pop("parsed", None)  # the SDK's own addition
        message["annotations"] = message.get("annotations") or None  # streams do not have the empty list
        for call in message["tool_calls"] or ():
            call.pop("index", None)  # of deltas only
            call["function"].pop("parsed_arguments", None)
        if message["content"] == "" and (message["tool_calls"] or message["function_call"] or message["refusal"]):
            message["content"] = None  # the opening delta's
        rest = {name: value for name, value in choice.items() if name not in LOST_BY_SDK["choice"]}
        choices.append({**rest, "message": message})
    return {**kept, "choices": choices}


@settings(max_examples=200)
@given(st.integers(0, 2**32))
def test_assembling_what_was_cut_gives_the_answer(seed):
    answer, parts = cut_answer(seed, [b"\n", b"\r", b"\r\n"])
    reader = assembling(parts)
    assert orjson.loads(reader.response()) == answer
    assert reader.facts.ended
    assert reader.complete
    assert reader.streamed


@settings(max_examples=200)
@given(st.integers(0, 2**32))
def test_the_sdk_accumulates_what_we_assemble(seed):
    _, parts = cut_answer(seed, [b"\n", b"\r\n"], for_sdk=True)
    ours = ChatCompletion.model_validate_json(assembling(parts).response()).model_dump()
    assert as_far_as_the_sdk_goes(ours) == as_far_as_the_sdk_goes(accumulated_by_sdk(parts))


@settings(max_examples=200)
@given(st.integers(0, 2**32), st.floats(0, 1))
def test_the_same_is_read_with_and_without_assembling_also_of_a_cut_stream(seed, share):
    _, parts = cut_answer(seed, [b"\n", b"\r\n"])
    stream = b"".join(parts)
    part = stream[: int(len(stream) * share)]
    alone, both = ChatAnswerReader(RAW_SSE), assembling([part])
    alone.feed(part)
    alone.finish()
    assert both.facts == alone.facts
    assert orjson.loads(both.response())["object"] == "chat.completion"


SHAPING = """choices delta message content thinking reasoning_details tool_calls function name id index type text logprobs
token_ids usage role refusal obfuscation annotations x"""
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(SHAPING.split()),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(st.lists(JSON, max_size=5))
def test_chunks_of_any_shape_never_raise(values):
    chunks = [value if isinstance(value, dict) else {"choices": [{"delta": value}]} for value in values]
    bodies = [b"data: " + orjson.dumps(chunk) + b"\n\n" for chunk in [*chunks, {"choices": values}]]
    assert orjson.loads(assembling(bodies).response())
