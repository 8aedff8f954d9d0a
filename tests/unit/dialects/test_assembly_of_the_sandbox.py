"""The sandbox writes each answer both ways; asked for a stream on the caller's behalf, it must come out as the whole one."""

from random import Random

import orjson
import pytest

from hedgerow.dialects.openai_chat import OpenAIChat
from hedgerow.sandbox import openai_chat
from hedgerow.sandbox.content import Answer, ReportedUsage, compose
from hedgerow.sandbox.script import Script
from hedgerow.values.request import WireRequest

PATH = "/v1/chat/completions"


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize(
    "script",
    [
        Script(),
        Script(text="Grüße 🌿"),
        Script(text=""),
        Script(reasoning_tokens=5),
        Script(refusal="No, thank you."),
        Script(tool_calls=1),
        Script(tool_calls=3, reasoning_tokens=2),
        Script(usage=False, finish_reason="length"),
    ],
    ids=["prose", "text", "nothing", "reasoning", "refusal", "tool call", "parallel calls", "no usage"],
)
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_the_assembled_answer_is_the_sandbox_s_own_whole_answer(script, n, line_end):
    dialect, wire = OpenAIChat(), openai_chat.OpenAIChat()
    body = orjson.dumps({"model": "m", "messages": [{"role": "user", "content": "Hi"}], "n": n})
    request = WireRequest(method="POST", path=PATH, headers=(), body=body)
    call = wire.read(PATH, dialect.streamed(request) or b"")
    answer = Answer(
        id="chatcmpl-1",
        created_at_s=1_790_000_000,
        call=call,
        n=call.n,
        pieces=compose(script, call, 12, Random(7)),
        finish_reason=script.finish_reason or "stop",
        service_tier="default",
        usage=ReportedUsage(input_tokens=3, output_tokens=12 * n) if script.usage else None,
    )
    frames = [wire.ping(), *wire.opening(answer)]
    frames += [frame for number in range(len(answer.pieces)) for frame in wire.token(answer, number)]
    frames += [*wire.closing(answer), *wire.marker()]

    reader = dialect.assembling_reader(dialect.facts(request), [(b"content-type", b"text/event-stream")])
    for frame in frames:
        reader.feed(frame.lines(line_end))
    reader.finish()

    assert call.stream
    assert reader.facts.ended
    assert reader.complete
    assert orjson.loads(reader.response()) == orjson.loads(wire.whole(answer))
