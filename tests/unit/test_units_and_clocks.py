"""How durations are written and printed, and the clocks."""

import asyncio

import pytest

from hedgerow.clock import ManualClock, ScaledClock, SystemClock
from hedgerow.errors import SettingError
from hedgerow.units import Delay, Window, format_seconds, format_share, parse_delay, parse_seconds, parse_window


@pytest.mark.parametrize(
    ("text", "seconds"), [("200ms", 0.2), ("2s", 2.0), (" 1.5 h ", 5400.0), (0.25, 0.25), (3, 3.0), ("7d", 604_800.0)]
)
def test_durations_are_read(text: object, seconds: float) -> None:
    assert parse_seconds(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "ms", "-1s", -1, float("inf"), float("nan"), None, [], "1 fortnight"])
def test_what_is_no_duration_is_refused(text: object) -> None:
    with pytest.raises(SettingError):
        parse_seconds(text)


def test_delays_and_windows_are_read() -> None:
    assert parse_delay("p95+200ms") == Delay(quantile=0.95, offset_s=0.2)
    assert parse_delay("p99.9") == Delay(quantile=pytest.approx(0.999))
    assert parse_delay("200ms") == Delay(offset_s=0.2)
    assert parse_window("7d") == Window(requests=100_000, seconds=604_800.0)
    assert parse_window(500) == Window(requests=500)


def test_people_read_milliseconds_and_percent() -> None:
    assert [format_seconds(s) for s in (0.004, 0.35, 12.34, None)] == ["4 ms", "0.35 s", "12.3 s", "–"]
    assert format_share(0.0512) == "5.1 %"


def test_a_manual_clock_fires_in_order_of_time_and_not_what_was_called_off() -> None:
    clock, seen = ManualClock(), []
    clock.call_later(2.0, lambda: seen.append(("b", clock.now())))
    clock.call_later(1.0, lambda: seen.append(("a", clock.now())))
    clock.call_later(1.5, lambda: seen.append(("never", clock.now()))).cancel()
    clock.advance(1.0)
    assert seen == [("a", 1.0)]
    clock.advance(5.0)
    assert seen == [("a", 1.0), ("b", 2.0)]
    assert clock.armed == 0
    assert clock.now() == 6.0


async def test_a_scaled_clock_counts_provider_seconds() -> None:
    scaled, real = ScaledClock(0.01), SystemClock()
    began_s, fired = real.now(), asyncio.Event()
    scaled.call_later(2.0, fired.set)
    await fired.wait()
    assert real.now() - began_s >= 0.02 - 1e-3
    assert scaled.now() >= 1.9
    with pytest.raises(SettingError, match="scale = 0"):
        ScaledClock(0)
