"""The simulator on requests written by hand. An ordinary attempt: first token after 0.5 s, 50 tokens in 0.5 s more."""

from math import exp

import pytest

from hedgerow.analysis.attempts import Row, Sent
from hedgerow.analysis.simulate import Outcome, simulate
from hedgerow.settings import Policy

WARM = 40  # ordinary requests, one each second, before the one that is looked at
AT_S = 100.0
DEFAULT = Policy()
FIXED = Policy(trigger="response", delay=2.0, max_backups=1, budget="off")


def after_warm_up(send, *attempts: dict, policy: Policy = DEFAULT, stream: bool = False) -> Outcome:
    """What becomes of a request after 40 ordinary ones."""
    sents = [send(float(second)) for second in range(WARM)]
    return simulate([*sents, send(AT_S, *attempts)], policy, stream=stream)[-1]


def delay_s() -> float:
    """f·D after the warm-up: D0 = 1.5·b, then a step down by gain · B for each warm request. The first is number 22: each ends
    just after the next has come, and this one is number 41."""
    return 1.5 * 0.5 * exp(-0.04 * 0.05 * 20)


def test_a_primary_whose_first_token_stalls_is_backed_up_after_b_plus_delay(send) -> None:
    outcome = after_warm_up(send, {"ttft_s": 30.0}, {}, {})
    assert outcome.launched_s == pytest.approx([AT_S, AT_S + 0.5 + delay_s()], rel=1e-6)
    assert outcome.winner == 1
    assert outcome.response_s == pytest.approx(outcome.launched_s[1] - AT_S + 1.0)
    assert outcome.stopped_s == {0: outcome.decided_s}


def test_a_stream_that_stalls_is_backed_up_a_fifth_of_the_delay_later_than_one_that_never_began(send) -> None:
    outcome = after_warm_up(send, {"stall_after": 20, "stall_s": 30.0}, {}, {})
    assert outcome.launched_s[1] == pytest.approx(AT_S + 0.5 + 1.2 * delay_s(), rel=1e-6)
    assert outcome.winner == 1


def test_a_pace_that_will_end_late_is_backed_up_at_the_ninth_token(send) -> None:
    outcome = after_warm_up(send, {"token_s": 0.1}, {}, {})
    assert outcome.launched_s[1] == pytest.approx(AT_S + 0.5 + 8 * 0.1)


def test_an_answer_that_is_long_but_on_schedule_is_left_alone(send) -> None:
    outcome = after_warm_up(send, {"output_tokens": 3000}, {}, {})
    assert outcome.launched_s == [AT_S]


def test_a_streaming_caller_is_tied_to_the_first_token_and_sees_the_stall(send) -> None:
    outcome = after_warm_up(send, {"stall_after": 20, "stall_s": 30.0}, {}, {}, stream=True)
    assert outcome.launched_s == [AT_S]
    assert (outcome.first_token_s, outcome.response_s) == pytest.approx((0.5, 31.0))


def test_nothing_is_backed_up_before_twenty_requests_have_ended(send) -> None:
    sents = [send(float(second), {"ttft_s": 30.0}, {}, {}) for second in range(20)]
    assert all(len(outcome.launched_s) == 1 for outcome in simulate(sents, Policy()))


def test_an_answer_that_ends_at_the_moment_of_the_check_is_not_backed_up(send) -> None:
    sents = [send(0.0, {"ttft_s": 1.0, "output_tokens": 1, "token_s": 1.0}, {}), send(9.0, {"ttft_s": 1.5}, {})]
    assert [outcome.launched_s for outcome in simulate(sents, FIXED)] == [[0.0], [9.0]]


def test_a_fixed_delay_hedges_from_the_first_request_on(send) -> None:
    (outcome,) = simulate([send(0.0, {"ttft_s": 30.0}, {})], FIXED)
    assert outcome.launched_s == [0.0, 2.0]


def test_resend_stops_the_late_attempt_when_the_next_one_starts(send) -> None:
    policy = Policy(trigger="response", delay=2.0, on_trigger="resend", max_backups=1, budget="off")
    (outcome,) = simulate([send(0.0, {"ttft_s": 2.3}, {"ttft_s": 5.0})], policy)
    assert (outcome.launched_s, outcome.stopped_s, outcome.winner) == ([0.0, 2.0], {0: 2.0}, 1)
    assert outcome.response_s == pytest.approx(7.5)


def test_a_failure_is_replaced_at_once_and_a_fatal_one_is_not(send) -> None:
    failed = {"status": 500, "ttft_s": 0.2}
    paused_s = 0.5  # it failed at once: where it failed a copy would meet the same
    assert after_warm_up(send, failed, {}, {}).launched_s == pytest.approx([AT_S, AT_S + 0.2 + paused_s])
    late = {"status": 500, "ttft_s": 0.6}
    assert after_warm_up(send, late, {}, {}).launched_s == pytest.approx([AT_S, AT_S + 0.6])
    fatal = after_warm_up(send, {"status": 400, "ttft_s": 0.2}, {}, {})
    assert (fatal.launched_s, fatal.winner, fatal.response_s) == ([AT_S], None, None)
    assert fatal.decided_s == pytest.approx(AT_S + 0.2)


def test_a_failed_backup_does_not_beat_a_live_primary(send) -> None:
    outcome = after_warm_up(send, {"ttft_s": 9.0}, {"status": 500, "ttft_s": 0.1}, {"status": 500, "ttft_s": 0.1})
    assert outcome.winner == 0
    assert outcome.response_s == pytest.approx(9.5)


def test_after_a_429_no_late_attempt_is_backed_up_for_thirty_seconds(send) -> None:
    sents = [send(float(second)) for second in range(WARM)]
    refused = {"status": 429, "ttft_s": 0.1}
    late = [send(AT_S + gap, {"ttft_s": 20.0}, {}, {}) for gap in (5.0, 40.0)]
    outcomes = simulate([*sents, send(AT_S, refused, {}, {}), *late], Policy())
    assert [len(outcome.launched_s) for outcome in outcomes[-3:]] == [1, 1, 2]


def test_observe_sends_nothing_and_says_who_would_have_been_backed_up(send) -> None:
    outcome = after_warm_up(send, {"ttft_s": 30.0}, {}, {}, policy=Policy(mode="observe"))
    assert (outcome.launched_s, outcome.wanted) == ([AT_S], True)


def test_no_attempt_is_made_up_that_the_data_do_not_have(send) -> None:
    outcome = after_warm_up(send, {"ttft_s": 30.0})
    assert (outcome.launched_s, outcome.wanted) == ([AT_S], True)


def test_the_whole_request_ends_at_its_time_out(send) -> None:
    outcome = after_warm_up(send, {"ttft_s": 30.0}, {"ttft_s": 30.0}, {"ttft_s": 30.0}, policy=Policy(timeout_s=4.0))
    assert outcome.winner is None
    assert outcome.decided_s == pytest.approx(AT_S + 4.0)


def test_an_attempt_that_runs_out_of_time_is_replaced(send) -> None:
    policy = Policy(trigger="off", attempt_timeout_s=3.0)
    outcome = after_warm_up(send, {"ttft_s": 30.0}, {}, policy=policy)
    assert outcome.launched_s == pytest.approx([AT_S, AT_S + 3.0])
    assert outcome.winner == 1


def test_a_stream_that_falls_silent_after_the_commit_has_failed(send) -> None:
    policy = Policy(trigger="off", stall_s=5.0)
    outcome = after_warm_up(send, {"stall_after": 10, "stall_s": 30.0}, {}, policy=policy, stream=True)
    assert (outcome.winner, outcome.response_s) == (None, None)
    assert outcome.stopped_s[0] == pytest.approx(AT_S + 0.5 + 9 * 0.01 + 5.0)


def test_segments_and_hours_are_not_looked_at(send) -> None:
    policy = Policy(segments=["pro"], hours=["01:00-02:00"])
    assert len(after_warm_up(send, {"ttft_s": 30.0}, {}, {}, policy=policy).launched_s) == 2


def test_the_control_share_is_never_hedged_nor_counted(send) -> None:
    sents = [send(float(second)) for second in range(WARM)]
    late = [send(AT_S + 60.0 * number, {"ttft_s": 30.0}, {}, {}) for number in range(60)]
    outcomes = simulate([*sents, *late], Policy(control_share=0.5, budget=1.0), seed=3)[WARM:]
    control = [outcome for outcome in outcomes if not outcome.counted]
    assert 15 < len(control) < 45
    assert all(len(outcome.launched_s) == 1 for outcome in control)
    assert outcomes == simulate([*sents, *late], Policy(control_share=0.5, budget=1.0), seed=3)[WARM:]


def test_progress_adds_up_to_the_requests(send) -> None:
    told: list[int] = []
    simulate([send(float(second)) for second in range(2500)], Policy(), progress=told.append)
    assert told == [1000, 1000, 500]


@pytest.mark.parametrize(
    ("age_s", "tokens"), [(0.49, 0), (0.5, 1), (0.519, 2), (0.52, 3), (0.6, 3), (5.52, 3), (5.53, 4), (99, 50)]
)
def test_tokens_arrive_evenly_but_for_the_stall(age_s: float, tokens: int) -> None:
    row = Row(ttft_s=0.5, token_s=0.01, output_tokens=50, stall_after=3, stall_s=5.0, status=200)
    assert row.tokens_by(age_s) == tokens
    assert (row.arrival_s(3), row.arrival_s(4), row.ends_s) == pytest.approx((0.52, 5.53, 6.0))


def test_requests_overlap_and_know_only_what_had_ended(send) -> None:
    """All at once: nobody has ended when the late one could be backed up, so it is not."""
    sents: list[Sent] = [send(0.001 * number, {"ttft_s": 50.0}) for number in range(40)]
    late = send(0.5, {"ttft_s": 45.0}, {}, {})
    assert simulate([*sents, late], Policy())[-1].launched_s == [0.5]


@pytest.mark.parametrize("epoch_s", [1e6 / 3, 1.8e9 / 3])
def test_far_from_zero_the_same_requests_get_backups(send, epoch_s: float) -> None:
    """As in a log whose clock is that of the world."""
    fates = [{"ttft_s": 20.0}, {"stall_after": 20, "stall_s": 30.0}, {"token_s": 0.1}, {"ttft_s": 0.7}]
    late = [(200.0 + 10.0 * number, fates[number % 4]) for number in range(80)]
    outcomes = [
        simulate(
            [*(send(since_s + n) for n in range(WARM)), *(send(since_s + at_s, fate, {}, {}) for at_s, fate in late)],
            DEFAULT,
        )
        for since_s in (0.0, epoch_s)
    ]
    near, far = ([len(outcome.launched_s) for outcome in each] for each in outcomes)
    assert near == far
    assert sum(near) > len(near)
