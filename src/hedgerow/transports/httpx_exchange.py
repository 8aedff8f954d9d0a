"""Requests, answers and errors between classic httpx, which the caller uses, and httpx2, which sends. Both have the same shape:
what is not said here is carried over as it is."""

from collections.abc import AsyncIterator, Iterator

import httpx
import httpx2

__all__ = ["answer_for", "async_answer_for", "classic_error", "classic_request", "modern_request"]


def modern_request(request: httpx.Request, *, in_task: bool) -> httpx2.Request:
    """The request as httpx2 sends it, from a task or else from a thread. A body that is not all here stays a stream, which
    cannot be sent twice."""
    url, headers, extensions = httpx2.URL(str(request.url)), request.headers.raw, dict(request.extensions)
    try:
        content = request.content
    except httpx.RequestNotRead:
        stream = _sent_by_task(request) if in_task else _sent_by_thread(request)
        return httpx2.Request(request.method, url, headers=headers, stream=stream, extensions=extensions)
    return httpx2.Request(request.method, url, headers=headers, content=content, extensions=extensions)


def classic_request(request: httpx2.Request) -> httpx.Request:
    """What was asked, for an error to tell: without the body."""
    return httpx.Request(request.method, str(request.url), headers=request.headers.raw)


def classic_error(error: httpx2.RequestError, request: httpx.Request) -> httpx.RequestError:
    """The error of the same name, with the same message and notes; to be raised from `error`."""
    names = (each.__name__ for each in type(error).__mro__)
    kind = next(found for name in names if (found := getattr(httpx, name, None)) is not None)
    converted: httpx.RequestError = kind(str(error), request=request)
    for note in getattr(error, "__notes__", ()):
        converted.add_note(note)
    return converted


def answer_for(request: httpx.Request, response: httpx2.Response) -> httpx.Response:
    """The answer as a classic client reads it in a thread."""
    assert isinstance(response.stream, httpx2.SyncByteStream)
    whole = isinstance(response.stream, httpx2.ByteStream)
    stream = httpx.ByteStream(b"".join(response.stream)) if whole else _Body(response.stream, request)
    return httpx.Response(
        response.status_code, headers=response.headers.raw, stream=stream, extensions=response.extensions
    )


def async_answer_for(request: httpx.Request, response: httpx2.Response) -> httpx.Response:
    """The answer as a classic client reads it in a task."""
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    stream = _AsyncBody(response.stream, request)
    return httpx.Response(
        response.status_code, headers=response.headers.raw, stream=stream, extensions=response.extensions
    )


class _Body(httpx.SyncByteStream):
    def __init__(self, stream: httpx2.SyncByteStream, request: httpx.Request) -> None:
        self._stream, self._request = stream, request

    def __iter__(self) -> Iterator[bytes]:
        try:
            yield from self._stream
        except httpx2.RequestError as error:
            raise classic_error(error, self._request) from error

    def close(self) -> None:
        self._stream.close()


class _AsyncBody(httpx.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream, request: httpx.Request) -> None:
        self._stream, self._request = stream, request

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._stream:
                yield chunk
        except httpx2.RequestError as error:
            raise classic_error(error, self._request) from error
        except GeneratorExit:
            # Dropped in the middle. Nothing else would close it: a classic response refers to itself, and so lives on until the
            # collector comes by.
            await self._stream.aclose()
            raise

    async def aclose(self) -> None:
        await self._stream.aclose()


def _sent_by_task(request: httpx.Request) -> httpx2.AsyncByteStream:
    assert isinstance(request.stream, httpx.AsyncByteStream)  # a classic client refuses others before it sends
    return _AsyncSent(request.stream)


def _sent_by_thread(request: httpx.Request) -> httpx2.SyncByteStream:
    assert isinstance(request.stream, httpx.SyncByteStream)
    return _Sent(request.stream)


class _Sent(httpx2.SyncByteStream):
    def __init__(self, stream: httpx.SyncByteStream) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[bytes]:
        yield from self._stream

    def close(self) -> None:
        self._stream.close()


class _AsyncSent(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()
