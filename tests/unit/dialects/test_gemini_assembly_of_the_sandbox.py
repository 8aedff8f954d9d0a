"""The sandbox writes each Gemini answer both ways; streamed on the caller's behalf, it must come out as the whole one."""

from random import Random

import orjson
import pytest

from hedgerow.dialects.gemini import Gemini
from hedgerow.sandbox.content import Answer, ReportedUsage, compose
from hedgerow.sandbox.gemini import GeminiContent
from hedgerow.sandbox.script import Script
from hedgerow.values.request import WireRequest

WHOLE, STREAM = "/v1beta/models/m:generateContent", "/v1beta/models/m:streamGenerateContent"


@pytest.mark.parametrize(
    "script",
    [
        Script(),
        Script(text="Grüße 🌿"),
        Script(reasoning_tokens=5),
        Script(refusal="No, thank you."),
        Script(tool_calls=1),
        Script(tool_calls=3, reasoning_tokens=2),
        Script(usage=False, finish_reason="length"),
    ],
    ids=["prose", "text", "reasoning", "refusal", "tool call", "parallel calls", "no usage"],
)
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_the_assembled_answer_is_the_sandboxs_own_whole_answer(script: Script, line_end: str) -> None:
    dialect, wire = Gemini(), GeminiContent()
    request = WireRequest(method="POST", path=WHOLE, headers=(), body=b'{"contents": [{"parts": [{"text": "Hi"}]}]}')
    streamed = dialect.streamed(request)
    assert streamed is not None
    call = wire.read(STREAM, streamed.body)
    pieces = compose(script, call, 12, Random(7))
    answer = Answer(
        id="chatcmpl-1",
        created_at_s=1_790_000_000,
        call=call,
        n=1,
        pieces=pieces,
        finish_reason=script.finish_reason or "stop",
        service_tier="default",
        usage=ReportedUsage(input_tokens=3, output_tokens=len(pieces), reasoning_tokens=script.reasoning_tokens)
        if script.usage
        else None,
    )
    frames = [wire.ping(), *wire.opening(answer)]
    frames += [frame for number in range(len(answer.pieces)) for frame in wire.token(answer, number)]
    frames += [*wire.closing(answer), *wire.marker()]
    reader = dialect.assembling_reader(dialect.facts(request), [(b"content-type", b"text/event-stream")])
    for frame in frames:
        reader.feed(frame.lines(line_end))
    reader.finish()
    assert (call.stream, reader.facts.ended, reader.complete) == (True, True, True)
    assert orjson.loads(reader.response()) == orjson.loads(wire.whole(answer))
