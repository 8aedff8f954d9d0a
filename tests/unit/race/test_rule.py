"""The rule live: cold and warm, siblings and priors, deadlines, control, rate-limit room, queues, stalls."""

import random

import pytest
from tests.unit.race.bench import Bench
from tests.unit.race.scripted import DONE, JSON, Carrier, Does, answers, completion, frame, pass_time, streams

import hedgerow
from hedgerow.dialects.rate_limits import room_left
from hedgerow.statistics.queueing import QueueWatch

STREAM = (0.5, frame("a"))


def lagging(**settings: object) -> Bench:
    """A bench with the default rule."""
    return Bench(**{"trigger": "lag", "delay": "auto", **settings})  # type: ignore[arg-type]


async def call(bench: Bench, *scripts: Does, seconds: float, **fields: object) -> tuple[Carrier, bytes]:
    carrier, answer = bench.send(*scripts, **fields)  # type: ignore[arg-type]
    await pass_time(bench.clock, seconds)
    return carrier, await answer


async def warm(bench: Bench, number: int = 22, **fields: object) -> None:
    """So many calls that answer in half a second, give or take."""
    rng = random.Random(5)
    for _ in range(number):
        await call(bench, answers("a", rng.choice([0.45, 0.5, 0.55])), seconds=0.65, **fields)


async def test_the_default_rule_is_cold_for_twenty_calls_and_then_backs_up_what_lags() -> None:
    bench = lagging()
    await warm(bench, 20)
    _carrier, answer = await call(bench, answers("slow", 30), answers("rescued", 0.4), seconds=6)
    assert answer == completion("rescued")
    events = bench.events()
    assert [event.plan for event in events] == ["cold"] * 20 + ["hedge"]
    wish = events[-1]
    assert wish.b_s == pytest.approx(0.5, abs=0.06)
    assert wish.trigger_at_s == pytest.approx((wish.b_s or 0) + (wish.d_s or 0), abs=0.11)
    assert wish.attempts[1].reason == "lag"
    assert wish.bucket is not None


async def test_a_cold_key_leans_on_its_warm_sibling() -> None:
    bench = lagging()
    await warm(bench)
    carrier, answer = await call(
        bench,
        answers("slow", 30),
        answers("rescued", 0.4),
        seconds=6,
        tools=[{"type": "function", "function": {"name": "f"}}],
    )
    assert answer == completion("rescued")
    assert len(carrier.opened) == 2


async def test_a_cold_key_of_large_inputs_never_leans_on_one_of_small_ones() -> None:
    bench = lagging()
    await warm(bench)
    large = [{"role": "user", "content": "word " * 8000}]
    carrier, _ = await call(bench, answers("long prefill", 6.0), seconds=6.2, messages=large)
    assert len(carrier.opened) == 1
    assert bench.events()[-1].plan == "cold"


async def test_a_whole_answer_is_never_judged_by_the_first_tokens_of_streams() -> None:
    bench = lagging()
    for _ in range(22):
        await call(bench, streams(STREAM, (0.0, DONE)), seconds=0.65, stream=True)
    carrier, _ = await call(bench, answers("long but fine", 6.0), seconds=6.2)
    assert len(carrier.opened) == 1
    assert bench.events()[-1].plan == "cold"


async def test_a_prior_makes_a_cold_process_warm() -> None:
    bench = lagging(prior={"first_token_s": 0.5, "token_s": 0.01, "lag_s": 1.0})
    _carrier, answer = await call(bench, answers("slow", 30), answers("rescued", 0.4), seconds=2.2)
    assert answer == completion("rescued")
    (event,) = bench.events()
    assert (event.plan, event.b_s, event.d_s) == ("hedge", 0.5, 1.0)


async def test_no_backup_is_sent_that_could_not_be_in_time() -> None:
    bench = lagging()
    await warm(bench)
    for deadline_s, attempts in ((1.0, 1), (20.0, 2)):
        with hedgerow.context(deadline_s=deadline_s):
            carrier, _ = await call(bench, answers("slow", 8), answers("rescued", 0.4), seconds=8.2)
        assert len(carrier.opened) == attempts
    assert [event.plan for event in bench.events()[-2:]] == ["deadline", "hedge"]


async def test_control_calls_are_never_hedged_and_not_counted_but_learnt_from() -> None:
    bench = lagging(control_share=0.5)
    await warm(bench, 60)
    plans = [event.plan for event in bench.events()]
    control = plans.count("control")
    assert 15 <= control <= 45
    stats = bench.hedger.stats()
    assert isinstance(stats["budget"], dict)
    assert stats["budget"]["requests"] == 60 - control
    assert stats["keys"][0]["n"] == 60  # type: ignore[index]


async def test_hedge_off_and_segments_are_the_callers_word() -> None:
    bench = lagging(segments=["pro"])
    for said, plan in (
        ({}, "segment"),
        ({"segment": "pro"}, "cold"),
        ({"segment": "pro", "hedge": False}, "hedge_off"),
    ):
        with hedgerow.context(**said):  # type: ignore[arg-type]
            await call(bench, answers("a", 0.1), seconds=0.2)
        assert bench.events()[-1].plan == plan


def headers_with_room(left: int) -> tuple[tuple[bytes, bytes], ...]:
    return (*JSON, (b"X-RateLimit-Remaining-Requests", str(left).encode()), (b"x-ratelimit-limit-requests", b"100"))


async def test_a_fifth_of_the_advertised_rate_limit_is_left_alone() -> None:
    bench = lagging()
    await warm(bench)
    for left, attempts in ((10, 1), (50, 2)):
        await call(bench, answers("a", 0.5, headers=headers_with_room(left)), seconds=0.6)
        carrier, _ = await call(bench, answers("slow", 8), answers("rescued", 0.4), seconds=8.2)
        assert len(carrier.opened) == attempts
    assert bench.hedger.stats()["refusals"] == {"rate_limited:primary": 1}


@pytest.mark.parametrize(
    ("headers", "room"),
    [
        ([], None),
        ([(b"x-ratelimit-remaining-tokens", b"30"), (b"x-ratelimit-limit-tokens", b"120")], 0.25),
        ([(b"x-ratelimit-remaining-tokens", b"-1"), (b"x-ratelimit-limit-tokens", b"0")], None),
        ([(b"x-ratelimit-remaining-tokens", b"many"), (b"x-ratelimit-limit-tokens", b"10")], None),
        ([(b"anthropic-ratelimit-requests-remaining", b"1"), (b"anthropic-ratelimit-requests-limit", b"50")], 0.02),
    ],
)
def test_room_is_the_smallest_share_that_is_left(headers: list[tuple[bytes, bytes]], room: float | None) -> None:
    assert room_left(headers) == room


def test_an_endpoint_that_queues_on_itself_is_found_and_one_that_does_not_is_not() -> None:
    rng = random.Random(3)
    queueing, even, idle = QueueWatch(), QueueWatch(), QueueWatch()
    for _ in range(200):
        in_flight = rng.randint(1, 20)
        queueing.add(in_flight, 0.5 + 0.05 * in_flight)
        even.add(in_flight, rng.lognormvariate(-0.7, 0.3))
        idle.add(1, rng.lognormvariate(-0.7, 0.3))
    assert (queueing.queues, even.queues, idle.queues) == (True, False, False)


async def test_a_stream_that_falls_silent_is_ended_whether_or_not_pings_come() -> None:
    ping = (1.0, b": ping\n\n")
    for number, silence in enumerate([[(30.0, DONE)], [ping] * 20]):
        bench = Bench(stall_s=3.0, trigger="off")
        carrier, answer = bench.send(streams((0.1, frame("a")), *silence), stream=True)
        await pass_time(bench.clock, 3.4)
        with pytest.raises(TimeoutError, match="stall"):
            await answer
        assert carrier.closed == [0], number
        (event,) = bench.events()
        assert (event.outcome, event.error, event.winner) == ("failed", "stall", None)


async def test_a_stream_that_goes_on_is_not_ended_by_the_watchdog() -> None:
    bench = Bench(stall_s=3.0, trigger="off")
    _carrier, answer = bench.send(streams(*[(2.5, frame("a"))] * 4, (0.0, DONE)), stream=True)
    await pass_time(bench.clock, 11)
    assert await answer == frame("a") * 4 + DONE


async def test_wins_and_steering_are_told_in_stats() -> None:
    bench = lagging()
    await warm(bench)
    await call(bench, answers("slow", 30), answers("rescued", 0.4), seconds=6)
    stats = bench.hedger.stats()
    assert (stats["backups"], stats["backup_wins"]) == (1, 1)
    assert stats["steering"]["win_rate"] > 0.5  # type: ignore[index]


async def test_the_longest_pause_of_a_winning_stream_is_learnt_and_a_ping_does_not_end_it() -> None:
    bench = Bench()
    _, answer = bench.send(
        streams((0.1, frame("Well, ")), (0.4, b": ping\n\n"), (0.5, frame("yes")), (0.1, frame(".")), (0.0, DONE)),
        stream=True,
    )
    await pass_time(bench.clock, 1.5)
    await answer
    ((_, known),) = bench.hedger.pilot.statistics
    assert [pause_s for _, pause_s in known.pauses.timed()] == pytest.approx([0.9], abs=0.06)
