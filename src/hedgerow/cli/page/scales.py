"""Where values stand on an axis, and which of them get a mark."""

from dataclasses import dataclass
from math import ceil, floor, log10

__all__ = ["Scale", "linear", "logarithmic"]

STEPS = (1.0, 2.0, 5.0)


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps low..high to start..end, evenly or by the logarithm; marks: values to name."""

    low: float
    high: float
    start: float
    end: float
    marks: tuple[float, ...]
    by_log: bool = False

    def at(self, value: float) -> float:
        """The place of a value; values outside stand at the edge."""
        value = min(max(value, self.low), self.high)
        share = (
            log10(value / self.low) / log10(self.high / self.low)
            if self.by_log
            else (value - self.low) / (self.high - self.low)
        )
        return self.start + share * (self.end - self.start)


def logarithmic(values: list[float], start: float, end: float) -> Scale:
    """Covers all values > 0, from mark to mark."""
    good = [value for value in values if value > 0] or [1.0]
    marks = _log_marks(min(good), max(good))
    return Scale(marks[0], marks[-1], start, end, marks, by_log=True)


def linear(most: float, start: float, end: float) -> Scale:
    """From 0 to at least `most`."""
    step = _step(max(most, 1e-9) / 4)
    high = step * max(1, ceil(most / step - 1e-9))
    return Scale(0.0, high, start, end, tuple(step * number for number in range(round(high / step) + 1)))


def _log_marks(low: float, high: float) -> tuple[float, ...]:
    first, last = floor(log10(low)), ceil(log10(high))
    steps = STEPS if last - first <= 2 else (1.0,)
    every = [step * 10.0**power for power in range(first, last + 1) for step in steps]
    below = max((mark for mark in every if mark <= low * 1.0001), default=every[0])
    above = min((mark for mark in every if mark >= high * 0.9999), default=every[-1])
    inside = tuple(mark for mark in every if below <= mark <= above)
    return inside if len(inside) > 1 else (below, below * 10)


def _step(size: float) -> float:
    power = 10.0 ** floor(log10(size))
    return next(step * power for step in (*STEPS, 10.0) if step * power >= size * 0.9999)
