"""Callers who leave, losers that cling, deadlines: everything is closed, nothing is waited for."""

import asyncio
import gc
from collections.abc import Callable

import orjson
import pytest
from tests.unit.race.bench import Bench
from tests.unit.race.scripted import (
    DONE,
    JSON,
    Carrier,
    answers,
    completion,
    frame,
    pass_time,
    request,
    settle,
    streams,
)

from hedgerow.race.stream import Delivery
from hedgerow.values.request import WireRequest


async def test_a_late_primary_is_backed_up_and_closed_when_the_backup_answers() -> None:
    bench = Bench()
    carrier, answer = bench.send(answers("slow", 9.0), answers("rescue", 0.5))
    await pass_time(bench.clock, 1.4)
    assert carrier.opened == [0, 0]
    await pass_time(bench.clock, 0.2)
    assert await answer == completion("rescue")
    assert carrier.closed == [1, 0]
    (event,) = bench.hedger.events
    assert [(a.outcome, a.reason) for a in event.attempts] == [("lost", "primary"), ("won", "first_token")]
    assert event.winner == 1
    assert event.full_response_s == pytest.approx(1.5, abs=0.06)
    assert event.attempts[0].close_s is not None


async def test_the_primary_may_still_win_and_the_backup_is_closed() -> None:
    bench = Bench()
    carrier, answer = bench.send(answers("primary", 1.2), answers("backup", 5.0))
    await pass_time(bench.clock, 1.3)
    assert await answer == completion("primary")
    await settle()
    assert carrier.closed == [0, 1]
    assert bench.hedger.stats()["losers_open"] == 0


@pytest.mark.parametrize("clings_in_background", [False, True])
async def test_a_loser_that_clings_for_five_seconds_delays_nothing(clings_in_background: bool) -> None:
    bench = Bench()
    slow, quick = answers("slow", 1.2 if clings_in_background else 9.0), answers("quick", 0.5)
    scripts = (
        (slow, answers("late", 9.0, clings_s=5.0))
        if clings_in_background
        else (
            answers("slow", 9.0, clings_s=5.0),
            quick,
        )
    )
    carrier, answer = bench.send(*scripts)
    await pass_time(bench.clock, 1.6)
    for _ in range(400):  # real time: a loser may have a moment to leave in place before the answer goes on without it
        if answer.done():
            break
        await asyncio.sleep(0.005)
    assert answer.done()
    clinging = 1 if clings_in_background else 0
    assert clinging not in carrier.closed
    assert bench.hedger.stats()["losers_open"] == 1
    assert not bench.events()
    await pass_time(bench.clock, 5.1)
    assert clinging in carrier.closed
    assert bench.hedger.stats()["losers_open"] == 0
    (event,) = bench.hedger.events
    assert event.attempts[clinging].close_s == pytest.approx(5.0, abs=0.11)


@pytest.mark.parametrize("at_s", [0.05, 0.5, 1.5])
async def test_a_caller_who_leaves_takes_every_attempt_along(at_s: float) -> None:
    bench = Bench()
    carrier, answer = bench.send(answers("a", 9.0), answers("b", 9.0))
    await pass_time(bench.clock, at_s)
    answer.cancel()
    await settle()
    assert answer.cancelled()
    assert sorted(carrier.closed) == list(range(len(carrier.opened)))
    (event,) = bench.hedger.events
    assert event.outcome == "caller_left"
    assert {a.outcome for a in event.attempts} == {"caller_left"}


async def test_a_second_cancellation_does_not_break_the_clean_up() -> None:
    bench = Bench()
    _carrier, answer = bench.send(answers("a", 9.0, clings_s=1.0), answers("b", 9.0, clings_s=1.0))
    await pass_time(bench.clock, 1.5)
    answer.cancel()
    await settle()
    answer.cancel()
    await pass_time(bench.clock, 1.2)
    assert answer.cancelled()
    assert bench.hedger.stats()["in_flight"] == 0


async def test_a_caller_cancelled_in_the_moment_of_the_commit_gets_the_cancellation_and_nothing_stays_open() -> None:
    bench = Bench()
    carrier, answer = bench.send(answers("slow", 9.0), streams((0.5, frame("x")), (9.0, DONE)), stream=True)
    await pass_time(bench.clock, 1.45)
    bench.clock.advance(0.1)  # the backup's content is due, its task has not run yet
    answer.cancel()
    await pass_time(bench.clock, 0.2)
    assert answer.cancelled()
    assert sorted(carrier.closed) == [0, 1]
    assert bench.hedger.stats()["in_flight"] == 0


async def open_stream(bench: Bench, carrier: Carrier) -> Delivery:
    sending = asyncio.ensure_future(bench.hedger.send(request(stream=True), carrier))
    await pass_time(bench.clock, 0.3)
    return await sending


async def closed_early(delivery: Delivery) -> None:
    await delivery.aclose()
    await delivery.aclose()


async def dropped(delivery: Delivery) -> None:
    del delivery
    gc.collect()


async def read_and_cancelled(delivery: Delivery) -> None:
    async def read() -> None:
        async for _ in delivery:
            pass

    reading = asyncio.ensure_future(read())
    await settle()
    reading.cancel()
    await settle()
    assert reading.cancelled()


@pytest.mark.parametrize("leave", [closed_early, dropped, read_and_cancelled])
async def test_leaving_a_stream_closes_it(leave: Callable[[Delivery], object]) -> None:
    bench = Bench()
    carrier = Carrier(bench.clock, [streams((0.1, frame("a")), (9.0, DONE))])
    holder = [await open_stream(bench, carrier)]
    await leave(holder.pop())  # type: ignore[misc]
    await settle()
    assert carrier.closed == [0]
    (event,) = bench.hedger.events
    assert event.outcome == "caller_left"


async def test_closing_after_the_dialects_end_is_a_complete_answer() -> None:
    bench = Bench()
    carrier = Carrier(bench.clock, [streams((0.1, frame("a")), (0.0, DONE), (9.0, b""))])
    delivery = await open_stream(bench, carrier)
    assert await anext(delivery) == frame("a")
    assert await anext(delivery) == DONE
    await delivery.aclose()
    (event,) = bench.hedger.events
    assert (event.outcome, event.winner) == ("answered", 0)


async def test_a_stream_that_is_dropped_at_its_end_mark_closes_its_connection() -> None:
    """SDKs stop reading at [DONE]: nobody but us knows that the connection stays open."""
    bench = Bench()
    carrier = Carrier(bench.clock, [streams((0.1, frame("a")), (0.0, DONE), (9.0, b""))])
    delivery = await open_stream(bench, carrier)
    assert [await anext(delivery), await anext(delivery)] == [frame("a"), DONE]
    assert carrier.closed == []
    del delivery
    gc.collect()
    await settle()
    assert carrier.closed == [0]
    (event,) = bench.hedger.events
    assert (event.outcome, event.winner) == ("answered", 0)


async def test_a_stream_without_end_mark_is_not_left_after_a_finish_reason() -> None:
    """Some servers send Gemini's with every chunk, or one before their tools run; what follows takes as long as it takes."""
    said = [_gemini_frame(word) for word in ("one ", "two")]
    bench = Bench()
    carrier = Carrier(bench.clock, [streams((0.0, said[0]), (9.0, said[1]))])
    wire = WireRequest(
        method="POST",
        path="/v1beta/models/m:streamGenerateContent",
        headers=JSON,
        body=b'{"contents":[{"parts":[{"text":"hi"}]}]}',
    )
    delivery = await bench.hedger.send(wire, carrier)
    assert await anext(delivery) == said[0]
    reading = asyncio.ensure_future(anext(delivery))
    await asyncio.sleep(0.7)  # real time: what we grant the end of a body is not on the race's clock
    assert not reading.done()
    await pass_time(bench.clock, 9.1)
    assert await reading == said[1]
    assert [chunk async for chunk in delivery] == []


def _gemini_frame(text: str) -> bytes:
    candidate = {"index": 0, "content": {"parts": [{"text": text}]}, "finishReason": "STOP"}
    return b"data: " + orjson.dumps({"candidates": [candidate]}) + b"\n\n"


async def test_the_deadline_ends_a_race_and_a_delivery() -> None:
    bench = Bench(timeout_s=2.0)
    carrier, answer = bench.send(answers("a", 9.0), answers("b", 9.0))
    await pass_time(bench.clock, 2.1)
    with pytest.raises(TimeoutError, match="deadline"):
        await answer
    assert sorted(carrier.closed) == [0, 1]
    carrier, answer = bench.send(streams((0.1, frame("a")), (9.0, DONE)), stream=True)
    await pass_time(bench.clock, 2.1)
    with pytest.raises(TimeoutError, match="deadline"):
        await answer
    assert carrier.closed == [0]
    assert [event.outcome for event in bench.hedger.events] == ["deadline", "deadline"]


async def test_resend_cancels_the_late_attempt_and_sends_again() -> None:
    bench = Bench(on_trigger="resend")
    carrier, answer = bench.send(answers("slow", 1.6), answers("again", 0.5))
    await pass_time(bench.clock, 1.2)
    assert carrier.closed == [0]
    await pass_time(bench.clock, 0.5)
    assert await answer == completion("again")
