"""A primary that is interrupted while it connects is inside a task group of anyio's, which then cancels the task it runs in: the
caller's. None of that may reach the caller's next await."""

import asyncio
from random import Random

import openai
from openai import AsyncOpenAI
from tests.sdk.racing import QUICK, ask

import hedgerow
from hedgerow.testing.process import SandboxProcess


async def test_what_a_call_that_ran_out_of_time_leaves_does_not_cancel_its_caller(
    hedgerow_sandbox: SandboxProcess,
) -> None:
    luck = Random(1)
    for number in range(120):
        client = AsyncOpenAI(base_url=f"{hedgerow_sandbox.url}/v1", api_key="k", max_retries=0)
        policy = hedgerow.Policy(trigger="off", max_backups=0, timeout_s=luck.uniform(0.0005, 0.006))
        hedged = hedgerow.hedged(client, policy=policy)
        try:
            await ask(hedged, f"connecting/{number}", QUICK)
        except openai.APITimeoutError:
            pass
        for _ in range(3):
            await asyncio.sleep(0.001)  # a stray cancellation would end the test here
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0
        await hedged.close()
