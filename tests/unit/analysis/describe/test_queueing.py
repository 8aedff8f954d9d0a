"""Self-queueing: seen where waits climb with the calls in flight or in waves, unknown where a log cannot tell."""

import numpy as np
import pytest
from tests.calls_by_hand import calls_of
from tests.unit.analysis.describe.queueing_kinds import NOTHING_QUEUES, QUEUES, Kind

from hedgerow.analysis.describe.queueing import queueing_of


def waves(length: int, n: int, *, step_s: float, noise: float = 0.1, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return 1 + step_s * (np.arange(n) % length) + noise * rng.standard_normal(n) ** 2


def test_waits_that_climb_in_waves_of_five_are_seen_in_the_order_of_a_log_without_times() -> None:
    found = queueing_of(calls_of(waves(5, 150, step_s=1.0)))
    assert found.queues is True
    assert found.seen_by == "waves of 5 in the order of the log"
    assert found.climbs_by is not None
    assert found.climbs_by > 2


@pytest.mark.parametrize("seed", range(20))
def test_a_shuffled_copy_of_such_a_log_tells_nothing(seed: int) -> None:
    shuffled = np.random.default_rng(seed).permutation(waves(5, 150, step_s=1.0))
    assert queueing_of(calls_of(shuffled)).queues is None


@pytest.mark.parametrize("seed", range(20))
def test_a_log_without_waves_and_times_tells_nothing(seed: int) -> None:
    waited = np.random.default_rng(seed).lognormal(0, 1, 300)
    assert queueing_of(calls_of(waited)).queues is None


def test_waves_may_begin_anywhere_in_the_log() -> None:
    assert queueing_of(calls_of(waves(5, 153, step_s=1.0)[3:])).queues is True


def test_waves_that_hardly_climb_are_no_queue() -> None:
    assert queueing_of(calls_of(waves(5, 1000, step_s=0.02, noise=0.001))).queues is None


def test_a_wave_seen_at_a_sister_model_needs_less_to_be_seen_here() -> None:
    faint = calls_of(waves(5, 145, step_s=0.25, noise=2.0, seed=3))
    assert queueing_of(faint).queues is None
    assert queueing_of(faint, wave=5).queues is True


def test_failed_calls_keep_their_place_in_the_wave() -> None:
    ok = [True] * 150
    for place in (7, 31, 32, 90):
        ok[place] = False
    assert queueing_of(calls_of(waves(5, 150, step_s=1.0), ok=ok)).queues is True


def served_in_turn(n: int, *, service_s: float, every_s: float, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Start and wait of calls to an endpoint that answers one after the other."""
    rng = np.random.default_rng(seed)
    start = np.cumsum(rng.exponential(every_s, n))
    free, waited = 0.0, np.empty(n)
    for number, at in enumerate(start):
        free = max(free, at) + service_s
        waited[number] = free - at
    return start, waited


def test_with_start_times_waits_that_climb_with_calls_in_flight_are_a_queue() -> None:
    start, waited = served_in_turn(600, service_s=1.0, every_s=1.2)
    found = queueing_of(calls_of(waited, t_start=start))
    assert found.queues is True
    assert found.seen_by == "calls in flight"


def test_with_start_times_calls_that_do_not_mind_each_other_are_no_queue() -> None:
    rng = np.random.default_rng(4)
    start = np.cumsum(rng.exponential(0.3, 2000))
    assert queueing_of(calls_of(rng.lognormal(0, 0.3, 2000), t_start=start)).queues is False


def test_calls_one_after_the_other_tell_nothing_of_a_queue() -> None:
    total = np.full(500, 2.0) + np.random.default_rng(5).random(500)
    start = np.concatenate([[0.0], np.cumsum(total[:-1] + 1)])
    assert queueing_of(calls_of(total, t_start=start)).queues is None


def test_nothing_answered_tells_nothing() -> None:
    assert queueing_of(calls_of([1.0] * 100, ok=[False] * 100)).queues is None


LOGS = 20


def said(kind: Kind, n: int) -> int:
    """In how many logs of this kind a queue is said."""
    return sum(queueing_of(kind(np.random.default_rng(seed), n)).queues is True for seed in range(LOGS))


@pytest.mark.parametrize("n", [100, 400, 3000])
def test_false_alarms_are_fewer_than_one_in_twenty(n: int) -> None:
    alarms = {name: said(kind, n) for name, kind in NOTHING_QUEUES.items()}
    assert sum(alarms.values()) <= 0.05 * LOGS * len(alarms), alarms
    assert max(alarms.values()) <= 0.15 * LOGS, alarms  # of twenty logs: three would be bad luck at one in twenty


@pytest.mark.parametrize("n", [400, 3000])
def test_a_queue_is_seen_in_four_logs_of_five(n: int) -> None:
    seen = {name: said(kind, n) for name, kind in QUEUES.items()}
    assert sum(seen.values()) >= 0.9 * LOGS * len(seen), seen
    assert min(seen.values()) >= 0.7 * LOGS, seen


def test_calls_with_longer_inputs_in_busy_times_are_no_queue() -> None:
    rng = np.random.default_rng(3)
    start = np.cumsum(rng.exponential(1.0, 2000))
    crowd = np.arange(2000) % 20 < 8  # every twenty calls, eight come at once, with ten times the input
    start[crowd] = np.repeat(start[::20], 8)
    inputs = np.where(crowd, 20_000.0, 2_000.0) * rng.lognormal(0, 0.1, 2000)
    first = 0.3 + inputs * 1e-4 * rng.lognormal(0, 0.1, 2000)
    order = np.argsort(start, kind="stable")
    columns = {"t_start": start[order], "ttft_s": first[order], "input_tokens": inputs[order]}
    assert queueing_of(calls_of((first + 2.0)[order], **columns)).queues is False
    del columns["input_tokens"]  # the control: then nothing tells them from a queue
    assert queueing_of(calls_of((first + 2.0)[order], **columns)).queues is True
