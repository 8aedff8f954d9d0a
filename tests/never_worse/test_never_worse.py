"""Whatever a provider does, a caller behind hedgerow gets what the bare client's caller gets, or better.

No expectation is written by hand: each scenario is played to the bare SDK and to every way of ours, and the outcomes are
compared.
"""

import asyncio
import json
import os
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import anthropic._base_client
import openai._base_client
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from tests.never_worse.compare import judged
from tests.never_worse.differences import DIFFERENCES
from tests.never_worse.play import BARE, Stage, ways_for
from tests.never_worse.scenario import Scenario, corpus, counted, scenarios

AT_ONCE = 4  # plays: they mostly wait
PARTS, SEEDS = 6, (1, 2, 3, 4)
BACK_OFF_S = 0.002  # of the SDKs, on both sides; Google's client takes its own as an argument
SOAKED = int(os.environ.get("DIFFERENTIAL_DRAWS", "2000"))

pytestmark = [
    pytest.mark.timeout(3600),
    # What a cut connection leaves behind in the SDKs' own streams, bare ones included.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning", "ignore::RuntimeWarning"),
]


@pytest.fixture
async def stage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> AsyncIterator[Stage]:
    for base in (openai._base_client.BaseClient, anthropic._base_client.BaseClient):
        monkeypatch.setattr(base, "_calculate_retry_timeout", lambda *_, **__: BACK_OFF_S)
    made = Stage(tmp_path)
    yield made
    await made.close()
    assert not [record.getMessage() for record in caplog.get_records("call") if record.exc_info], "the gateway failed"


async def play_all(stage: Stage, played: Iterable[tuple[str, Scenario]]) -> tuple[list[str], Counter[str]]:
    """What was worse without an explanation, a line each; and how often each meant difference was seen."""
    told, used, room = list[str](), Counter[str](), asyncio.Semaphore(AT_ONCE)

    async def one(name: str, scenario: Scenario) -> None:
        async with room:
            bare = await stage.play(scenario, BARE)
            for way in ways_for(scenario):
                verdict = await judged(stage, scenario, way, bare, await stage.play(scenario, way, bare))
                told.extend(
                    f"{name} {way}: {each}\n    {json.dumps(scenario.as_json())}" for each in verdict.unexplained
                )
                if verdict.difference is not None:
                    used[verdict.difference.name] += 1

    await asyncio.gather(*(one(name, scenario) for name, scenario in played))
    return told, used


def drawn(number: int, with_seed: int) -> list[tuple[str, Scenario]]:
    """So many different scenarios, always the same for a seed."""
    found: list[Scenario] = []

    @seed(with_seed)
    @settings(max_examples=number * 2, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(scenarios())
    def draw(scenario: Scenario) -> None:
        if scenario not in found:
            found.append(scenario)

    draw()
    return [(f"seed {with_seed}, {place}", scenario) for place, scenario in enumerate(found[:number])]


def printed(counts: dict[str, Counter[Any]]) -> str:
    return "\n".join(
        f"{axis}: " + ", ".join(f"{value} {n}" for value, n in found.items()) for axis, found in counts.items()
    )


@pytest.mark.parametrize("part", range(PARTS))
async def test_every_scenario_of_the_corpus(stage: Stage, part: int) -> None:
    told, _ = await play_all(stage, corpus()[part::PARTS])
    assert not told, "\n".join(told)


@pytest.mark.parametrize("with_seed", SEEDS)
async def test_scenarios_drawn_on_a_fixed_seed(stage: Stage, with_seed: int) -> None:
    told, _ = await play_all(stage, drawn(100 // len(SEEDS), with_seed))
    assert not told, "\n".join(told)


def test_the_corpus_is_large_and_the_draws_leave_no_value_out(capsys: pytest.CaptureFixture[str]) -> None:
    played = [scenario for _, scenario in corpus()]
    assert len(played) >= 150
    played += [scenario for with_seed in SEEDS for _, scenario in drawn(100 // len(SEEDS), with_seed)]
    counts = counted(played)
    with capsys.disabled():
        print(f"\n{len(played)} scenarios\n{printed(counts)}")
    assert not [(axis, value) for axis, found in counts.items() for value, n in found.items() if not n]


@pytest.mark.soak
async def test_soak_of_scenarios_drawn_anew(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    """`make soak-differential`: other scenarios each time; DIFFERENTIAL_SEED plays the same ones again."""
    first = int(os.environ.get("DIFFERENTIAL_SEED", "0")) or int.from_bytes(os.urandom(3))
    told, used, played = list[str](), Counter[str](), list[Scenario]()
    for with_seed in range(first, first + -(-SOAKED // 250)):
        part = drawn(250, with_seed)
        played += [scenario for _, scenario in part]
        found, seen = await play_all(stage, part)
        told, used = told + found, used + seen
        with capsys.disabled():
            print(f"\nseed {with_seed}: {len(played)} scenarios, {len(told)} unexplained", *found, sep="\n", flush=True)
    _, of_the_corpus = await play_all(stage, corpus())
    counts = counted(played)
    with capsys.disabled():
        print(printed(counts), f"differences: {dict(used + of_the_corpus)}", sep="\n")
    assert not told, "\n".join(told)
    assert not [(axis, value) for axis, found in counts.items() for value, n in found.items() if not n]
    stale = {each.name for each in DIFFERENCES} - {*used, *of_the_corpus}
    assert not stale, f"no scenario shows these differences any more: {stale}"
