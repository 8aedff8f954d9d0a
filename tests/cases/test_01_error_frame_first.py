"""model-hotel PR 803: a 200 whose first frame was an error object won the race, and its healthy rival was cancelled.

Right: an error inside a 200 never commits, whatever its shape and whatever harmless frames come before it; the race goes on.
"""

import openai
import pytest
from tests.cases.support import Hedge, Send, chunk, opened, raw, recorded, whole_and_streamed
from tests.sdk.racing import ask, idle, outcomes, stream

from hedgerow.testing.process import SandboxProcess

BUSY = {"type": "overloaded_error", "message": "busy"}
HEALTHY = {"await_arrivals": 2, "first_token_s": 0.2, "text": "healthy"}
DONE = "data: [DONE]\n\n"

IN_BAND = {
    "error first": {"role_chunk": False, "error_frame": {"after": 0, "error": BUSY}},
    "after the role chunk": {"error_frame": {"after": 0, "error": BUSY}},
    "without an end marker": {"error_frame": {"after": 0, "error": BUSY}, "end": "eof"},
    "without a type": {"error_frame": {"after": 0, "error": {"message": "out of memory"}}},
    "request-fatal": {"error_frame": {"after": 0, "error": {"type": "invalid_request_error", "message": "no"}}},
    "byte by byte": {"error_frame": {"after": 0, "error": BUSY}, "chunk_bytes": 1},
}
ONLY_STREAMED = {
    "error is a text": raw({"error": "queue full"}, DONE),
    "event: error": raw('event: error\ndata: {"message": "overloaded"}\n\n'),
    "object: error": raw({"object": "error", "message": "busy", "type": "InternalServerError", "code": 500}, DONE),
    "after a comment and an empty delta": raw(": PROCESSING\n\n", chunk({"content": ""}), {"error": BUSY}),
    "inside the choice": raw(chunk({}, finish_reason="error", error={"code": 502, "message": "gone"})),
    "finish reason only": raw(chunk({"content": ""}, finish_reason="error"), DONE),
}
STREAMED = IN_BAND | {name: {"raw_body": body} for name, body in ONLY_STREAMED.items()}
EITHER = [
    (send, name, script) for send, kinds in ((ask, IN_BAND), (stream, STREAMED)) for name, script in kinds.items()
]

every_error = pytest.mark.parametrize(
    ("send", "error"),
    [pytest.param(send, script, id=f"{send.__name__}, {name}") for send, name, script in EITHER],
)


@every_error
async def test_a_backups_error_frame_leaves_the_healthy_primary_alone(
    hedge: Hedge, hedgerow_sandbox: SandboxProcess, send: Send, error: dict[str, object]
) -> None:
    client = hedge(max_backups=1)
    assert await send(client, "1/backup", HEALTHY, error | {"first_token_s": 0.0}) == "healthy"
    await idle(hedgerow_sandbox)
    assert outcomes(hedgerow_sandbox, "1/backup")[0] == "completed"
    (event,) = await recorded(client)
    assert [attempt.outcome for attempt in event.attempts] == ["won", "failed"]


@whole_and_streamed
@pytest.mark.parametrize("error", [IN_BAND["error first"], IN_BAND["without a type"]])
async def test_a_primarys_error_frame_leaves_the_healthy_backup_alone(
    hedge: Hedge, hedgerow_sandbox: SandboxProcess, send: Send, error: dict[str, object]
) -> None:
    client = hedge(max_backups=1)
    assert await send(client, "1/primary", error | {"await_arrivals": 2, "first_token_s": 0.1}, HEALTHY) == "healthy"
    await idle(hedgerow_sandbox)
    first, second = outcomes(hedgerow_sandbox, "1/primary")
    assert first in ("failed", "disconnected")  # closed at the error frame, perhaps before the last of it was written
    assert second == "completed"


async def test_when_every_copy_sends_an_error_frame_the_caller_sees_it(
    hedge: Hedge, hedgerow_sandbox: SandboxProcess
) -> None:
    client = hedge(max_backups=1)
    chunks = await opened(client, "1/all", {"error_frame": {"after": 0, "error": BUSY}})
    with pytest.raises(openai.APIError, match="busy"):
        [_ async for _ in chunks]
    (event,) = await recorded(client)
    assert (event.outcome, event.winner) == ("failed", None)
    assert outcomes(hedgerow_sandbox, "1/all") == ["failed", "failed"]
