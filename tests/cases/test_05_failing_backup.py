"""hedge-python, httpx-hedged (tried): a backup's quick 429 or refused connection was returned while the primary was healthy.

Right: an error never beats a live attempt (promise 2). When all have failed, the caller gets the primary's error.
"""

import asyncio
import socket
from collections.abc import Callable
from typing import Any

import openai
import pytest
from tests.cases.support import Hedge, Send, closed_port, recorded, whole_and_streamed
from tests.provider_time import Watched
from tests.sdk.racing import QUICK, ask, eventually, outcomes, plain, stream

import hedgerow
from hedgerow.testing.process import SandboxProcess

HEALTHY = {"first_token_s": 0.2, "text": "healthy"}
RACED = {"await_arrivals": 2}
SLOWER_ERROR = {"status": 500, "before_headers_s": 0.2, **RACED}
BAD_ANSWERS = {
    **{str(status): {"status": status} for status in (400, 401, 404, 408, 429, 500, 503)},
    "429 that asks to wait": {"status": 429, "retry_after": 30},
    "spent quota": {"status": 429, "error_frame": {"error": {"code": "insufficient_quota", "message": "no"}}},
    "reset": {"reset": True, "first_token_s": 0.0},
    "cut before the headers": {"cut_after": 0, "first_token_s": 0.0, "before_headers_s": 9.0},
    "cut after a few tokens of a whole answer": {"cut_after": 2, "first_token_s": 0.0, "token_s": 0.0, "tokens": 9},
    "html in place of an answer": {"status": 502, "raw_body": "<html>Bad Gateway</html>"},
}
NOWHERE = {
    "refused": lambda _sandbox: f"http://127.0.0.1:{closed_port()}/v1",
    "no such name": lambda _sandbox: "http://no-such-name.localhost:9/v1",
    "no such path": lambda sandbox: f"{sandbox.url}/nowhere",
}


async def in_time_for_the_backups_to_fail(
    client: openai.AsyncOpenAI, sandbox: SandboxProcess, watched: Watched
) -> None:
    """Both ways at once. A backup that never arrives cannot be awaited by the primary's script: a third request that comes once
    the backup has failed lets the primary answer."""
    calls = asyncio.ensure_future(whole_and_streamed_at_once(client, HEALTHY | RACED))
    async with plain(sandbox) as other:
        for case in ("5/ask", "5/stream"):
            await eventually(lambda case=case: watched.heard_of[case] > 0)
            await ask(other, case, QUICK)
    assert await calls == ["healthy", "healthy"]
    for event in await recorded(client, 2):
        assert [attempt.outcome for attempt in event.attempts] == ["won", "failed"]


async def whole_and_streamed_at_once(client: openai.AsyncOpenAI, *attempts: dict[str, Any]) -> list[str]:
    return await asyncio.gather(ask(client, "5/ask", *attempts), stream(client, "5/stream", *attempts))


@pytest.mark.parametrize("script", BAD_ANSWERS.values(), ids=BAD_ANSWERS)
async def test_a_backups_bad_answer_waits_for_the_primary(
    hedge: Hedge, hedgerow_sandbox: SandboxProcess, script: dict[str, Any]
) -> None:
    client = hedge(max_backups=1)
    if script.get("cut_after"):
        # A stream's first tokens would win fairly; what is cut here is an answer nobody can use.
        assert await ask(client, "5/ask", HEALTHY | RACED, script) == "healthy"
        return
    assert await whole_and_streamed_at_once(client, HEALTHY | RACED, script) == ["healthy", "healthy"]
    for case in ("5/ask", "5/stream"):
        primary, _backup = outcomes(hedgerow_sandbox, case)
        assert primary == "completed"
    for event in await recorded(client, 2):
        assert [attempt.outcome for attempt in event.attempts] == ["won", "failed"]


@pytest.mark.parametrize("url", NOWHERE.values(), ids=NOWHERE)
async def test_a_backup_target_that_is_not_there_waits_for_the_primary(
    hedge: Hedge, hedgerow_sandbox: SandboxProcess, watched: Watched, monkeypatch: pytest.MonkeyPatch, url: Any
) -> None:
    look_up = socket.getaddrinfo

    def no_such_name(host: Any, *rest: Any, **named: Any) -> Any:
        if "no-such-name" in str(host):
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return look_up(host, *rest, **named)

    monkeypatch.setattr(socket, "getaddrinfo", no_such_name)
    client = hedge(max_backups=1, backup=hedgerow.Target(base_url=url(hedgerow_sandbox), api_key="other"))
    await in_time_for_the_backups_to_fail(client, hedgerow_sandbox, watched)


async def test_a_backup_target_without_a_trusted_certificate_waits_for_the_primary(
    hedge: Hedge,
    hedgerow_sandbox: SandboxProcess,
    watched: Watched,
    hedgerow_sandbox_factory: Callable[..., SandboxProcess],
) -> None:
    untrusted = hedgerow_sandbox_factory(tls=True)
    client = hedge(max_backups=1, backup=hedgerow.Target(base_url=f"{untrusted.url}/v1", api_key="other"))
    await in_time_for_the_backups_to_fail(client, hedgerow_sandbox, watched)
    assert untrusted.stats()["started"] == 0


@whole_and_streamed
@pytest.mark.parametrize("backup", [{"status": 429}, {"status": 404}, {"reset": True, "first_token_s": 0.0}])
async def test_when_both_fail_the_primarys_error_is_the_callers(
    hedge: Hedge, send: Send, backup: dict[str, Any]
) -> None:
    client = hedge(max_backups=1)
    with pytest.raises(openai.InternalServerError) as failed:
        await send(client, "5/both", SLOWER_ERROR, backup)
    assert failed.value.status_code == 500
    (event,) = await recorded(client)
    assert [attempt.outcome for attempt in event.attempts] == ["failed", "failed"]


@pytest.mark.library_only(reason="a client of the gateway gets an HTTP answer, which has no notes")
async def test_the_other_errors_ride_along_as_notes(hedge: Hedge) -> None:
    client = hedge(max_backups=1)
    with pytest.raises(openai.APIConnectionError) as failed:
        await ask(client, "5/notes", {"reset": True, "first_token_s": 0.1, **RACED}, {"status": 429})
    cause = failed.value.__cause__
    assert any("attempt 1" in note and "rate_limit" in note for note in getattr(cause, "__notes__", []))
