"""What a backup is charged to the controller goes by the price of the target that it is sent to."""

import asyncio
from collections.abc import Callable
from math import log
from urllib.parse import urlsplit

import pytest
from tests.sdk.racing import QUICK, ask, eventually, plain

import hedgerow
from hedgerow.testing.process import SandboxProcess

BUDGET, GAIN, CALLS = 0.5, 0.04, 24


@pytest.mark.parametrize("times_as_dear", [1.0, 4.0])
async def test_a_backup_at_a_dearer_target_raises_d_by_so_much_more(
    times_as_dear: float, hedgerow_sandbox_factory: Callable[..., SandboxProcess]
) -> None:
    here, there = hedgerow_sandbox_factory(), hedgerow_sandbox_factory()
    prices = [
        hedgerow.PriceRule(
            model="m", provider=urlsplit(there.url).netloc, input=times_as_dear, output=2 * times_as_dear
        ),
        hedgerow.PriceRule(model="m", input=1.0, output=2.0),
    ]
    backup = hedgerow.Target(base_url=f"{there.url}/v1", api_key="theirs")
    policy = hedgerow.Policy(budget=BUDGET, max_backups=1)
    async with hedgerow.hedged(plain(here), policy=policy, backup=backup, prices=prices) as client:
        hedger = hedgerow.hedger_of(client)
        for number in range(CALLS):
            await ask(client, f"warm/{number}", QUICK)
        before = hedger.pilot.controller.d_per_b
        late = asyncio.ensure_future(ask(client, "late/1", {"first_token_s": 30.0}))
        await eventually(lambda: there.stats()["in_flight"] == 1)
        after = hedger.pilot.controller.d_per_b
        late.cancel()
        with pytest.raises(asyncio.CancelledError):
            await late
    assert before is not None
    assert after is not None
    assert log(after / before) / GAIN + BUDGET == pytest.approx(times_as_dear, rel=0.15)
