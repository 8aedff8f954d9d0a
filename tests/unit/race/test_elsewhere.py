"""Backups at a target of their own, live: its key learns from them, and the next ones are judged by it."""

import pytest
from tests.unit.race.bench import ELSEWHERE, Bench
from tests.unit.race.scripted import Carrier, Does, answers, pass_time

SETTLED = 22


async def call(bench: Bench, *scripts: Does, seconds: float) -> Carrier:
    carrier, answer = bench.send(*scripts)
    await pass_time(bench.clock, seconds)
    await answer
    return carrier


async def warm(**settings: object) -> Bench:
    """A bench that is late 0.2 s after b = 0.5 s, and whose backups go elsewhere first."""
    bench = Bench(ELSEWHERE, trigger="lag", delay=0.2, budget="off", **settings)
    for _ in range(SETTLED):
        await call(bench, answers("a", 0.5), seconds=0.6)
    return bench


def lengths(bench: Bench) -> dict[str, int]:
    """How many first-token times are known of each target."""
    return {key.target: len(known.firsts) for key, known in bench.hedger.pilot.statistics}


async def test_a_backup_at_a_slow_target_is_given_that_targets_time_once_it_is_known() -> None:
    bench, late = await warm(), (answers("late", 30), answers("there", 2.0), answers("late", 30))
    for number in range(20):
        carrier = await call(bench, *late, seconds=3.0)
        assert carrier.opened == [0, 1, 0], number  # elsewhere at 0.7 s; judged by b and D of home, home again at 1.8 s
    assert lengths(bench) == {"primary": SETTLED + 20, "elsewhere": 20}
    carrier = await call(bench, *late, seconds=3.0)
    assert carrier.opened == [0, 1]  # b there is 2 s: an answer after 2 s is none that lags


async def test_the_primary_is_judged_by_its_own_key_whatever_its_backups_do() -> None:
    bench = await warm(max_backups=1)
    for _ in range(20):
        await call(bench, answers("late", 30), answers("there", 2.0), seconds=3.0)
    carrier = await call(bench, answers("late", 30), answers("there", 2.0), seconds=3.0)
    event = bench.events()[-1]
    # Its first tokens do enter: as the ages at which it was cancelled, which the median of 42 does not see.
    assert event.b_s == pytest.approx(0.5, abs=0.1)
    assert carrier.opened == [0, 1]


async def test_a_backup_that_fails_or_never_gets_a_connection_tells_nothing_of_its_target() -> None:
    bench = await warm(max_backups=1)
    await call(bench, answers("a", 1.5), Does(status=500, headers_s=0.1), seconds=2.0)
    await call(bench, answers("a", 1.5), answers("never sent", 0.1, pool_s=60.0), seconds=2.0)
    assert lengths(bench).get("elsewhere", 0) == 0


async def test_a_backup_cancelled_before_its_first_token_counts_if_it_waited_longer_than_usual() -> None:
    bench = await warm(max_backups=1)
    await call(bench, answers("a", 0.9), answers("there", 9.0), seconds=1.0)
    assert lengths(bench).get("elsewhere", 0) == 0
    await call(bench, answers("a", 1.9), answers("there", 9.0), seconds=2.0)
    assert lengths(bench)["elsewhere"] == 1
