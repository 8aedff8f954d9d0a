"""Interleaves the arms: all copies of one request start together, so that each arm meets the same minute and the same load."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from random import Random

from hedgerow.clock import Clock
from hedgerow.errors import SettingError
from hedgerow.replay.calls import Measured, Piece, measure

__all__ = ["Send", "case_of", "run_arms"]

Send = Callable[[str, int], AsyncGenerator[Piece]]
"""Sends request number n (from 0) as the given case, and yields its answer."""


def case_of(arm: str, number: int) -> str:
    """The sandbox draws by what follows the slash: request `number` has the same luck in every arm."""
    return f"{arm}/{number}"


async def run_arms(
    senders: Mapping[str, Send],
    *,
    requests: int,
    concurrency: int,
    seed: int,
    clock: Clock,
    progress: Callable[[str], object] = lambda _: None,
) -> dict[str, tuple[Measured, ...]]:
    """Sends requests 0..`requests` - 1 in every arm and returns what was measured, per arm, in their order.

    concurrency: calls in flight at most, at least one for each arm (else SettingError); a slow call keeps one place busy,
    not a whole row. seed: shuffles the order in which the arms of a request start. progress: told the arm of every call
    that is over.
    """
    if concurrency < len(senders):
        raise SettingError("concurrency", concurrency, f"≥ {len(senders)}: the arms of a request start together")
    luck = Random(seed)
    places = asyncio.Semaphore(concurrency)
    measured: dict[str, dict[int, Measured]] = {arm: {} for arm in senders}

    async def run(arm: str, number: int) -> None:
        try:
            measured[arm][number] = await measure(senders[arm](case_of(arm, number), number), clock)
        finally:
            places.release()
        progress(arm)

    async with asyncio.TaskGroup() as group:
        for number in range(requests):
            order = luck.sample(list(senders), len(senders))
            for _ in order:
                await places.acquire()
            for arm in order:
                group.create_task(run(arm, number))
    return {arm: tuple(calls[number] for number in range(requests)) for arm, calls in measured.items()}
