"""@hedge: a backup for any function that may run twice; async functions, async iterators, and, in threads, plain functions."""

import asyncio
import contextvars
import functools
import inspect
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from os import PathLike
from typing import Any, TypeVar, cast, overload

from hedgerow.clock import Clock
from hedgerow.dialects.callables import CALL, ITEM, YIELDS
from hedgerow.dialects.failures import failure_of_status
from hedgerow.engine import Hedger
from hedgerow.errors import UnsupportedError
from hedgerow.policy.gate import Place
from hedgerow.race.portal import portal
from hedgerow.race.upstream import ConnectionNotes
from hedgerow.record.recorder import Store
from hedgerow.record.store_urls import store_of
from hedgerow.settings import Policy
from hedgerow.sync_hedger import SyncHedger
from hedgerow.values.failure import Failure, FailureKind
from hedgerow.values.request import WireRequest

__all__ = ["hedge"]

Function = TypeVar("Function", bound=Callable[..., Any])
Backups = Callable[..., Any] | Sequence[Callable[..., Any]]
RETRIED = (ConnectionError, TimeoutError)


@overload
def hedge(policy: Function) -> Function: ...
@overload
def hedge(
    policy: Policy | None = None,
    *,
    backup: Backups = (),
    retry_on: tuple[type[Exception], ...] = RETRIED,
    events: Store | str | None = None,
    state: str | PathLike[str] | None = None,
    clock: Clock | None = None,
) -> Callable[[Function], Function]: ...
def hedge(
    policy: Policy | Callable[..., Any] | None = None,
    *,
    backup: Backups = (),
    retry_on: tuple[type[Exception], ...] = RETRIED,
    events: Store | str | None = None,
    state: str | PathLike[str] | None = None,
    clock: Clock | None = None,
) -> Any:
    """Decorates a function so that a call that falls behind gets a backup: the function is called again with the same
    arguments, the first result counts, and the other call is cancelled. Decorate only what may run twice.

        @hedgerow.hedge(hedgerow.Policy(budget=0.05))
        async def rerank(query, passages): ...

    policy: default Policy(); one budget and one set of statistics per decorated function. backup: other functions with the
    same arguments, called in this order for backups. retry_on: exceptions after which the next attempt starts at once (also
    those with a `status_code` of 408, 409, 429 or 5xx); all others end the race when no attempt is left. events, state,
    clock: as hedgerow.hedged.

    Async functions lose by cancellation, async iterators by `aclose()`. A plain function runs in a thread, which cannot be
    stopped: its loser runs on, unheard (outcome `abandoned`). Raises UnsupportedError for generators, which could not be
    raced without a thread for each item. `hedgerow.hedger_of(function)` has the statistics.
    """
    if callable(policy) and not isinstance(policy, Policy):
        return hedge()(policy)
    others = (backup,) if callable(backup) else tuple(backup)

    def decorate(function: Function) -> Function:
        functions, name = (function, *others), _name_of(function)
        places = tuple(Place(name=_name_of(each), account=str(number)) for number, each in enumerate(functions))

        def make() -> Hedger:
            return Hedger(policy or Policy(), places, clock=clock, store=store_of(events), state=state)

        return cast(Function, _wrapped(function, _Functions(name, functions, retry_on), make))

    return decorate


def _name_of(function: Callable[..., Any]) -> str:
    return getattr(function, "__qualname__", type(function).__qualname__)


class _Functions:
    """What is decorated: the function, those that back it up, and which errors are worth another try."""

    def __init__(
        self, name: str, functions: Sequence[Callable[..., Any]], retry_on: tuple[type[Exception], ...]
    ) -> None:
        self.functions, self._retry_on = tuple(functions), retry_on
        self.plain = WireRequest(method=CALL, path=name, headers=(), body=b"")
        self.yielding = WireRequest(method=CALL, path=name, headers=(YIELDS,), body=b"")

    def failure_of(self, error: Exception) -> Failure:
        status = getattr(error, "status_code", None)
        if isinstance(status, int) and status >= 400:
            return failure_of_status(status)
        kind = FailureKind.TRANSIENT if isinstance(error, self._retry_on) else FailureKind.LOCAL
        return Failure(kind=kind, error=type(error).__name__)


def _wrapped(function: Callable[..., Any], functions: _Functions, make: Callable[[], Hedger]) -> Callable[..., Any]:
    wrapper: Any
    if inspect.isgeneratorfunction(function):
        raise UnsupportedError(
            f"{_name_of(function)} is a generator, which cannot be hedged: make it an async generator"
        )
    if inspect.isasyncgenfunction(function):
        hedger = make()

        @functools.wraps(function)
        async def iterate(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
            delivery = await hedger.send(functions.yielding, _Call(functions, args, kwargs, _iterating))
            items = cast(_Items, delivery.response).items
            try:
                async for taken in delivery:
                    for _ in taken:
                        yield items.popleft()
            finally:
                await delivery.aclose()

        wrapper = iterate
    elif inspect.iscoroutinefunction(function):
        hedger = make()

        @functools.wraps(function)
        async def call(*args: Any, **kwargs: Any) -> Any:
            return await _result(hedger, functions, _Call(functions, args, kwargs, _awaiting))

        wrapper = call
    else:
        hedger = SyncHedger(make)

        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            return portal().run(_result(hedger.inner(), functions, _Call(functions, args, kwargs, _in_thread)))

        wrapper = run
    wrapper.hedger = hedger
    return wrapper


async def _result(hedger: Hedger, functions: _Functions, call: "_Call") -> Any:
    delivery = await hedger.send(functions.plain, call)
    async for _ in delivery:
        pass
    return cast(_Items, delivery.response).items[0]


class _Items:
    """UpstreamResponse over what a function gives: one byte goes by for each item, which waits in `items`."""

    status = 200
    headers: Sequence[tuple[bytes, bytes]] = ()

    def __init__(self, items: Sequence[Any], more: AsyncIterator[Any] | None = None) -> None:
        self.items, self._more = deque(items), more
        self._unread = len(items)

    async def read(self) -> bytes:
        if self._unread:
            self._unread -= 1
            return ITEM
        if self._more is None:
            return b""
        try:
            self.items.append(await anext(self._more))
        except StopAsyncIteration:
            return b""
        return ITEM

    def grew(self, more_bytes: int) -> None:
        """It does not."""

    async def close(self) -> None:
        more: Any = self._more
        if more is not None and hasattr(more, "aclose"):
            await more.aclose()


Way = Callable[[Callable[..., Any], ConnectionNotes, tuple[Any, ...], dict[str, Any]], Any]


class _Call:
    """One call of a hedged function; each target is a function."""

    def __init__(self, functions: _Functions, args: tuple[Any, ...], kwargs: dict[str, Any], way: Way) -> None:
        self._functions, self._args, self._kwargs, self._way = functions, args, kwargs, way

    async def open(self, target: int, notes: ConnectionNotes, as_stream: object) -> _Items:  # noqa: ARG002
        notes.connected(reused=False)
        return await self._way(self._functions.functions[target], notes, self._args, self._kwargs)

    def failure_of(self, error: Exception) -> Failure:
        return self._functions.failure_of(error)

    def attempt_time_out(self, message: str) -> Exception:
        return TimeoutError(message)

    def broken_answer(self, message: str) -> Exception:
        return ConnectionError(message)

    def deadline_error(self, message: str) -> Exception:
        return TimeoutError(message)


async def _awaiting(function: Callable[..., Any], _: ConnectionNotes, args: Any, kwargs: Any) -> _Items:
    return _Items([await function(*args, **kwargs)])


async def _iterating(function: Callable[..., Any], _: ConnectionNotes, args: Any, kwargs: Any) -> _Items:
    return _Items([], function(*args, **kwargs))


async def _in_thread(function: Callable[..., Any], notes: ConnectionNotes, args: Any, kwargs: Any) -> _Items:
    """In a thread of its own, which nothing waits for: one of a pool would be missing from it while a loser runs on."""
    loop, said = asyncio.get_running_loop(), contextvars.copy_context()
    done: asyncio.Future[Any] = loop.create_future()

    def report(result: Any, error: BaseException | None) -> None:
        if not done.done():
            done.set_exception(error) if error is not None else done.set_result(result)

    def work() -> None:
        result, error = None, None
        try:
            result = said.run(function, *args, **kwargs)
        except StopIteration as stopped:
            error = RuntimeError(f"{_name_of(function)} raised StopIteration")
            error.__cause__ = stopped
        except BaseException as raised:
            error = raised
        loop.call_soon_threadsafe(report, result, error)

    threading.Thread(target=work, name=f"hedgerow-{_name_of(function)}", daemon=True).start()
    try:
        return _Items([await done])
    except asyncio.CancelledError:
        notes.abandoned()
        raise
