"""A synchronous SDK client under the async client's interface: each call blocks a thread, so that one test serves both."""

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any

from openai import OpenAI

import hedgerow

__all__ = ["Threaded", "in_thread"]

END = object()


async def in_thread(function: Callable[..., Any], *args: Any, **fields: Any) -> Any:
    """In a thread of its own, which nobody waits for at the end: a call that is never answered must not hold up the others.
    When it comes back its thread has ended, so that nothing there still holds what a test is about to forget."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()

    def tell(result: Any, error: BaseException | None) -> None:
        if not done.done():
            done.set_exception(error) if error is not None else done.set_result(result)

    def work() -> None:
        result, error = None, None
        try:
            result = context.run(function, *args, **fields)
        except BaseException as raised:
            error = raised
        with contextlib.suppress(RuntimeError):  # the test and its loop are over
            loop.call_soon_threadsafe(tell, result, error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    await asyncio.wait([done])
    thread.join()
    return done.result()


class Threaded:
    """`client.chat.completions.create` and what the tests of calls use beside it."""

    def __init__(self, client: OpenAI) -> None:
        self.sync, self.hedger = client, hedgerow.hedger_of(client)
        self.chat = SimpleNamespace(
            completions=SimpleNamespace(
                create=self._create,
                with_raw_response=SimpleNamespace(create=self._raw),
                with_streaming_response=SimpleNamespace(create=self._opened),
            )
        )
        self.embeddings = SimpleNamespace(create=self._embed)

    async def close(self) -> None:
        await in_thread(self.sync.close)

    async def _create(self, **fields: Any) -> Any:
        answer = await in_thread(self.sync.chat.completions.create, **fields)
        return _Chunks(answer) if fields.get("stream") else answer

    async def _raw(self, **fields: Any) -> Any:
        return await in_thread(self.sync.chat.completions.with_raw_response.create, **fields)

    @contextlib.asynccontextmanager
    async def _opened(self, **fields: Any) -> AsyncIterator[Any]:
        opened = self.sync.chat.completions.with_streaming_response.create(**fields)
        yield await in_thread(opened.__enter__)
        await in_thread(opened.__exit__, None, None, None)

    async def _embed(self, **fields: Any) -> Any:
        return await in_thread(self.sync.embeddings.create, **fields)


class _Chunks:
    """A stream whose chunks are awaited, each in a thread; `native` is the SDK's own."""

    def __init__(self, stream: Any) -> None:
        self.response = stream.response
        self.native, self._chunks = stream, iter(stream)

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        chunk = await in_thread(next, self._chunks, END)
        if chunk is END:
            raise StopAsyncIteration
        return chunk

    async def close(self) -> None:
        await in_thread(self.native.close)

    async def __aenter__(self) -> "_Chunks":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
