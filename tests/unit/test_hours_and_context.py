"""Hours on the wall, and what callers say of their calls."""

import asyncio
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

import hedgerow
from hedgerow.call_context import current_context
from hedgerow.errors import SettingError
from hedgerow.hours import Hours, parse_hours, parse_zone

BERLIN = ZoneInfo("Europe/Berlin")


def hours(*spans: str, zone: str = "UTC") -> Hours:
    return Hours(parse_hours(list(spans)), parse_zone(zone))


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"2026-06-15T{text}+00:00")


@pytest.mark.parametrize(
    ("spans", "inside", "outside"),
    [
        (["22:00-24:00"], ["22:00", "23:59"], ["21:59", "00:00"]),
        (["22:00-06:00"], ["22:00", "00:00", "05:59"], ["06:00", "21:59"]),
        (["06:00-08:00", "22:00-24:00"], ["07:00", "23:00"], ["08:00", "12:00"]),
        (["00:00-24:00"], ["00:00", "23:59"], []),
        ([], ["00:00", "12:00"], []),
    ],
)
def test_the_end_is_not_in_a_span_and_a_span_may_cross_midnight(
    spans: list[str], inside: list[str], outside: list[str]
) -> None:
    assert all(at(text) in hours(*spans) for text in inside)
    assert not any(at(text) in hours(*spans) for text in outside)


def test_the_clock_on_the_wall_counts_through_daylight_saving() -> None:
    evening = hours("20:00-22:00", zone="Europe/Berlin")
    assert datetime(2026, 1, 15, 19, 30, tzinfo=UTC) in evening  # 20:30 in winter
    assert datetime(2026, 7, 15, 19, 30, tzinfo=UTC) in evening  # 21:30 in summer
    assert datetime(2026, 7, 15, 20, 30, tzinfo=UTC) not in evening
    night = hours("02:00-03:00", zone="Europe/Berlin")
    back = datetime(2026, 10, 25, 0, 30, tzinfo=UTC)  # 02:30, and again an hour later
    assert [back + timedelta(hours=h) in night for h in range(3)] == [True, True, False]
    spring = datetime(2026, 3, 29, 0, 30, tzinfo=UTC)  # the clock jumps from 01:59 to 03:00
    assert not any(spring + timedelta(minutes=m) in night for m in range(0, 180, 10))


@pytest.mark.parametrize(
    "value", ["22:00-24:00", ["25:00-26:00"], ["10:00-10:00"], ["24:00-01:00"], ["9-17"], ["10:60-11:00"], [7], 7]
)
def test_what_is_no_span_is_refused(value: object) -> None:
    with pytest.raises(SettingError, match="hours"):
        parse_hours(value)


def test_an_unknown_zone_is_refused() -> None:
    with pytest.raises(SettingError, match="Mars"):
        parse_zone("Mars/Olympus")


async def test_what_is_said_holds_inside_and_is_added_to() -> None:
    async def seen() -> tuple[str | None, float | None, bool]:
        said = current_context()
        return said.segment, said.deadline_s, said.hedge

    with hedgerow.context(segment="pro", deadline_s=3.8):
        with hedgerow.context(hedge=False):
            assert await asyncio.create_task(seen()) == ("pro", 3.8, False)
        assert await seen() == ("pro", 3.8, True)
    assert await seen() == (None, None, True)


def test_a_deadline_in_the_past_is_refused() -> None:
    with pytest.raises(SettingError, match="deadline_s = 0"), hedgerow.context(deadline_s=0):
        pass
