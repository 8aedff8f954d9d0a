"""dotnet/extensions 5699, Polly: the answer waited until the losers had ended.

Right: a loser that ignores its cancel delays nothing. Here losers cling until the test lets them go; the answer must be there
before, whichever attempt clings, wherever it clings, and however it ends at last. A thread's attempts run on hedgerow's own loop,
so there it is the twin of the client's transport that clings.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable

import httpx2
import pytest
from openai import AsyncOpenAI
from tests.cases.support import NEVER_S, Handle, Hedge, Send, all_closed, recorded, whole_and_streamed
from tests.sdk.racing import QUICK, ask, eventually, outcomes

import hedgerow
from hedgerow.testing.process import SandboxProcess

STUCK = {"first_token_s": NEVER_S}
HEADERS_LATE = {"before_headers_s": NEVER_S}


class Clinging:
    """Attempts that go on when they are cancelled, until `release` is set. `then` is how they end."""

    def __init__(self, then: str) -> None:
        self.release = threading.Event()
        self.clinging = self.closed = 0
        self._then = then

    def between(self, handle: Handle) -> Handle:
        async def clinging(request: httpx2.Request) -> httpx2.Response:
            try:
                response = await handle(request)
            except asyncio.CancelledError:
                await self.linger()
                if self._then == "answers after all":
                    return httpx2.Response(200, stream=_LateBody(self))
                if self._then == "fails":
                    raise httpx2.ReadError("gone", request=request) from None
                raise
            assert isinstance(response.stream, httpx2.AsyncByteStream)
            body = _Body(self, response.stream)
            return httpx2.Response(response.status_code, headers=response.headers.raw, stream=body)

        return clinging

    async def linger(self) -> None:
        """Wait for the release, whoever cancels."""
        self.clinging += 1
        while not self.release.is_set():
            try:
                await asyncio.sleep(0.005)  # the test sets it in another thread if the race is a thread's
            except asyncio.CancelledError:
                pass
        self.clinging -= 1


class _Body(httpx2.AsyncByteStream):
    """A body that clings when its reading is cancelled."""

    def __init__(self, attempts: Clinging, inner: httpx2.AsyncByteStream) -> None:
        self._attempts, self._inner = attempts, inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._inner:
                yield chunk
        except asyncio.CancelledError:
            await self._attempts.linger()
            raise

    async def aclose(self) -> None:
        await self._inner.aclose()


class _LateBody(httpx2.AsyncByteStream):
    """What a loser brings when nobody wants it any more."""

    def __init__(self, attempts: Clinging) -> None:
        self._attempts = attempts

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield b'{"choices":[{"index":0,"message":{"role":"assistant","content":"late"},"finish_reason":"stop"}]}'

    async def aclose(self) -> None:
        self._attempts.closed += 1


Clings = Callable[[str], tuple[Clinging, AsyncOpenAI]]


@pytest.fixture
async def clings(hedge: Hedge) -> AsyncIterator[Clings]:
    made: list[Clinging] = []

    def make(then: str) -> tuple[Clinging, AsyncOpenAI]:
        losers = Clinging(then)
        made.append(losers)
        return losers, hedge(between=losers.between, max_backups=1)

    yield make
    for losers in made:
        losers.release.set()  # closing the client waits for its losers


@pytest.mark.library_only(reason="what clings stands inside a client's transport")
@whole_and_streamed
@pytest.mark.parametrize("then", ["gives in", "fails", "answers after all"])
@pytest.mark.parametrize(
    ("loser", "attempts"),
    [
        (0, [HEADERS_LATE, QUICK]),
        (0, [STUCK, QUICK]),
        (1, [{"await_arrivals": 2, "first_token_s": 0.2}, HEADERS_LATE]),
        (1, [{"await_arrivals": 2, "first_token_s": 0.2}, STUCK]),
    ],
)
async def test_the_answer_is_there_while_the_loser_still_clings(
    clings: Clings,
    hedgerow_sandbox: SandboxProcess,
    send: Send,
    then: str,
    loser: int,
    attempts: list[dict[str, object]],
) -> None:
    losers, client = clings(then)
    hedger = hedgerow.hedger_of(client)
    assert await send(client, "13", *[attempt | {"text": f"from {n}"} for n, attempt in enumerate(attempts)]) == (
        f"from {1 - loser}"
    )
    await eventually(lambda: losers.clinging == 1)  # it may not have heard of its cancel yet
    assert hedger.stats()["losers_open"] == 1
    assert not list(hedger.events)  # type: ignore[call-overload]
    losers.release.set()
    await all_closed(client, hedgerow_sandbox)
    (event,) = await recorded(client)
    assert event.attempts[loser].outcome == "lost"
    assert event.attempts[1 - loser].outcome == "won"
    assert event.attempts[loser].close_s is not None


@pytest.mark.library_only(reason="what clings stands inside a client's transport")
async def test_what_a_loser_brings_late_is_closed_unread(clings: Clings, hedgerow_sandbox: SandboxProcess) -> None:
    losers, client = clings("answers after all")
    task = asyncio.current_task()
    assert task is not None
    await ask(client, "13", HEADERS_LATE, QUICK)
    assert task.cancelling() == 0
    losers.release.set()
    await all_closed(client, hedgerow_sandbox)
    assert losers.closed >= 1


@whole_and_streamed
async def test_a_provider_that_ignores_the_disconnect_delays_nothing(
    hedge: Hedge, hedgerow_sandbox: SandboxProcess, send: Send
) -> None:
    client = hedge()
    deaf = {"first_token_s": 0.0, "role_chunk": False, "stall": {"after": 0, "s": 3.0}, "ignore_disconnect": True}
    assert await send(client, "13/deaf", deaf, QUICK | {"text": "answer"}) == "answer"
    (event,) = await recorded(client)  # its connection is closed here, though the provider works on
    assert event.attempts[0].outcome == "lost"
    assert outcomes(hedgerow_sandbox, "13/deaf") == [None, "completed"]
