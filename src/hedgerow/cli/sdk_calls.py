"""Sends the calls of an arm through the real OpenAI SDK, and says what they ask."""

from collections.abc import AsyncGenerator, Mapping
from typing import Any, cast

import openai

from hedgerow.clock import Clock
from hedgerow.engine import Hedger
from hedgerow.replay.arms import Arm
from hedgerow.replay.calls import Piece
from hedgerow.replay.result import Backups
from hedgerow.transports.hedging import hedged, hedger_of
from hedgerow.values.event import Event

__all__ = ["ArmClient"]

MODEL = "sandbox-large"
WORD = "hedge-row "
WORDS_PER_TOKEN = 0.4  # of ten characters each, at the four characters a token the sandbox goes by
SMALLEST_PROMPT_TOKENS, LARGEST_PROMPT_TOKENS = 20, 900
GOLDEN_RATIO = 0.6180339887498949


class ArmClient:
    """One arm's own hedged client: its own statistics, budget and connections. Not for threads.

    No SDK retries, time-outs or proxies: what is measured is the arm alone.
    """

    def __init__(self, arm: Arm, base_url: str, clock: Clock) -> None:
        plain = openai.AsyncOpenAI(
            base_url=base_url,
            api_key="sandbox",
            max_retries=0,
            timeout=None,
            http_client=openai.DefaultAsyncHttpxClient(trust_env=False, timeout=None),
        )
        self._tier = {} if arm.service_tier is None else {"service_tier": arm.service_tier}
        self._client = hedged(plain, policy=arm.policy, clock=clock)
        self._sent = self._won = 0
        hedger_of(self._client).subscribe(self._count)

    @property
    def backups(self) -> Backups:
        """Those of the requests that are over and whose losers are closed."""
        return Backups(sent=self._sent, won=self._won)

    async def send(self, case: str, number: int) -> AsyncGenerator[Piece]:
        """Request `number`, streamed, as that case of the sandbox."""
        # The SDK's request, stream decoder and errors, without its models: to build one takes 70 µs a chunk, more than a
        # token's time at the usual time scale, and the arms would queue for this process instead of the provider.
        stream = await self._client.post(
            "/chat/completions",
            body={
                "model": MODEL,
                "messages": [{"role": "user", "content": prompt(number)}],
                "stream": True,
                **self._tier,
            },
            options={"headers": {"x-sandbox-case": case}},
            cast_to=object,
            stream=True,
            stream_cls=openai.AsyncStream[object],
        )
        silent = True
        async with stream:
            async for chunk in stream:
                piece = _piece(cast("dict[str, Any]", chunk))
                if piece.last or (silent and piece.content):
                    silent = False
                    yield piece

    async def close(self) -> None:
        """Waits until every loser is closed and counted, then closes the connections."""
        hedger = hedger_of(self._client)
        assert isinstance(hedger, Hedger)
        await hedger.aclose()
        await self._client.close()

    def _count(self, event: Event) -> None:
        self._sent += len(event.attempts) - 1
        self._won += bool(event.winner) and event.outcome == "answered"


def prompt(number: int) -> str:
    """The prompt of request `number`: 20 to 900 tokens, small ones more often, the same in every arm and every run.

    All are of one size class, so that the statistics are soon warm.
    """
    spread = LARGEST_PROMPT_TOKENS / SMALLEST_PROMPT_TOKENS
    tokens = SMALLEST_PROMPT_TOKENS * spread ** (number * GOLDEN_RATIO % 1)
    return WORD * round(tokens * WORDS_PER_TOKEN)


def _piece(chunk: Mapping[str, Any]) -> Piece:
    choice = chunk["choices"][0] if chunk["choices"] else None
    if choice is None:
        return Piece(answer_id=chunk["id"], content=False, last=False)
    return Piece(
        answer_id=chunk["id"],
        content=bool(choice["delta"].get("content")),
        last=choice["finish_reason"] is not None,
    )
