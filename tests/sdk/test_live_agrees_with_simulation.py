"""The rule decides live as it does in simulate: the same 2,000 requests, served by the sandbox through the OpenAI SDK.

Tolerance: of the backups that either side sends, the other sends at least 80 %, and their numbers differ by at most 15 %. Live,
everything is seen some real milliseconds late (2 ms are 0.02 s of the provider's), so an attempt whose first token comes within
that of the deadline may go either way; each such backup moves D a little for all that follow. Measured on two cores that did
nothing else: streaming callers 77 live, 85 simulated, 76 the same; buffered callers 110, 114, 108. A machine that is busy with
other things gets a second try at half the speed, and a third at a quarter.
"""

import asyncio
import json
from collections.abc import Sequence

import pytest
from openai import AsyncOpenAI
from tests.sdk.racing import idle
from tests.shared_bench import shared_module

import hedgerow
from hedgerow.analysis.attempts import Row, Sent, sents_of
from hedgerow.analysis.simulate import simulate
from hedgerow.clock import ScaledClock
from hedgerow.settings import Policy
from hedgerow.testing.process import SandboxProcess

REQUESTS, SEED = 2_000, 151
TIME_SCALES = (0.095, 0.19, 0.38)
CHARS_PER_TOKEN = 4
SAME_BACKUPS, SAME_NUMBER = 0.80, 0.15


def script_of(row: Row) -> dict[str, object]:
    """What makes the sandbox do what a row says."""
    stall = {"after": row.stall_after, "s": row.stall_s} if row.stall_s else None
    return {"first_token_s": row.ttft_s, "token_s": row.token_s, "tokens": row.output_tokens, "stall": stall}


async def call(client: AsyncOpenAI, number: int, sent: Sent, *, time_scale: float, stream: bool) -> None:
    """One request at its time, with a prompt of its length and each attempt's fate."""
    await asyncio.sleep(sent.start_s * time_scale)
    create = client.chat.completions.with_streaming_response.create  # as raw bytes: parsing chunks would load the clock
    async with create(
        model="m",
        messages=[{"role": "user", "content": "x" * CHARS_PER_TOKEN * sent.input_tokens}],
        stream=stream,
        extra_headers={"x-sandbox-case": str(number), "x-sandbox-script": json.dumps([*map(script_of, sent.rows)])},
    ) as answer:
        async for _ in answer.iter_bytes():
            pass


async def backed_up_live(sents: Sequence[Sent], policy: Policy, time_scale: float, *, stream: bool) -> dict[int, int]:
    """Requests that got backups, and how many, by the sandbox's own count."""
    with SandboxProcess(time_scale=time_scale) as sandbox:
        plain = AsyncOpenAI(base_url=f"{sandbox.url}/v1", api_key="k", max_retries=0)
        async with hedgerow.hedged(plain, policy=policy, clock=ScaledClock(time_scale)) as client:
            async with asyncio.TaskGroup() as calls:
                for number, sent in enumerate(sents):
                    calls.create_task(call(client, number, sent, time_scale=time_scale, stream=stream))
            await idle(sandbox)
        cases = sandbox.stats()["cases"]
    arrivals = {int(case): len(attempts) for case, attempts in cases.items()}
    assert len(arrivals) == len(sents)
    return {number: count - 1 for number, count in arrivals.items() if count > 1}


@pytest.mark.alone
@pytest.mark.timeout(400)
@pytest.mark.parametrize("stream", [True, False], ids=["streaming callers", "buffered callers"])
async def test_the_same_requests_get_backups_live_and_in_simulation(stream: bool) -> None:
    columns = shared_module("workloads").draw("O", REQUESTS, SEED)
    sents = sents_of({name: column.tolist() for name, column in columns.items()})
    policy = Policy(upstream_stream=not stream)
    outcomes = simulate(sents, policy, stream=stream)
    simulated = {n: len(each.launched_s) - 1 for n, each in enumerate(outcomes) if len(each.launched_s) > 1}
    assert len(simulated) > REQUESTS / 50
    tries: list[str] = []
    for time_scale in TIME_SCALES:
        live = await backed_up_live(sents, policy, time_scale, stream=stream)
        same, sent, expected = live.keys() & simulated.keys(), sum(live.values()), sum(simulated.values())
        tries.append(f"{len(live)} live, {len(simulated)} simulated, {len(same)} the same")
        if (
            len(same) >= SAME_BACKUPS * max(len(live), len(simulated))
            and abs(sent - expected) <= SAME_NUMBER * expected
        ):
            return
    pytest.fail("; ".join(tries))
