"""What is learnt of a chat answer while it arrives."""

import orjson
import pytest

from hedgerow.dialects.openai_chat_answer import ChatAnswerReader
from hedgerow.values.answer import AnswerFacts, Usage
from hedgerow.values.failure import FailureKind

SSE = [(b"Content-Type", b"text/event-stream; charset=utf-8")]
JSON = [(b"content-type", b"application/json")]
DONE = b"data: [DONE]\n\n"
OVERLOADED_ERROR = {"type": "overloaded_error", "message": "…"}


def frame(payload: object) -> bytes:
    return b"data: " + orjson.dumps(payload) + b"\n\n"


def chunk(delta: object = None, *, finish: str | None = None, index: int = 0, **more: object) -> bytes:
    return frame(
        {
            "object": "chat.completion.chunk",
            "model": "m",
            "choices": [{"index": index, "delta": delta or {}, "finish_reason": finish}],
            **more,
        }
    )


def read(*pieces: bytes, headers: list[tuple[bytes, bytes]] = SSE, finish: bool = True) -> AnswerFacts:
    reader = ChatAnswerReader(headers)
    for piece in pieces:
        reader.feed(piece)
    if finish:
        reader.finish()
    return reader.facts


def whole(body: object, headers: list[tuple[bytes, bytes]] = JSON) -> AnswerFacts:
    return read(orjson.dumps(body), headers=headers)


def completion(*messages: dict[str, object], finish: str = "stop") -> dict[str, object]:
    choices = [{"index": i, "message": message, "finish_reason": finish} for i, message in enumerate(messages)]
    return {"object": "chat.completion", "model": "m-2026", "service_tier": "default", "choices": choices}


@pytest.mark.parametrize(
    "piece",
    [
        chunk({"role": "assistant"}),
        chunk({"role": "assistant", "content": ""}),
        chunk({"role": "assistant", "content": None, "refusal": None}),
        chunk({"content": "", "reasoning_content": "", "tool_calls": []}),
        chunk({"content": []}),
        chunk({"content": [{"type": "text", "text": ""}]}),
        chunk(
            {"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": {"name": "", "arguments": ""}}]}
        ),
        chunk({"tool_calls": [{"index": 0, "id": "c1", "type": "function"}]}),
        chunk({"audio": {"id": "a1"}}),
        chunk({"audio": {"data": ""}}),
        chunk({}, finish="stop"),
        frame({"choices": [], "prompt_filter_results": [{"prompt_index": 0}], "model": ""}),
        frame({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 0}}),
        chunk({}, obfuscation="xyzxyz"),
        b": OPENROUTER PROCESSING\n\n",
        b":\n\n",
        b"event: ping\ndata: {}\n\n",
        b"\n\n",
        DONE,
    ],
)
def test_what_carries_nothing_is_not_the_first_content(piece):
    facts = read(piece)
    assert not facts.content
    assert not facts.useful
    assert facts.chunks == facts.visible_chars == facts.hidden_chars == 0


@pytest.mark.parametrize(
    ("delta", "visible_chars", "hidden_chars", "useful"),
    [
        ({"content": "Hi"}, 2, 0, True),
        ({"content": " "}, 1, 0, True),
        ({"refusal": "No."}, 3, 0, True),
        ({"reasoning_content": "hmm"}, 0, 3, False),
        ({"reasoning": "hmm"}, 0, 3, False),
        ({"reasoning": "hmm", "reasoning_content": "hmm"}, 0, 3, False),
        ({"audio": {"data": "UklGRg=="}}, 0, 0, True),
        ({"audio": {"transcript": "Hello"}}, 5, 0, True),
        ({"tool_calls": [{"index": 0, "function": {"name": "get"}}]}, 3, 0, True),
        ({"tool_calls": [{"index": 0, "function": {"arguments": '{"a'}}]}, 3, 0, True),
        ({"tool_calls": [{"index": 0, "custom": {"name": "run", "input": "ls"}}]}, 5, 0, True),
        ({"function_call": {"name": "get", "arguments": "{"}}, 4, 0, True),
        ({"content": [{"type": "text", "text": "Salut"}]}, 5, 0, True),
        ({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "bon"}]}]}, 0, 3, False),
        ({"content": [{"type": "thinking", "thinking": "bon"}, {"type": "text", "text": "!"}]}, 1, 3, True),
        ({"content": "grün 🌿"}, 6, 0, True),
    ],
)
def test_every_kind_of_content_is_seen_and_counted(delta, visible_chars, hidden_chars, useful):
    for facts in (read(chunk(delta), finish=False), whole(completion(delta))):
        assert facts.content
        assert (facts.visible_chars, facts.hidden_chars, facts.chunks) == (visible_chars, hidden_chars, 1)
        assert facts.useful is useful


def test_a_stream_with_its_end_mark_has_ended_at_once():
    facts = read(chunk({"role": "assistant"}), chunk({"content": "Hi"}), chunk(finish="stop"), DONE, finish=False)
    assert facts.valid
    assert (facts.finish_reason, facts.model, facts.chunks) == ("stop", "m", 1)


def test_a_clean_end_after_every_choice_finished_needs_no_end_mark():
    choices = [chunk({"content": "a"}), chunk({"content": "b"}, index=1), chunk(finish="stop")]
    assert not read(*choices).ended
    assert not read(*choices, chunk(finish="length", index=1), finish=False).ended
    assert read(*choices, chunk(finish="length", index=1)).valid


def test_a_stream_that_breaks_off_has_not_ended():
    assert not read(chunk({"content": "Hi"})).ended
    assert not read(b"").ended


def test_the_end_mark_may_lack_its_blank_line():
    assert read(chunk({"content": "Hi"}), b"data: [DONE]").valid


def test_an_empty_answer_ends_but_is_not_useful():
    facts = read(chunk({"role": "assistant", "content": ""}), chunk(finish="length"), DONE)
    assert facts.ended
    assert not facts.valid
    assert facts.finish_reason == "length"


def test_reasoning_alone_is_not_useful():
    facts = read(chunk({"reasoning_content": "hmm"}), chunk(finish="length"), DONE)
    assert facts.content
    assert not facts.valid


def test_content_filter_alone_is_not_useful_but_beside_a_good_choice_it_is():
    filtered = [chunk({"content": "Well"}), chunk(finish="content_filter")]
    assert not read(*filtered, DONE).useful
    assert read(*filtered, chunk({"content": "b"}, index=1), chunk(finish="stop", index=1), DONE).valid
    assert not whole(completion({"content": "Well"}, finish="content_filter")).useful


@pytest.mark.parametrize(
    ("frames", "status", "kind"),
    [
        ([frame({"error": OVERLOADED_ERROR})], 529, FailureKind.OVERLOADED),
        ([frame({"error": {"code": 503, "message": "queue full"}})], 503, FailureKind.OVERLOADED),
        ([frame({"error": "upstream died"})], 500, FailureKind.TRANSIENT),
        ([frame({"object": "error", "message": "x", "type": "BadRequestError", "code": 400})], 400, FailureKind.FATAL),
        ([frame({"type": "error", "error": {"type": "overloaded_error"}})], 529, FailureKind.OVERLOADED),
        ([b"event: error\n" + frame(OVERLOADED_ERROR)], 529, FailureKind.OVERLOADED),
        ([b"event: error\n" + frame({"error": {"type": "server_error"}})], 500, FailureKind.TRANSIENT),
        ([b"event: error\ndata: it broke\n\n"], 500, FailureKind.TRANSIENT),
        ([b'error: {"code":500,"message":"x","type":"server_error"}\n\n'], 500, FailureKind.TRANSIENT),
        ([chunk({"content": ""}, finish="error", error={"code": 502, "message": "x"})], 502, FailureKind.TRANSIENT),
        ([chunk({}, finish="error")], 502, FailureKind.TRANSIENT),
        ([chunk({}, finish="insufficient_system_resource")], 503, FailureKind.OVERLOADED),
        ([frame({"choices": [{"index": 0, "delta": {}, "error": {"code": 429}}]})], 429, FailureKind.RATE_LIMITED),
        ([frame({"error": {"type": "insufficient_quota"}})], 429, FailureKind.FATAL),
    ],
)
def test_an_error_inside_a_200_is_a_failure_with_its_status_and_the_end_mark_does_not_mend_it(frames, status, kind):
    facts = read(*frames, DONE)
    assert facts.failure is not None
    assert (facts.failure.status, facts.failure.kind) == (status, kind)
    assert not facts.content
    assert not facts.valid


def test_an_error_after_content_leaves_both_in_the_facts():
    facts = read(chunk({"content": "Hi"}), frame({"error": OVERLOADED_ERROR}), DONE)
    assert facts.content
    assert facts.failure is not None
    assert not facts.valid


def test_the_first_error_is_the_one_that_counts():
    facts = read(frame({"error": OVERLOADED_ERROR}), frame({"error": {"code": 400}}))
    assert facts.failure is not None
    assert facts.failure.status == 529


def test_an_error_field_of_null_is_no_error():
    assert read(chunk({"content": "Hi"}, finish="stop", error=None), DONE).valid


@pytest.mark.parametrize("headers", [JSON, SSE, []])
@pytest.mark.parametrize("body", [{"error": OVERLOADED_ERROR}, [{"error": OVERLOADED_ERROR}]])
def test_a_whole_body_that_is_an_error_is_a_failure_whatever_its_label(body, headers):
    facts = whole(body, headers)
    assert facts.failure is not None
    assert facts.failure.status == 529
    assert not facts.valid


def test_a_whole_body_is_read_at_its_end():
    body = orjson.dumps(completion({"role": "assistant", "content": "Hello"}))
    facts = read(b" \n", body[:20], body[20:], headers=JSON, finish=False)
    assert not facts.content
    facts = read(b" \n", body[:20], body[20:], headers=JSON)
    assert facts.valid
    assert (facts.visible_chars, facts.model, facts.service_tier) == (5, "m-2026", "default")


@pytest.mark.parametrize("body", [b"", b"{", b'{"choices":[{"message":{"content":"Hel', b"<html>busy</html>"])
def test_a_whole_body_that_cannot_be_read_has_not_ended(body):
    facts = read(body, headers=JSON)
    assert not facts.ended
    assert not facts.content


@pytest.mark.parametrize("headers", [JSON, []])
def test_a_stream_under_another_label_is_still_read_as_one(headers):
    facts = read(b": hello\n\n", chunk({"content": "Hi"}), chunk(finish="stop"), DONE, headers=headers)
    assert facts.valid


def test_usage_is_the_last_seen_never_a_sum():
    def usage(output_tokens: int) -> dict[str, int]:
        return {"prompt_tokens": 10, "completion_tokens": output_tokens}

    facts = read(
        chunk({"content": "a"}, usage=usage(1)), chunk({"content": "b"}, usage=usage(2)), chunk({}, usage=None)
    )
    assert facts.usage == Usage(input_tokens=10, output_tokens=2)


@pytest.mark.parametrize("choices", [[], [{"index": 0, "delta": {"content": "!"}, "finish_reason": "stop"}]])
def test_usage_with_its_details_on_its_own_chunk_or_on_the_last_content_chunk(choices):
    usage = {
        "prompt_tokens": 10,
        "completion_tokens": 7,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 5},
    }
    facts = read(chunk({"content": "a"}), frame({"choices": choices, "usage": usage}), DONE)
    assert facts.usage == Usage(input_tokens=10, output_tokens=7, cached_tokens=4, reasoning_tokens=5)


def test_deepseek_names_cached_tokens_its_own_way():
    usage = {"prompt_tokens": 10, "completion_tokens": 7, "prompt_cache_hit_tokens": 8}
    assert read(chunk({}, usage=usage)).usage == Usage(input_tokens=10, output_tokens=7, cached_tokens=8)


@pytest.mark.parametrize(
    "usage", [{}, [], "many", {"prompt_tokens": "ten"}, {"prompt_tokens": -1}, {"prompt_tokens": True}]
)
def test_usage_that_makes_no_sense_is_not_usage(usage):
    assert read(chunk({}, usage=usage)).usage is None


def test_model_and_tier_are_those_of_the_answer():
    facts = read(
        frame({"choices": [], "model": ""}), chunk({"content": "a"}, model="gpt-x-2026", service_tier="priority"), DONE
    )
    assert (facts.model, facts.service_tier) == ("gpt-x-2026", "priority")


@pytest.mark.parametrize(
    "garbage",
    [
        b"data: {not json}\n\n",
        b"data: \xff\xfe\n\n",
        b"data: []\n\n",
        b"data: 7\n\n",
        b"data: null\n\n",
        b'data: {"choices":7}\n\n',
        b'data: {"choices":[7,null,{"delta":7},{"index":"x","delta":{"content":7,"tool_calls":[7],"audio":7}}]}\n\n',
        b"data: " + b'{"a":' * 3000 + b"\n\n",
        b"what: is this\n\n",
    ],
)
def test_garbage_is_skipped_and_what_follows_is_read(garbage):
    facts = read(garbage, chunk({"content": "Hi"}), DONE)
    assert (facts.visible_chars, facts.chunks, facts.failure, facts.ended) == (2, 1, None, True)


def test_content_beside_a_number_that_is_none_is_not_lost():
    assert read(b'data: {"choices":[{"delta":{"content":"Hi"},"logprobs":NaN}]}\n\n').content
    assert read(b'data: {"choices":[{"delta":{"content":"\\ud83d"}}]}\n\n').content
