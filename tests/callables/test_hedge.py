"""@hedge: a backup for any function that may run twice."""

import asyncio
import contextvars
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

import hedgerow
from hedgerow.errors import UnsupportedError

SOON = hedgerow.Policy(trigger="response", delay=0.03, budget="off")
AT_FIRST = hedgerow.Policy(trigger="first_token", delay=0.03, budget="off")
NEVER_S, PATIENCE_S = 200.0, 60.0


async def eventually(condition: Callable[[], bool]) -> None:
    give_up_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < give_up_s
        await asyncio.sleep(0.005)


def outcomes(function: Any) -> list[list[str]]:
    return [[attempt.outcome for attempt in event.attempts] for event in hedgerow.hedger_of(function).events]


async def test_an_async_function_that_hangs_is_rescued_and_its_loser_cancelled() -> None:
    calls, cancelled = [], []

    @hedgerow.hedge(SOON)
    async def answer(question: str) -> str:
        """Thinks."""
        calls.append(question)
        if len(calls) == 1:
            try:
                await asyncio.sleep(NEVER_S)
            except asyncio.CancelledError:
                cancelled.append(question)
                raise
        return f"{question}!"

    assert await answer("why") == "why!"
    await eventually(lambda: cancelled == ["why"])
    assert calls == ["why", "why"]
    await eventually(lambda: outcomes(answer) == [["lost", "won"]])
    assert answer.__name__ == "answer"
    assert answer.__doc__ == "Thinks."


async def test_a_quick_call_is_made_once() -> None:
    calls = []

    @hedgerow.hedge(SOON)
    async def answer() -> int:
        calls.append(1)
        return 7

    assert await answer() == 7
    assert calls == [1]


async def test_an_async_iterator_is_raced_to_its_first_item_and_then_left_alone() -> None:
    started, closed = [], []

    @hedgerow.hedge(AT_FIRST)
    async def words(count: int) -> AsyncIterator[int]:
        number = len(started)
        started.append(number)
        try:
            if number == 0:
                await asyncio.sleep(NEVER_S)
            for item in range(count):
                await asyncio.sleep(0.002)
                yield item
        finally:
            closed.append(number)

    assert [item async for item in words(20)] == list(range(20))
    await eventually(lambda: sorted(closed) == [0, 1])
    await eventually(lambda: outcomes(words) == [["lost", "won"]])


async def test_an_iterator_that_is_left_early_is_closed() -> None:
    closed = []

    @hedgerow.hedge(AT_FIRST)
    async def words() -> AsyncIterator[int]:
        try:
            for item in range(1000):
                yield item
        finally:
            closed.append(True)

    iterator = words()
    assert await anext(iterator) == 0
    await iterator.aclose()  # type: ignore[attr-defined]
    await eventually(lambda: closed == [True])


def test_a_plain_function_is_rescued_and_its_loser_abandoned() -> None:
    calls: list[str] = []
    release = threading.Event()

    @hedgerow.hedge(SOON)
    def answer() -> str:
        calls.append(threading.current_thread().name)
        if len(calls) == 1:
            release.wait(NEVER_S)
        return "done"

    assert answer() == "done"
    give_up_s = time.monotonic() + PATIENCE_S
    while outcomes(answer) != [["abandoned", "won"]]:
        assert time.monotonic() < give_up_s
    release.set()
    assert len(calls) == 2


def test_a_plain_function_sees_its_callers_context() -> None:
    who: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="nobody")

    @hedgerow.hedge(SOON)
    def answer() -> str:
        return who.get()

    who.set("me")
    assert answer() == "me"


async def test_its_own_errors_come_through() -> None:
    @hedgerow.hedge(SOON)
    async def answer() -> None:
        raise ValueError("no such passage")

    with pytest.raises(ValueError, match="no such passage"):
        await answer()


def test_errors_of_plain_functions_come_through() -> None:
    @hedgerow.hedge(SOON)
    def answer() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        answer()


async def test_an_error_of_a_backup_never_beats_the_call_that_still_runs() -> None:
    calls = []

    @hedgerow.hedge(SOON)
    async def answer() -> str:
        calls.append(1)
        if len(calls) == 2:
            raise ConnectionError("busy")
        await asyncio.sleep(0.2)
        return "fine"

    assert await answer() == "fine"


async def test_a_broken_connection_is_tried_again_at_once() -> None:
    calls = []

    @hedgerow.hedge(hedgerow.Policy(trigger="off", budget="off"))
    async def answer() -> str:
        calls.append(1)
        if len(calls) == 1:
            raise ConnectionError("reset")
        return "fine"

    assert await answer() == "fine"
    assert len(calls) == 2


async def test_an_error_with_a_status_is_read_as_that_status() -> None:
    class Busy(Exception):
        status_code = 503

    calls = []

    @hedgerow.hedge(hedgerow.Policy(trigger="off", budget="off"))
    async def answer() -> str:
        calls.append(1)
        if len(calls) == 1:
            raise Busy
        return "fine"

    assert await answer() == "fine"


async def test_backups_can_be_another_function() -> None:
    async def elsewhere(question: str) -> str:
        return f"{question} from elsewhere"

    @hedgerow.hedge(SOON, backup=elsewhere)
    async def answer(question: str) -> str:
        await asyncio.sleep(NEVER_S)
        return question

    assert await answer("hi") == "hi from elsewhere"
    await eventually(lambda: bool(outcomes(answer)))
    (event,) = hedgerow.hedger_of(answer).events
    assert [attempt.target.rpartition(".")[2] for attempt in event.attempts] == ["answer", "elsewhere"]


async def test_a_call_that_runs_out_of_time_raises_timeout_error() -> None:
    @hedgerow.hedge(hedgerow.Policy(trigger="off", timeout_s=0.05))
    async def answer() -> None:
        await asyncio.sleep(NEVER_S)

    with pytest.raises(TimeoutError, match="timeout_s"):
        await answer()


async def test_a_caller_who_leaves_cancels_every_attempt() -> None:
    running: set[int] = set()

    @hedgerow.hedge(SOON)
    async def answer() -> None:
        number = len(running)
        running.add(number)
        try:
            await asyncio.sleep(NEVER_S)
        finally:
            running.discard(number)

    task = asyncio.create_task(answer())
    await eventually(lambda: len(running) == 2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await eventually(lambda: not running)


async def test_without_settings_the_default_rule_and_its_budget_hold() -> None:
    calls = []

    @hedgerow.hedge
    async def answer(number: int) -> int:
        calls.append(number)
        await asyncio.sleep(0.15 if number % 10 == 9 else 0.001)
        return number

    assert [await answer(number) for number in range(60)] == list(range(60))
    stats = hedgerow.hedger_of(answer).stats()
    assert stats["budget"]["losing_backups"] <= 2 + 0.05 * 60  # type: ignore[index]


async def test_none_is_an_answer_like_any_other() -> None:
    @hedgerow.hedge(SOON)
    async def answer() -> None:
        return None

    assert await answer() is None


def test_generators_are_refused_with_what_to_use() -> None:
    with pytest.raises(UnsupportedError, match="async generator"):

        @hedgerow.hedge(SOON)
        def words() -> Iterator[int]:
            yield 1
