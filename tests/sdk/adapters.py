"""What each SDK calls the same thing: one Adapter per client and API, so that one test speaks to all of them.

A Speaker is a hedged client of one of them, synchronous or not; tests await it either way: synchronous calls run in a thread.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import anthropic
import httpx
import openai
from google import genai
from tests.sdk.racing import eventually, outcomes, scripted

import hedgerow
from hedgerow.testing.process import SandboxProcess

__all__ = ["ADAPTERS", "Adapter", "OpenStream", "Speak", "Speaker"]

MESSAGES: Any = [{"role": "user", "content": "hi"}]
DONE: Any = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapter:
    """One API of one SDK. plain: an unhedged client (sandbox, synchronous?). send: a call (client, headers, streamed?), as the
    SDK makes it, awaitable if the client is asynchronous. text, piece: what an answer, or an event of a stream, says; status:
    the HTTP status of the SDK's error. close: ends a stream early, awaitable or not; shut: what closes a client."""

    name: str
    plain: Callable[[SandboxProcess, bool], Any]
    send: Callable[[Any, dict[str, str], bool], Any]
    text: Callable[[Any], str]
    piece: Callable[[Any], str]
    status: Callable[[Any], int | None] = lambda error: getattr(error, "status_code", None)
    close: Callable[[Any], Any] = lambda stream: stream.close()
    shut: Callable[[Any], Callable[[], Any]] = lambda client: client.close

    def speaker(self, sandbox: SandboxProcess, *, sync: bool, backup: Any = None, **settings: Any) -> "Speaker":
        """A hedged client that backs a call up after 50 ms, whatever it costs, unless the settings say otherwise."""
        policy = hedgerow.Policy(**{"trigger": "first_token", "delay": 0.05, "budget": "off", **settings})
        return Speaker(self, hedgerow.hedged(self.plain(sandbox, sync), policy=policy, backup=backup), sync)


class Speaker:
    """A hedged client as a test uses it; cases and attempts are those of tests.sdk.racing."""

    def __init__(self, adapter: Adapter, client: Any, sync: bool) -> None:
        self.adapter, self.client, self.sync = adapter, client, sync

    async def ask(self, case: str, *attempts: dict[str, Any]) -> str:
        """One call, not streamed; its text."""
        return self.adapter.text(await self._send(case, attempts, False))

    async def opened(self, case: str, *attempts: dict[str, Any]) -> "OpenStream":
        """A streamed call that has begun."""
        return OpenStream(self, await self._send(case, attempts, True))

    async def stream(self, case: str, *attempts: dict[str, Any]) -> str:
        """One call, streamed and read to its end; its text."""
        return await (await self.opened(case, *attempts)).rest()

    async def speak(self, streamed: bool, case: str, *attempts: dict[str, Any]) -> str:
        """Either."""
        return await (self.stream if streamed else self.ask)(case, *attempts)

    async def leave(self, streamed: bool, sandbox: SandboxProcess, case: str, *attempts: dict[str, Any]) -> None:
        """Cancel a call when all its attempts have arrived. Only where there are tasks to cancel: not synchronous."""
        task = asyncio.ensure_future(self.speak(streamed, case, *attempts))
        await eventually(lambda: len(outcomes(sandbox, case)) == len(attempts))
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def events(self, count: int = 1) -> list[hedgerow.Event]:
        """The events, once so many calls are over and closed."""
        hedger = hedgerow.hedger_of(self.client)
        for _ in range(2_000):
            if len(seen := list(hedger.events)) >= count:
                return seen
            await asyncio.sleep(0.01)
        raise AssertionError(f"not {count} events after 20 s")

    async def shut(self) -> None:
        """Close the client, and with it its connections."""
        await self.do(self.adapter.shut(self.client))

    async def do(self, call: Callable[[], Any]) -> Any:
        """What the SDK does, awaited or in a thread."""
        if self.sync:
            return await asyncio.to_thread(call)
        result = call()
        return await result if inspect.isawaitable(result) else result

    async def _send(self, case: str, attempts: tuple[dict[str, Any], ...], streamed: bool) -> Any:
        return await self.do(lambda: self.adapter.send(self.client, scripted(case, *attempts), streamed))


Speak = Callable[..., Speaker]  # the fixture of this name: hedged clients with these settings, closed after the test


class OpenStream:
    """A stream that the SDK has handed over."""

    def __init__(self, speaker: Speaker, native: Any) -> None:
        self._speaker, self.native = speaker, native
        self._events = iter(native) if speaker.sync else aiter(native)

    async def next(self) -> str | None:
        """What the next event that says anything says; None at the end."""
        while (event := await self._event()) is not DONE:
            try:
                said = self._speaker.adapter.piece(event)
            except Exception:
                await self.close()
                raise
            if said:
                return said
        return None

    async def rest(self) -> str:
        """All that is still to come."""
        said: list[str] = []
        while (piece := await self.next()) is not None:
            said.append(piece)
        return "".join(said)

    async def close(self) -> None:
        """Leave it."""
        await self._speaker.do(lambda: self._speaker.adapter.close(self.native))

    def _event(self) -> Awaitable[Any]:
        if self._speaker.sync:
            return asyncio.to_thread(next, self._events, DONE)
        return anext(self._events, DONE)


def _openai(sandbox: SandboxProcess, sync: bool) -> Any:
    kind = openai.OpenAI if sync else openai.AsyncOpenAI
    return kind(base_url=f"{sandbox.url}/v1", api_key="k", max_retries=0)


def _openai_over_httpx(sandbox: SandboxProcess, sync: bool) -> Any:
    """As older versions of the SDK are, and as this one is with an HTTP client of classic httpx."""
    kind = openai.OpenAI if sync else openai.AsyncOpenAI
    inside = httpx.Client() if sync else httpx.AsyncClient()
    return kind(base_url=f"{sandbox.url}/v1", api_key="k", max_retries=0, http_client=inside)


def _anthropic(sandbox: SandboxProcess, sync: bool) -> Any:
    kind = anthropic.Anthropic if sync else anthropic.AsyncAnthropic
    return kind(base_url=sandbox.url, api_key="k", max_retries=0)


class _GenaiForThreads(genai.Client):
    """A genai.Client has both halves: which one a test speaks through."""


class _GenaiForLoops(genai.Client):
    """As above."""


def _genai(sandbox: SandboxProcess, sync: bool) -> Any:
    kind = _GenaiForThreads if sync else _GenaiForLoops
    return kind(api_key="k", http_options={"base_url": sandbox.url})


def _half(client: Any) -> Any:
    return client if isinstance(client, _GenaiForThreads) else client.aio


def _content(client: Any, headers: dict[str, str], streamed: bool) -> Any:
    models = _half(client).models
    call = models.generate_content_stream if streamed else models.generate_content
    return call(model="m", contents="hi", config={"http_options": {"headers": headers}})


def _chat(client: Any, headers: dict[str, str], streamed: bool) -> Any:
    return client.chat.completions.create(model="m", messages=MESSAGES, stream=streamed, extra_headers=headers)


def _response(client: Any, headers: dict[str, str], streamed: bool) -> Any:
    return client.responses.create(model="m", input="hi", store=False, stream=streamed, extra_headers=headers)


def _message(client: Any, headers: dict[str, str], streamed: bool) -> Any:
    return client.messages.create(model="m", max_tokens=999, messages=MESSAGES, stream=streamed, extra_headers=headers)


def _said(event: Any) -> str:
    """The SDK hands an error over as one more event; a caller would have to raise it."""
    if event.type in ("error", "response.failed"):
        raise openai.OpenAIError(event.message if event.type == "error" else event.response.error.message)
    return event.delta if event.type == "response.output_text.delta" else ""


ADAPTERS = (
    Adapter(
        name="openai chat",
        plain=_openai,
        send=_chat,
        text=lambda answer: answer.choices[0].message.content or "",
        piece=lambda chunk: "".join(choice.delta.content or "" for choice in chunk.choices),
    ),
    Adapter(
        name="openai chat over httpx",
        plain=_openai_over_httpx,
        send=_chat,
        text=lambda answer: answer.choices[0].message.content or "",
        piece=lambda chunk: "".join(choice.delta.content or "" for choice in chunk.choices),
    ),
    Adapter(
        name="openai responses",
        plain=_openai,
        send=_response,
        text=lambda answer: answer.output_text,
        piece=_said,
    ),
    Adapter(
        name="anthropic",
        plain=_anthropic,
        send=_message,
        text=lambda answer: "".join(block.text for block in answer.content if block.type == "text"),
        piece=lambda event: getattr(event.delta, "text", "") if event.type == "content_block_delta" else "",
    ),
    Adapter(
        name="gemini",
        plain=_genai,
        send=_content,
        text=lambda answer: answer.text or "",
        piece=lambda chunk: chunk.text or "",
        status=lambda error: getattr(error, "code", None),
        close=lambda stream: stream.aclose() if hasattr(stream, "aclose") else stream.close(),
        shut=lambda client: client.close if isinstance(client, _GenaiForThreads) else client.aio.aclose,
    ),
)
