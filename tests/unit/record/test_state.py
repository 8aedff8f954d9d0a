"""What was learnt is kept over restarts, and the budget is not refilled by crashing."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.unit.race.scripted import Carrier, Does, answers, completion, pass_time, request

from hedgerow.clock import ManualClock
from hedgerow.engine import Hedger
from hedgerow.policy.gate import Place
from hedgerow.settings import Policy

HOME = (Place(name="primary"),)


class Life:
    """One process's life with a state file."""

    def __init__(self, path: Path, clock: ManualClock | None = None, **settings: object) -> None:
        self.clock = clock or ManualClock()
        self.hedger = Hedger(Policy(**settings), HOME, clock=self.clock, state=path)  # type: ignore[arg-type]

    async def call(self, *scripts: Does, seconds: float) -> bytes:
        import asyncio

        async def read() -> bytes:
            delivery = await self.hedger.send(request(), Carrier(self.clock, scripts))
            return b"".join([chunk async for chunk in delivery])

        answer = asyncio.ensure_future(read())
        await pass_time(self.clock, seconds)
        return await answer

    async def warm(self) -> None:
        for number in range(25):
            await self.call(answers("a", 0.5 + 0.01 * (number % 5)), seconds=0.6)


async def test_a_restarted_process_is_not_cold_and_knows_what_it_knew(tmp_path: Path) -> None:
    first = Life(tmp_path / "state.json")
    await first.warm()
    first.hedger.close()
    second = Life(tmp_path / "state.json")
    before, after = first.hedger.stats(), second.hedger.stats()
    assert after["keys"] == before["keys"]
    assert after["budget"] == before["budget"]
    assert after["steering"] == before["steering"]
    assert await second.call(answers("slow", 30), answers("rescued", 0.5), seconds=8) == completion("rescued")
    assert [event.plan for event in second.hedger.events] == ["hedge"]


async def test_after_an_unclean_end_the_bucket_restarts_empty_and_n_is_kept(tmp_path: Path) -> None:
    first = Life(tmp_path / "state.json")
    await first.warm()
    first.hedger.close()
    Life(tmp_path / "state.json")  # begins, and is killed
    third = Life(tmp_path / "state.json").hedger.stats()["budget"]
    assert isinstance(third, dict)
    assert (third["bucket"], third["requests"]) == (0.0, 25)


async def test_losing_backups_stay_within_the_budget_over_crashes(tmp_path: Path) -> None:
    requests = losing = 0
    for _ in range(6):
        life = Life(tmp_path / "state.json", trigger="first_token", delay=0.2)
        for _ in range(5):
            await life.call(answers("primary", 0.5), answers("loses", 9), answers("loses", 9), seconds=0.7)
            requests += 1
        losing += int(str(life.hedger.stats()["backups"]))  # and it is killed: what was not saved is lost
        life.hedger._state.save(life.hedger.pilot)  # type: ignore[union-attr]
        assert losing <= 2 + 0.05 * requests


async def test_it_is_saved_every_minute_of_use(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    life = Life(path)
    await life.call(answers("a", 0.5), seconds=0.6)
    assert not path.exists()
    life.clock.advance(61)
    await life.call(answers("a", 0.5), seconds=0.6)
    assert orjson.loads(path.read_bytes())["clean"] is False


@pytest.mark.parametrize("content", [b"", b"{}", b"not json", b'{"v": 99, "at": "2026-01-01T00:00:00+00:00"}', b"[]"])
async def test_a_broken_file_is_left_behind_with_a_warning(
    tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "state.json"
    path.write_bytes(content)
    life = Life(path)
    assert await life.call(answers("a", 0.5), seconds=0.6) == completion("a")
    assert "cannot be used" in caplog.text


ODD_NAMES: list[Any] = ["\ud800", "a\x00b", "a\r\nb", "m" * 200_000, "ü\u2028", 2**70, {1}, b"\xff"]


@pytest.mark.parametrize("odd", ODD_NAMES, ids=range(len(ODD_NAMES)))
@pytest.mark.parametrize("field", ["model", "effort", "target"])
async def test_a_key_of_an_odd_name_does_not_keep_the_others_from_being_kept(
    tmp_path: Path, field: str, odd: Any, caplog: pytest.LogCaptureFixture
) -> None:
    first = Life(tmp_path / "state.json")
    await first.warm()
    ((key, known),) = first.hedger.pilot.statistics
    if isinstance(odd, set):
        known.learn_sizes([(2**70, 1.0)])  # no name: a number that JSON's writer does not take
        key = replace(key, size="8k")
        first.hedger.pilot.statistics.of(key).learn_first(1.0, 2**70, 0.0)
    else:
        first.hedger.pilot.statistics.of(replace(key, **{field: odd}))
    first.hedger.close()
    second = Life(tmp_path / "state.json")
    assert "cannot be used" not in caplog.text
    assert "cannot be kept" not in caplog.text
    if not isinstance(odd, set):
        assert key in [each for each, _ in second.hedger.pilot.statistics]
        assert second.hedger.pilot.statistics.of(key).requests == known.requests


ODD_ENTRIES: list[Any] = [None, "nan", "inf", [], {}, "x", [[]], [["a", "b"]], [[1.0, None]], [[None, 1.0]]]


@pytest.mark.parametrize("odd", ODD_ENTRIES, ids=range(len(ODD_ENTRIES)))
async def test_an_odd_entry_in_the_file_makes_its_own_key_cold_and_no_other(tmp_path: Path, odd: Any) -> None:
    first = Life(tmp_path / "state.json")
    await first.warm()
    first.hedger.close()
    memory = orjson.loads((tmp_path / "state.json").read_bytes())
    (good,) = memory["keys"]
    for name in (*good, "size"):
        entry = {**good, "key": {**good["key"], "model": f"odd {name}"}}
        if name == "size":
            entry["key"]["size"] = odd
        else:
            entry[name] = odd
        memory["keys"].insert(0, entry)
    (tmp_path / "state.json").write_text(json.dumps(memory))
    second = Life(tmp_path / "state.json")
    assert second.hedger.stats()["keys"][-1] == first.hedger.stats()["keys"][-1]  # type: ignore[index]
    assert await second.call(answers("slow", 30), answers("rescued", 0.5), seconds=8) == completion("rescued")


async def test_a_place_that_cannot_be_written_is_reported_once_and_fails_no_call(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    life = Life(tmp_path / "nowhere" / "state.json")
    for _ in range(3):
        life.clock.advance(61)
        assert await life.call(answers("a", 0.5), seconds=0.6) == completion("a")
    life.hedger.close()
    assert caplog.text.count("cannot be kept") == 1
