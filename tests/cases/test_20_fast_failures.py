"""Cosmos DB .NET PR 5923: fast failures were hedged at once, fleet-wide.

Right: attempts that are started by errors pay from the same budget as those that are started by lateness.
"""

import asyncio
from typing import Any

import openai
import pytest
from tests.cases.support import Hedge, all_closed
from tests.sdk.racing import ask

import hedgerow
from hedgerow.testing.process import SandboxProcess

FAILURES: list[dict[str, Any]] = [
    {"status": 500},
    {"status": 502},
    {"cut_after": 0},
    {"error_frame": {"after": 0, "error": {"type": "server_error", "message": "oops"}}},
]


@pytest.mark.parametrize("failure", FAILURES, ids=["500", "502", "cut", "in band"])
async def test_a_provider_that_fails_at_once_gets_no_more_than_the_budget_on_top(
    hedge: Hedge, hedgerow_sandbox: SandboxProcess, failure: dict[str, Any]
) -> None:
    client = hedge(budget=0.05)

    async def call(number: int) -> None:
        with pytest.raises((openai.APIError, TypeError)):  # an error inside a 200 reaches the SDK as it was
            await ask(client, f"20/{number}", failure)

    for wave in range(5):
        await asyncio.gather(*(call(wave * 20 + number) for number in range(20)))
    await all_closed(client, hedgerow_sandbox)
    attempts = hedgerow_sandbox.stats()["started"]
    # Not one more where an SDK above will try again: its spacing is better than a copy at once (behind the gateway).
    assert 100 <= attempts <= 100 + 2 + 0.05 * 100
    assert hedgerow.hedger_of(client).stats()["backups"] == attempts - 100
