"""Pictures as inline SVG: they take the page's colours, print as sharp as text and need no script. A table goes with each."""

from collections.abc import Sequence
from dataclasses import dataclass

from hedgerow.cli.page.html import Html, element, joined
from hedgerow.cli.page.scales import Scale, linear, logarithmic

__all__ = ["Bar", "Dot", "Span", "columns", "frontier_picture", "spans"]

WIDTH, ROW, RIGHT = 720.0, 44.0, 24.0
HEIGHT, LEFT, BOTTOM, TOP = 320.0, 52.0, 44.0, 30.0
STEP = 21.0  # between the middles of two marks


@dataclass(frozen=True, slots=True)
class Span:
    """A key's median and p99 with its interval, seconds."""

    label: str
    middle: float
    far: float
    interval: tuple[float, float] | None
    marked: bool


@dataclass(frozen=True, slots=True)
class Bar:
    """One hour: two values, seconds."""

    label: str
    middle: float
    far: float
    marked: bool


@dataclass(frozen=True, slots=True)
class Dot:
    """A policy: extra cost at least and at most, p99. number: what it is called in the picture."""

    number: int
    cost_low: float
    cost_high: float
    p99_s: float
    best: bool
    chosen: bool


def spans(rows: Sequence[Span], title: str) -> Html:
    """A line from median to p99 for each key, on a logarithmic axis of seconds."""
    values = [each for row in rows for each in (row.middle, row.far, *(row.interval or ()))]
    scale = logarithmic(values, RIGHT, WIDTH - RIGHT)
    height = TOP + ROW * len(rows) + BOTTOM
    lines = [
        joined(
            element("text", row.label, x=2, y=y - 12, class_="label"),
            element("line", x1=scale.at(row.middle), x2=scale.at(row.far), y1=y, y2=y, class_="reach"),
            _whisker(scale, row.interval, y),
            element("circle", cx=scale.at(row.middle), cy=y, r=5, class_="middle"),
            element("circle", cx=scale.at(row.far), cy=y, r=6, class_="far marked" if row.marked else "far"),
        )
        for row, y in ((row, TOP + ROW * (number + 0.5)) for number, row in enumerate(rows))
    ]
    return _picture(title, height, _across(scale, height - BOTTOM, "seconds"), *lines)


def columns(bars: Sequence[Bar], title: str) -> Html:
    """Two bars for each hour, p99 behind and median before."""
    down = linear(max(bar.far for bar in bars), HEIGHT - BOTTOM, TOP)
    step = (WIDTH - LEFT - RIGHT) / len(bars)
    drawn = [
        joined(
            _column(x, bar.far, down, step * 0.72, "far marked" if bar.marked else "far"),
            _column(x, bar.middle, down, step * 0.36, "middle"),
            element("text", bar.label, x=x, y=HEIGHT - BOTTOM + 18, text_anchor="middle", class_="tick")
            if number % max(1, len(bars) // 12) == 0
            else None,
        )
        for number, (bar, x) in enumerate((bar, LEFT + step * (place + 0.5)) for place, bar in enumerate(bars))
    ]
    return _picture(title, HEIGHT, _up(down, "seconds"), *drawn)


def frontier_picture(dots: Sequence[Dot], title: str) -> Html:
    """Policies by extra cost (from least to most, a bar) and p99; the line joins those that no other beats in both."""
    costs = [cost for dot in dots for cost in (dot.cost_low, dot.cost_high) if cost > 0] or [0.01]
    across = logarithmic(costs, LEFT + 70, WIDTH - RIGHT)
    slow = [dot.p99_s for dot in dots]
    wide = max(slow) > 5 * min(slow) > 0
    down = logarithmic(slow, HEIGHT - BOTTOM, TOP) if wide else linear(max(slow), HEIGHT - BOTTOM, TOP)
    free = LEFT + 16  # what costs nothing has no place on a logarithmic axis

    def x_of(cost: float) -> float:
        return across.at(cost) if cost > 0 else free

    best = sorted((dot for dot in dots if dot.best), key=lambda dot: dot.cost_high)
    points = [f"{x_of(dot.cost_high):.1f},{down.at(dot.p99_s):.1f}" for dot in best]
    ordered = sorted(dots, key=lambda dot: not dot.chosen)
    places = _apart([(x_of(dot.cost_high), down.at(dot.p99_s)) for dot in ordered])
    ranges = [
        element("line", x1=x_of(dot.cost_low), x2=x_of(dot.cost_high), y1=y, y2=y, class_="range")
        for dot, y in ((dot, down.at(dot.p99_s)) for dot in dots)
    ]
    ticks = [
        element(
            "text", f"{100 * mark:g} %", x=across.at(mark), y=HEIGHT - BOTTOM + 18, text_anchor="middle", class_="tick"
        )
        for mark in across.marks
    ]
    nothing = element("text", "0", x=free, y=HEIGHT - BOTTOM + 18, text_anchor="middle", class_="tick")
    name = element("text", "extra cost", x=WIDTH - RIGHT, y=HEIGHT - 6, text_anchor="end", class_="axis")
    line = element("path", d=f"M{'L'.join(points)}", class_="best") if points else None
    marks = [
        _numbered(dot, place, (x_of(dot.cost_high), down.at(dot.p99_s)))
        for dot, place in zip(ordered, places, strict=True)
    ]
    return _picture(title, HEIGHT, _up(down, "p99, seconds"), nothing, *ticks, name, *ranges, line, *reversed(marks))


def _apart(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The same points, moved up or down where their marks would cover each other."""
    taken = list[tuple[float, float]]()
    for x, y in points:
        steps = (step * side for step in range(20) for side in (-1, 1))
        free = (y + STEP * step for step in steps if TOP <= y + STEP * step <= HEIGHT - BOTTOM)
        taken.append(
            (x, next((at for at in free if all(abs(x - a) > STEP or abs(at - b) >= STEP for a, b in taken)), y))
        )
    return taken


def _numbered(dot: Dot, place: tuple[float, float], true: tuple[float, float]) -> Html:
    """The mark of a policy, with a thread to where it belongs if it had to move."""
    x, y = place
    return joined(
        None if place == true else element("line", x1=x, x2=true[0], y1=y, y2=true[1], class_="thread"),
        element("circle", cx=x, cy=y, r=10, class_=_dot_class(dot)),
        element("text", str(dot.number), x=x, y=y + 4, text_anchor="middle", class_="number"),
    )


def _dot_class(dot: Dot) -> str:
    return "dot chosen" if dot.chosen else "dot best" if dot.best else "dot"


def _picture(title: str, height: float, *parts: Html | None) -> Html:
    return element(
        "figure",
        element(
            "svg", element("title", title), *parts, viewBox=f"0 0 {WIDTH:g} {height:g}", role="img", aria_label=title
        ),
        element("figcaption", title),
    )


def _across(scale: Scale, bottom: float, name: str) -> Html:
    return joined(
        *(
            joined(
                element("line", x1=scale.at(mark), x2=scale.at(mark), y1=TOP, y2=bottom, class_="grid"),
                element("text", f"{mark:g}", x=scale.at(mark), y=bottom + 18, text_anchor="middle", class_="tick"),
            )
            for mark in scale.marks
        ),
        element("text", name, x=WIDTH - RIGHT, y=bottom + 36, text_anchor="end", class_="axis"),
    )


def _up(scale: Scale, name: str) -> Html:
    return joined(
        *(
            joined(
                element("line", x1=LEFT, x2=WIDTH - RIGHT, y1=scale.at(mark), y2=scale.at(mark), class_="grid"),
                element("text", f"{mark:g}", x=LEFT - 8, y=scale.at(mark) + 4, text_anchor="end", class_="tick"),
            )
            for mark in scale.marks
        ),
        element("text", name, x=LEFT - 40, y=14, class_="axis"),
    )


def _whisker(scale: Scale, interval: tuple[float, float] | None, y: float) -> Html | None:
    if interval is None:
        return None
    low, high = scale.at(interval[0]), scale.at(interval[1])
    return element(
        "path", d=f"M{low:.1f},{y - 5:.1f}v10M{low:.1f},{y:.1f}H{high:.1f}M{high:.1f},{y - 5:.1f}v10", class_="interval"
    )


def _column(x: float, value: float, scale: Scale, width: float, kind: str) -> Html:
    top = scale.at(value)
    return element("rect", x=x - width / 2, y=top, width=width, height=max(0.0, scale.start - top), class_=kind)
