"""spicedb 235: losers were blocked on a channel that nobody read, until 44,000 goroutines hung.

Right: after the races tasks, threads and sockets are back at the base line (here some sixty races of each kind of loser;
tests/sdk/test_many_races.py does many), whether tasks or threads call. A loser with an answer in its hands, or a flood nobody
takes, is let go like any other.
"""

import asyncio
import gc
import threading
from typing import Any

import psutil
import pytest
from tests.cases.support import NEVER_S, Hedge, all_closed
from tests.sdk.racing import QUICK, ask, eventually, stream

import hedgerow
from hedgerow.race.portal import portal
from hedgerow.testing.process import SandboxProcess

SAME_MOMENT = {"first_token_s": 0.03}
PINGS = {"every_s": 0.001, "count": 10_000}
LOSERS = {
    "never answers": [{"first_token_s": NEVER_S}, QUICK],
    "has its answer at the same moment": [SAME_MOMENT, {"first_token_s": 0.01}],
    "floods its caller with pings": [{"first_token_s": NEVER_S, "pings": PINGS}, QUICK],
    "has a long answer at the same moment": [SAME_MOMENT | {"tokens": 150, "token_s": 0.0}, {"first_token_s": 0.01}],
    "is cut at the same moment": [SAME_MOMENT | {"cut_after": 1}, {"first_token_s": 0.01}],
    "fails at the same moment": [SAME_MOMENT | {"status": 500}, {"first_token_s": 0.01}],
}


def all_tasks() -> int:
    """The tasks of this loop and of hedgerow's own, where the races of threads run."""
    here = len(asyncio.all_tasks())
    return here + portal().call(lambda: len(asyncio.all_tasks()))


@pytest.mark.parametrize("attempts", LOSERS.values(), ids=LOSERS)
async def test_after_the_races_nothing_is_left(
    hedge: Hedge, hedgerow_sandbox: SandboxProcess, attempts: list[dict[str, Any]]
) -> None:
    client, me = hedge(delay=0.02), psutil.Process()
    await ask(client, "12/warm", QUICK)
    gc.collect()
    tasks, threads, descriptors = all_tasks(), threading.active_count(), me.num_fds()

    async def worker(first: int) -> None:
        for number in range(first, 30, 10):
            for send in (ask, stream):
                await asyncio.wait([asyncio.ensure_future(send(client, f"12/{number}/{send.__name__}", *attempts))])

    await asyncio.gather(*(worker(first) for first in range(10)))
    await all_closed(client, hedgerow_sandbox)
    stats: Any = hedgerow.hedger_of(client).stats()
    assert stats["requests"] == sum(stats["outcomes"].values()) == 61
    await eventually(lambda: all_tasks() <= tasks)
    assert threading.active_count() <= threads  # one that loaded prices may have ended meanwhile
    await client.close()
    await eventually(lambda: me.num_fds() < descriptors)  # the pool's own connection has gone too
