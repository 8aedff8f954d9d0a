"""Who wins a race, and what the caller gets: on scripted carriers."""

from typing import Any

import pytest
from tests.unit.race.bench import ELSEWHERE, Bench
from tests.unit.race.scripted import (
    DONE,
    OVERLOADED,
    ROLE,
    Does,
    answers,
    completion,
    frame,
    pass_time,
    settle,
    streams,
)


async def test_an_error_never_beats_a_live_attempt() -> None:
    bench = Bench(ELSEWHERE)
    refused = Does(headers_s=0.1, error=ConnectionRefusedError())
    _carrier, answer = bench.send(answers("primary", 2.0), refused, refused, refused)
    await pass_time(bench.clock, 2.1)
    assert await answer == completion("primary")


@pytest.mark.parametrize(("fails_s", "answered_s"), [(0.6, 0.85), (0.1, 0.95)], ids=["late", "at once"])
async def test_a_failed_primary_is_replaced_even_while_cold(fails_s: float, answered_s: float) -> None:
    """At once if it ran for a while; else after 0.5 s ± 25 %: a copy would meet the same outage."""
    bench = Bench(delay="p95")
    carrier, answer = bench.send(Does(headers_s=fails_s, status=500), answers("replacement", 0.2))
    await pass_time(bench.clock, fails_s + 0.05)
    assert len(carrier.opened) == (2 if fails_s > 0.5 else 1)
    await pass_time(bench.clock, answered_s - fails_s)
    assert await answer == completion("replacement")
    (event,) = bench.hedger.events
    assert event.plan == "cold"
    assert [(a.outcome, a.reason, a.status) for a in event.attempts] == [
        ("failed", "primary", 500),
        ("won", "error", 200),
    ]


async def test_a_request_fatal_error_of_the_primary_ends_the_race() -> None:
    bench = Bench()
    carrier, answer = bench.send(
        Does(headers_s=1.2, status=400, chunks=[(0.0, b'{"error":{"message":"no"}}')]), answers("x", 9)
    )
    await pass_time(bench.clock, 1.3)
    assert await answer == b'{"error":{"message":"no"}}'
    await settle()
    assert carrier.closed == [0, 1]


async def test_a_request_fatal_error_of_a_backup_fails_only_the_backup(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench(ELSEWHERE)
    for _ in range(2):
        _, answer = bench.send(answers("primary", 2.0), Does(headers_s=0.1, status=404), answers("never", 9.0))
        await pass_time(bench.clock, 2.1)
        assert await answer == completion("primary")
    assert sum("check its settings" in record.message for record in caplog.records) == 1


async def test_when_all_fail_the_primarys_error_comes_through_with_the_others_as_notes() -> None:
    bench = Bench(budget="off")
    _, answer = bench.send(
        Does(error=ConnectionResetError("first")),
        Does(error=ConnectionRefusedError("second")),
        Does(status=503, chunks=[(0, b"x")]),
    )
    await pass_time(bench.clock, 2.0)  # each after a pause, of at most 0.625 s
    with pytest.raises(ConnectionResetError, match="first") as raised:
        await answer
    assert len(raised.value.__notes__) == 2


async def test_a_stream_is_committed_by_content_not_by_role_chunks_and_replays_its_prefix() -> None:
    bench = Bench()
    carrier, answer = bench.send(
        streams((0.1, ROLE), (0.1, b": ping\n\n"), (9.0, frame("slow"))),
        streams((0.1, ROLE), (0.2, frame("a")), (0.1, frame("b")), (0.0, DONE)),
        stream=True,
    )
    await pass_time(bench.clock, 1.7)
    assert await answer == ROLE + frame("a") + frame("b") + DONE
    assert carrier.closed == [0, 1]
    (event,) = bench.hedger.events
    assert event.first_token_s == pytest.approx(1.3, abs=0.06)
    assert event.full_response_s == pytest.approx(1.4, abs=0.11)


async def test_a_stream_whose_first_line_is_json_is_handed_over_as_it_comes_and_asked_for_once() -> None:
    bench = Bench()
    json_first = b'{"ping":1}\n\n'
    carrier, answer = bench.send(
        streams((0.1, json_first), (0.2, frame("a")), (2.0, frame("b")), (0.0, DONE)), stream=True
    )
    await pass_time(bench.clock, 2.4)
    assert await answer == json_first + frame("a") + frame("b") + DONE
    assert carrier.opened == [0]
    (event,) = bench.hedger.events
    assert event.first_token_s == pytest.approx(0.3, abs=0.06)


async def test_after_the_commit_another_attempts_bytes_never_follow() -> None:
    bench = Bench()
    carrier, answer = bench.send(
        streams((0.1, frame("a")), (0.1, frame("b")), error=ConnectionResetError()), stream=True
    )
    await pass_time(bench.clock, 0.5)
    with pytest.raises(ConnectionResetError):
        await answer
    assert carrier.opened == [0]
    (event,) = bench.hedger.events
    assert (event.outcome, event.winner, event.attempts[0].outcome) == ("failed", None, "failed")


async def test_an_in_band_error_before_content_starts_the_next_attempt_at_once() -> None:
    bench = Bench()
    _carrier, answer = bench.send(
        streams((0.1, ROLE), (0.0, OVERLOADED), (0.0, DONE)), streams((0.1, frame("ok")), (0.0, DONE)), stream=True
    )
    await pass_time(bench.clock, 0.4)
    assert await answer == frame("ok") + DONE
    (event,) = bench.hedger.events
    assert [(a.outcome, a.status) for a in event.attempts] == [("failed", 529), ("won", 200)]


async def test_an_empty_answer_is_kept_and_delivered_when_nothing_else_is_left() -> None:
    bench = Bench()
    _carrier, answer = bench.send(answers("", 1.2), Does(headers_s=0.5, status=500), Does(status=500))
    await pass_time(bench.clock, 2.0)
    assert await answer == completion("")
    (event,) = bench.hedger.events
    assert event.outcome == "answered"


async def test_an_answer_that_the_server_broke_off_comes_before_one_that_nobody_can_read() -> None:
    """Here the replacement is in a coding that was not asked for: it may be anything."""
    bench = Bench()
    aborted = completion("half").replace(b'"stop"', b'"abort"')
    unreadable = answers("?", 0.1, headers=((b"content-type", b"application/json"), (b"content-encoding", b"br")))
    _, answer = bench.send(Does(headers_s=1.0, chunks=[(0.0, aborted)]), unreadable, Does(status=500))
    await pass_time(bench.clock, 3.0)
    assert await answer == aborted


UNKNOWN = ((b"content-type", b"text/event-stream"), (b"content-encoding", b"br"))
JUNK_GZIP = ((b"content-type", b"text/event-stream"), (b"content-encoding", b"gzip"))


def unseen(*chunks: tuple[float, bytes], headers: tuple[tuple[bytes, bytes], ...] = UNKNOWN, **more: Any) -> Does:
    """A stream that nobody can look into."""
    return Does(headers_s=0.0, chunks=chunks, headers=headers, **more)


@pytest.mark.parametrize("headers", [UNKNOWN, JUNK_GZIP], ids=["unknown", "damaged"])
@pytest.mark.parametrize("lasts_s", [0.0, 9.0], ids=["whole", "goes on"])
async def test_a_backup_that_cannot_be_looked_into_does_not_beat_a_live_primary(
    headers: tuple[tuple[bytes, bytes], ...], lasts_s: float
) -> None:
    bench = Bench()
    backup = unseen((0.1, b"junk"), (lasts_s, b"junk"), headers=headers)
    carrier, answer = bench.send(streams((2.0, frame("good")), (0.0, DONE)), backup, stream=True)
    await pass_time(bench.clock, 2.2)
    assert carrier.opened == [0, 0]
    assert await answer == frame("good") + DONE
    assert carrier.closed == [1, 0] or lasts_s


@pytest.mark.parametrize("ends", [True, False])
async def test_a_backup_that_cannot_be_looked_into_is_there_when_the_primary_fails(ends: bool) -> None:
    bench = Bench(max_backups=1)
    more = () if ends else ((1.0, b"c"), (1.0, b"d"))
    carrier, answer = bench.send(Does(headers_s=2.0, status=500), unseen((0.1, b"a"), (0.1, b"b"), *more), stream=True)
    await pass_time(bench.clock, 4.0)
    assert await answer == (b"ab" if ends else b"abcd")
    (event,) = bench.hedger.events
    assert (event.winner, event.outcome) == (1, "answered")
    assert carrier.opened == [0, 0]


async def test_a_primary_that_cannot_be_looked_into_is_handed_over_as_it_comes() -> None:
    bench = Bench()
    primary = unseen((1.3, b"a"), (0.1, b"b"))
    _carrier, answer = bench.send(primary, streams((0.5, frame("late")), (0.0, DONE)), stream=True)
    await pass_time(bench.clock, 1.6)
    assert await answer == b"ab"


async def test_of_a_backup_that_cannot_be_looked_into_only_so_much_is_kept() -> None:
    bench = Bench(max_backups=1)
    endless = unseen(*[(0.01, bytes(1_000_000)) for _ in range(50)])
    carrier, answer = bench.send(streams((3.0, frame("good")), (0.0, DONE)), endless, stream=True)
    await pass_time(bench.clock, 2.0)
    assert carrier.closed == [1]
    await pass_time(bench.clock, 1.1)
    assert await answer == frame("good") + DONE
    (event,) = bench.hedger.events
    assert [(a.outcome, a.error) for a in event.attempts] == [("won", None), ("failed", "unreadable")]


async def test_an_empty_answer_waits_for_a_live_attempt() -> None:
    bench = Bench()
    _, answer = bench.send(answers("", 1.2), answers("full", 1.0))
    await pass_time(bench.clock, 2.2)
    assert await answer == completion("full")


async def test_a_first_token_time_out_needs_no_race_and_does_not_wait_for_the_late_chunk() -> None:
    bench = Bench(trigger="off", first_token_timeout_s=1.0)
    _carrier, answer = bench.send(streams((5.0, frame("late"))), streams((0.2, frame("ok")), (0, DONE)), stream=True)
    await pass_time(bench.clock, 1.3)
    assert await answer == frame("ok") + DONE
    (event,) = bench.hedger.events
    assert [(a.outcome, a.error) for a in event.attempts] == [("failed", "first_token_timeout"), ("won", None)]


async def test_two_attempts_that_time_out_in_the_same_moment_end_the_call() -> None:
    bench = Bench(delay=0.0, max_backups=1, attempt_timeout_s=1.0, budget="off", trigger="response")
    carrier, answer = bench.send(answers("a", 9.0), answers("b", 9.0))
    await pass_time(bench.clock, 1.2)
    with pytest.raises(TimeoutError, match="attempt_timeout"):
        await answer
    assert sorted(carrier.closed) == [0, 1]


async def test_when_a_resent_call_fails_the_last_error_is_the_callers() -> None:
    bench = Bench(on_trigger="resend", max_backups=1)
    _, answer = bench.send(answers("slow", 9.0), Does(headers_s=0.1, error=ConnectionResetError("second")))
    await pass_time(bench.clock, 1.2)
    with pytest.raises(ConnectionResetError, match="second"):
        await answer


async def test_the_second_backup_waits_for_four_times_the_delay_of_the_first() -> None:
    bench = Bench(budget="off")
    carrier, answer = bench.send(answers("a", 20), answers("b", 20), answers("c", 0.5))
    await pass_time(bench.clock, 4.9)
    assert len(carrier.opened) == 2
    await pass_time(bench.clock, 0.7)
    assert await answer == completion("c")
    assert sorted(carrier.closed) == [0, 1, 2]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("status", "body"), [(307, b""), (304, b"")])
async def test_what_is_neither_an_error_nor_an_answer_is_handed_to_the_caller(
    stream: bool, status: int, body: bytes
) -> None:
    bench = Bench()
    carrier, answer = bench.send(Does(status=status, chunks=[(0.0, body)] if body else []), stream=stream)
    await pass_time(bench.clock, 0.2)
    assert await answer == body
    assert carrier.opened == [0]


async def test_a_redirect_of_a_backup_does_not_beat_the_primary() -> None:
    bench = Bench(ELSEWHERE)
    moved = Does(headers_s=0.1, status=302, headers=((b"location", b"/log-in"),))
    _, answer = bench.send(answers("primary", 2.0), moved, moved)
    await pass_time(bench.clock, 2.1)
    assert await answer == completion("primary")
