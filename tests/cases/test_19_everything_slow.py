"""Loki PR 4826: a partial outage slowed everything, so everything was hedged, which slowed it further.

Right: losing backups ≤ 2 + B·n whatever the provider does; the policy recovers by itself. Live, against the sandbox's count of
what it was sent; the long run is in the simulator's figures (docs/reference/policy-figures.md, "everything ×5 slower").
"""

import asyncio

import pytest
from tests.cases.support import Hedge, all_closed
from tests.sdk.racing import ask

import hedgerow
from hedgerow.testing.process import SandboxProcess

USUAL = {"first_token_s": 0.02, "token_s": 0.0, "tokens": 2}
SLOW = {"first_token_s": 0.3, "token_s": 0.0, "tokens": 2}
LATE = {"first_token_s": 0.1, "token_s": 0.0, "tokens": 2}


@pytest.mark.parametrize("settings", [{"trigger": "lag", "delay": "auto"}, {"trigger": "first_token", "delay": "p95"}])
async def test_when_everything_is_slow_the_load_hardly_grows(
    hedge: Hedge, hedgerow_sandbox: SandboxProcess, settings: dict[str, str]
) -> None:
    client = hedge(budget=0.05, **settings)
    for number in range(30):
        await ask(client, f"19/usual/{number}", USUAL)
    for wave in range(10):
        await asyncio.gather(*(ask(client, f"19/slow/{wave}/{number}", SLOW) for number in range(10)))
    await all_closed(client, hedgerow_sandbox)
    slow = {case: attempts for case, attempts in hedgerow_sandbox.stats()["cases"].items() if "/slow/" in case}
    sent = sum(len(attempts) for attempts in slow.values()) - len(slow)
    stats = hedgerow.hedger_of(client).stats()
    losing = int(str(stats["backups"])) - int(str(stats["backup_wins"]))
    assert losing <= 2 + 0.05 * 130
    assert sent <= 2 + 0.05 * 130 + int(str(stats["backup_wins"]))


async def test_afterwards_a_stall_is_rescued_again(hedge: Hedge) -> None:
    client = hedge(budget=0.05, trigger="first_token", delay=0.05)
    for number in range(40):
        await ask(client, f"19/slow/{number}", LATE)  # each asks for a backup; the bucket runs empty
    refused = hedgerow.hedger_of(client).stats()["refusals"]
    assert isinstance(refused, dict)
    assert sum(refused.values()) > 20
    for number in range(60):
        await ask(client, f"19/well/{number}", USUAL)
    assert await ask(client, "19/stall", {"first_token_s": 20}, {**USUAL, "text": "rescued"}) == "rescued"
