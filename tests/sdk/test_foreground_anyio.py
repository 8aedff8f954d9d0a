"""The primary runs in the caller's own task and is interrupted there when it loses. Nobody around it may notice.

Cancel scopes of anyio, task groups and time-outs of asyncio count cancellations per task: a lost race must leave none behind and
swallow none. On asyncio as it is, in its debug mode, and on uvloop where it is installed.
"""

import asyncio
import importlib.util
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import anyio
import pytest
from openai import AsyncOpenAI
from tests.sdk.racing import QUICK, ask, eventually, outcomes, racing, stream

import hedgerow
from hedgerow.testing.process import SandboxProcess

STUCK = {"first_token_s": 30.0}
LOST = [STUCK, QUICK | {"text": "backup"}]
Scene = Callable[[AsyncOpenAI, SandboxProcess], Coroutine[Any, Any, None]]


def own_loop(debug: bool, factory: Any = None) -> Callable[[Coroutine[Any, Any, None]], None]:
    def run(scene: Coroutine[Any, Any, None]) -> None:
        with asyncio.Runner(debug=debug, loop_factory=factory) as runner:
            runner.run(scene)

    return run


def uvloop(scene: Coroutine[Any, Any, None]) -> None:
    own_loop(False, pytest.importorskip("uvloop").new_event_loop)(scene)


def through_anyio(scene: Coroutine[Any, Any, None]) -> None:
    async def main() -> None:
        await scene

    anyio.run(main, backend_options={"use_uvloop": importlib.util.find_spec("uvloop") is not None})


LOOPS = {"asyncio": own_loop(False), "asyncio debug": own_loop(True), "uvloop": uvloop, "anyio.run": through_anyio}


def cancels_left() -> int:
    task = asyncio.current_task()
    assert task is not None
    return task.cancelling()


async def lose(client: AsyncOpenAI, case: str) -> None:
    """A call whose primary is interrupted in this task."""
    for send in (ask, stream):
        assert await send(client, f"{case}/{send.__name__}", *LOST) == "backup"
        assert cancels_left() == 0


async def later_awaits_and_scopes_work(client: AsyncOpenAI, sandbox: SandboxProcess) -> None:
    await lose(client, "f")
    await asyncio.sleep(0)
    with anyio.fail_after(20):
        await anyio.sleep(0.001)
    async with asyncio.timeout(20):
        await asyncio.sleep(0.001)
    with pytest.raises(TimeoutError):
        with anyio.fail_after(0.01):
            await anyio.sleep(20)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await asyncio.sleep(20)
    assert cancels_left() == 0
    assert outcomes(sandbox, "f/ask") == ["disconnected", "completed"]


async def inside_scopes(client: AsyncOpenAI, _sandbox: SandboxProcess) -> None:
    with anyio.CancelScope() as scope:
        await lose(client, "f/scope")
        await anyio.sleep(0)
    assert not scope.cancelled_caught
    with anyio.move_on_after(20) as outer, anyio.fail_after(20), anyio.CancelScope(shield=True):
        await lose(client, "f/nested")
    assert not outer.cancelled_caught
    async with asyncio.timeout(20) as time_out:
        await lose(client, "f/timeout")
    assert not time_out.expired()


async def inside_task_groups(client: AsyncOpenAI, _sandbox: SandboxProcess) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(lose(client, "f/child"))
        await lose(client, "f/parent")
    async with anyio.create_task_group() as scoped:
        scoped.start_soon(lose, client, "f/scoped child")
        await lose(client, "f/scoped parent")
    assert cancels_left() == 0


async def an_outer_scope_still_cancels(client: AsyncOpenAI, sandbox: SandboxProcess) -> None:
    await lose(client, "f")
    with anyio.move_on_after(0.1) as scope:
        await ask(client, "f/held", STUCK, STUCK)
        raise AssertionError("nobody answers")
    assert scope.cancelled_caught
    await expect_closed(client, sandbox, "f/held")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await stream(client, "f/timed", STUCK, STUCK)
    await expect_closed(client, sandbox, "f/timed")
    assert cancels_left() == 0


async def a_failing_sibling_cancels_the_call(client: AsyncOpenAI, sandbox: SandboxProcess) -> None:
    async def fails() -> None:
        await eventually(lambda: len(outcomes(sandbox, "f/sibling")) == 2)
        raise ZeroDivisionError

    async def both() -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(fails())
            await ask(client, "f/sibling", STUCK, STUCK)

    with pytest.raises(ExceptionGroup) as group:
        await both()
    assert isinstance(group.value.exceptions[0], ZeroDivisionError)
    await expect_closed(client, sandbox, "f/sibling")
    assert cancels_left() == 0


async def a_cancellation_in_the_moment_of_the_loss_is_the_callers(client: AsyncOpenAI, sandbox: SandboxProcess) -> None:
    """Cancelled around the moment the backup answers: the call ends answered or cancelled, and never both or neither."""
    ends: list[str] = []

    async def call(number: int) -> None:
        try:
            ends.append(await ask(client, f"f/moment/{number}", *LOST))
        except asyncio.CancelledError:
            assert cancels_left() == 1
            ends.append("cancelled")
            raise

    calls = [asyncio.ensure_future(call(number)) for number in range(40)]
    for number, each in enumerate(calls):
        asyncio.get_running_loop().call_later(0.025 + number * 0.0005, each.cancel)
    await asyncio.wait(calls)
    assert len(ends) == 40
    assert set(ends) <= {"backup", "cancelled"}
    await eventually(lambda: sandbox.stats()["in_flight"] == 0)


async def one_after_the_other(client: AsyncOpenAI, sandbox: SandboxProcess) -> None:
    for number in range(5):
        await lose(client, f"f/{number}")
    assert len(sandbox.stats()["cases"]) == 10


async def two_hundred_at_once(client: AsyncOpenAI, sandbox: SandboxProcess) -> None:
    async with asyncio.TaskGroup() as group:
        calls = [group.create_task(ask(client, f"f/{number}", *LOST)) for number in range(200)]
    assert {call.result() for call in calls} == {"backup"}
    assert all(call.cancelling() == 0 for call in calls)
    await eventually(lambda: sandbox.stats()["disconnected"] == 200)


async def expect_closed(client: AsyncOpenAI, sandbox: SandboxProcess, case: str) -> None:
    hedger: Any = hedgerow.hedger_of(client)
    await eventually(lambda: hedger.stats()["in_flight"] == 0)
    await eventually(lambda: outcomes(sandbox, case) == ["disconnected"] * 2)


SCENES: list[Any] = [
    later_awaits_and_scopes_work,
    inside_scopes,
    inside_task_groups,
    an_outer_scope_still_cancels,
    a_failing_sibling_cancels_the_call,
    a_cancellation_in_the_moment_of_the_loss_is_the_callers,
    one_after_the_other,
    pytest.param(two_hundred_at_once, marks=pytest.mark.alone, id="two_hundred_at_once"),
]


@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)
@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: getattr(scene, "__name__", None))
def test_a_lost_race_is_not_noticed_by_what_is_around_it(
    hedgerow_sandbox: SandboxProcess, loop: Callable[[Awaitable[None]], None], scene: Scene
) -> None:
    async def play() -> None:
        async with racing(hedgerow_sandbox, max_backups=1, delay=0.02) as client:
            await scene(client, hedgerow_sandbox)

    loop(play())
