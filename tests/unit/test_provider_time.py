"""The hedgers of tests wait for the provider: their timers, and their time."""

import asyncio
from typing import Any

import pytest
from tests.provider_time import LOOK_AGAIN_S, SENDING, ProviderClock, Sending, Watched

DELAY_S = 0.03


class Provider(Watched):
    """What a sandbox would tell: how long ago each request arrived, and whether its answer is overdue."""

    def __init__(self) -> None:
        super().__init__()
        self.tells: list[tuple[float, bool]] = []
        self.asked = 0

    def seen(self, case: str) -> list[tuple[float, bool]]:  # noqa: ARG002 there is one
        self.asked += 1
        return self.tells


@pytest.fixture
def sending() -> Any:
    made = Sending(Provider(), "c")
    made.under_way = made.watched.sent["c"] = 1
    token = SENDING.set(made)
    yield made
    SENDING.reset(token)


async def looked(provider: Any, times: int = 3) -> None:
    until = provider.asked + times
    while provider.asked < until:
        await asyncio.sleep(LOOK_AGAIN_S)


@pytest.mark.parametrize("behind", [[], [(0.0, False)], [(9.0, True)]], ids=["in transit", "just come", "overdue"])
async def test_a_timer_waits_for_the_provider_and_time_with_it(sending: Any, behind: list[tuple[float, bool]]) -> None:
    clock, fired = ProviderClock(), asyncio.Event()
    sending.watched.tells = behind
    due_s = clock.now() + DELAY_S
    clock.call_later(DELAY_S, fired.set)
    await looked(sending.watched)
    assert not fired.is_set()
    stands_at_s = clock.now()
    assert due_s <= stands_at_s
    await looked(sending.watched)
    assert clock.now() == stands_at_s
    sending.watched.tells = [(9.0, False)]
    await fired.wait()
    assert clock.now() >= stands_at_s


async def test_a_timer_that_is_called_off_lets_time_go_on(sending: Any) -> None:
    clock, fired = ProviderClock(), asyncio.Event()
    timer = clock.call_later(DELAY_S, fired.set)
    await looked(sending.watched)
    stands_at_s = clock.now()
    timer.cancel()
    while clock.now() == stands_at_s:
        await asyncio.sleep(LOOK_AGAIN_S)
    assert not fired.is_set()


async def test_timers_outside_of_calls_wait_for_nobody() -> None:
    fired = asyncio.Event()
    ProviderClock().call_later(DELAY_S, fired.set)
    await fired.wait()
