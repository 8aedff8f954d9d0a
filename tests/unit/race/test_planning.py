"""What is not hedged, and why; what is learnt and recorded."""

import pytest
from tests.unit.race.bench import Bench
from tests.unit.race.scripted import Does, answers, completion, pass_time, settle


async def test_a_call_that_is_never_late_sends_nothing_twice_and_costs_no_task() -> None:
    bench = Bench()
    carrier, answer = bench.send(answers("fast", 0.5))
    await settle()
    assert bench.clock.armed == 2  # the script's own wait, and the race's one timer
    await pass_time(bench.clock, 0.6)
    assert await answer == completion("fast")
    assert carrier.opened == [0]
    assert carrier.tasks_seen == [2]  # this test's task and the caller's
    assert bench.clock.armed == 0


async def test_with_an_empty_bucket_a_failure_ends_the_call_now() -> None:
    bench = Bench(budget=0.0)
    late = Does(headers_s=0.6, status=500)  # later than the first back-off of an SDK: replaced at once
    for _ in range(2):
        _, answer = bench.send(late, late, late)
        await pass_time(bench.clock, 1.9)
        await answer
    carrier, answer = bench.send(Does(status=500, chunks=[(0, b"boom")]))
    await pass_time(bench.clock, 0.2)
    assert await answer == b"boom"
    assert carrier.opened == [0]


async def test_waiting_for_a_connection_is_not_lateness() -> None:
    bench = Bench()
    carrier, answer = bench.send(answers("a", 0.8, pool_s=3.0))
    await pass_time(bench.clock, 4.0)
    assert await answer == completion("a")
    assert carrier.opened == [0]
    (event,) = bench.hedger.events
    assert event.attempts[0].pool_wait_s == pytest.approx(3.0, abs=0.06)


async def test_observe_sends_nothing_and_says_what_would_have_been() -> None:
    bench = Bench(mode="observe")
    carrier, answer = bench.send(answers("slow", 3.0))
    await pass_time(bench.clock, 3.1)
    assert await answer == completion("slow")
    assert carrier.opened == [0]
    (event,) = bench.hedger.events
    assert event.plan == "observe"
    assert event.trigger_at_s == pytest.approx(1.0, abs=0.06)


@pytest.mark.parametrize(
    ("fields", "plan"),
    [
        ({"store": True}, "not_safe:store"),
        ({"service_tier": "flex"}, "not_safe:flex"),
        ({"mystery": 1}, "not_safe:unknown_field:mystery"),
    ],
)
async def test_what_is_not_safe_to_run_twice_is_not_run_twice_and_the_event_says_why(
    fields: dict[str, object], plan: str
) -> None:
    bench = Bench()
    carrier, answer = bench.send(answers("slow", 3.0), **fields)
    await pass_time(bench.clock, 3.1)
    await answer
    assert carrier.opened == [0]
    (event,) = bench.hedger.events
    assert event.plan == plan


async def test_a_cold_key_is_not_hedged_until_twenty_calls_are_known() -> None:
    bench = Bench(delay="p95")
    for _ in range(20):
        _, answer = bench.send(answers("a", 0.5))
        await pass_time(bench.clock, 0.55)
        await answer
    _carrier, answer = bench.send(answers("slow", 9.0), answers("rescue", 0.2))
    await pass_time(bench.clock, 0.8)
    assert await answer == completion("rescue")
    plans = [event.plan for event in bench.hedger.events]
    assert plans == ["cold"] * 20 + ["hedge"]


async def test_hooks_that_fail_do_not_fail_the_call() -> None:
    bench = Bench()
    seen: list[object] = []

    def broken(_: object) -> None:
        raise OSError("disk full")

    bench.hedger.subscribe(broken)
    end = bench.hedger.subscribe(seen.append)
    for _ in range(2):
        _, answer = bench.send(answers("a", 0.1))
        await pass_time(bench.clock, 0.2)
        assert await answer == completion("a")
    end()
    assert len(seen) == 2
    assert bench.hedger.recorder.troubles == 2
