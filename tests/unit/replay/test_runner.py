import asyncio
from collections import Counter

import pytest

from hedgerow.clock import SystemClock
from hedgerow.errors import SettingError
from hedgerow.replay.calls import Piece
from hedgerow.replay.runner import run_arms

ARMS = ("single", "twice", "hedged")


class Recorded:
    """Senders that answer after a turn of the loop and note the order and number of calls."""

    def __init__(self, hold=()):
        self.started, self.in_flight, self.most = [], 0, 0
        self.held, self.release = set(hold), asyncio.Event()

    async def send(self, case, number):
        assert case.endswith(f"/{number}")
        self.started.append(case)
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)
        if case in self.held:
            await self.release.wait()
        await asyncio.sleep(0)
        self.in_flight -= 1
        if case == "twice/1":
            raise ConnectionResetError
        yield Piece(answer_id=case, content=True, last=True)

    def run(self, **options):
        senders = dict.fromkeys(ARMS, self.send)
        settings = {"requests": 20, "concurrency": 6, "seed": 1, "clock": SystemClock()}
        return run_arms(senders, **(settings | options))


async def test_every_request_is_sent_once_in_every_arm_and_comes_back_in_its_place():
    calls = await Recorded().run()
    assert {arm: len(measured) for arm, measured in calls.items()} == dict.fromkeys(ARMS, 20)
    assert [call.error for call in calls["twice"]] == [None, "ConnectionResetError", *[None] * 18]


async def test_the_arms_of_a_request_start_together_in_an_order_that_the_seed_shuffles():
    def orders(recorded):
        rows = [recorded.started[at : at + len(ARMS)] for at in range(0, len(recorded.started), len(ARMS))]
        assert all(len({case.rpartition("/")[2] for case in row}) == 1 for row in rows)
        return [tuple(case.partition("/")[0] for case in row) for row in rows]

    runs = []
    for seed in (1, 1, 2):
        recorded = Recorded()
        await recorded.run(seed=seed)
        runs.append(orders(recorded))
    assert runs[0] == runs[1] != runs[2]
    assert len(Counter(runs[0])) > 2


async def test_no_more_calls_are_in_flight_than_asked_for():
    recorded = Recorded()
    await recorded.run(concurrency=5)
    assert len(ARMS) <= recorded.most <= 5


async def test_a_slow_call_holds_up_its_own_place_only():
    recorded = Recorded(hold=["single/0"])
    running = asyncio.ensure_future(recorded.run(concurrency=4))
    async with asyncio.timeout(30):
        while len(recorded.started) < 20 * len(ARMS):
            await asyncio.sleep(0)
    recorded.release.set()
    assert len((await running)["single"]) == 20


async def test_progress_is_told_of_every_call():
    seen = Counter()
    await Recorded().run(progress=lambda arm: seen.update([arm]))
    assert seen == dict.fromkeys(ARMS, 20)


async def test_places_for_fewer_calls_than_there_are_arms_are_refused():
    with pytest.raises(SettingError, match="concurrency = 2 is not possible"):
        await Recorded().run(concurrency=2)
