"""Writes what was measured of gateways as a page of the reference."""

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

__all__ = ["Figures", "page"]

HEAD = """<!-- written by benchmarks/gateway/measure.py -->
# Figures of the gateway

One core for the gateway, the other for load generator and upstream; loopback, HTTP/1.1 without TLS, {rounds} interleaved
rounds of {seconds} s for each load, medians (least to most). {machine}. Everything of `hedgerow serve` is on: client keys with
limits, routes by path and model, statistics, the default policy, prices, state, events into SQLite. The others run as they are
installed, each set up for this one model: TensorZero without its database, Portkey and LiteLLM without stores or keys; nginx only
relays.

* **requests/s**: 32 connections, a chat completion of 1 KB that is there at once.
* **frames/s**: 16 connections, streams of 500 chunks of 150 bytes as fast as they go.
* **paced**: 64 connections, streams of 50 such chunks, one every 20 ms: processor time for each of those 3,200 frames/s.
* **added**: half of the requests are slowed by less than this, against the same round without a gateway: 100 requests/s, open
  loop; 20/s where marked \\*, since it could not answer 100.

| | requests/s | CPU µs/request | frames/s | CPU µs/frame, paced | added p50, ms | added p99, ms | MiB |
|---|---|---|---|---|---|---|---|
"""
CAVEATS = """
Read ratios, not digits: absolute figures move by a quarter from run to run on a shared machine of two cores, and load generator
and upstream share the other core, so that the row without a gateway, and nginx, are held back by them. A Python that was built
without profile-guided optimisation (pyenv's, by default) is a sixth slower than Debian's or that of the container images. A
provider takes hundreds of milliseconds. `python benchmarks/gateway/measure.py` makes this page anew.
"""
BARS = (("LiteLLM", 20.0), ("Portkey", 4.0))
FRAMES_BAR, ADDED_BAR_MS = 60_000, 1.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """One contender. Lists have one figure for each round; frames_per_s: None = it cannot stream here."""

    name: str
    requests_per_s: Sequence[float]
    cpu_us_per_request: float
    frames_per_s: Sequence[float] | None
    cpu_us_per_paced_frame: float
    added_us: Sequence[float]
    added_p99_us: Sequence[float]
    rate: int
    errors: float
    memory_mib: float | None


def page(rows: Sequence[Figures], missing: Mapping[str, str], rounds: int, seconds: int) -> str:
    """The whole page."""
    machine = f"{platform.system()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    text = HEAD.format(rounds=rounds, seconds=seconds, machine=machine)
    text += "\n".join(map(_row, rows)) + "\n"
    if missing:
        text += "\n" + "\n".join(f"Missing: {name} ({why})." for name, why in missing.items()) + "\n"
    failed = [f"{each.name} {each.errors:.0f}" for each in rows if each.errors]
    if failed:
        text += f"\nRequests that failed, all rounds: {', '.join(failed)}.\n"
    return text + _bars({each.name: each for each in rows}) + CAVEATS


def _row(of: Figures) -> str:
    alone = of.memory_mib is None
    added, added_p99 = (f"{median(each) / 1000:.2f}" for each in (of.added_us, of.added_p99_us))
    mark = "" if of.rate == 100 else "\\*"
    cells = [
        of.name,
        _spread(of.requests_per_s),
        "" if alone else f"{of.cpu_us_per_request:,.0f}",
        "fails" if of.frames_per_s is None else _spread(of.frames_per_s),
        "" if alone or of.frames_per_s is None else f"{of.cpu_us_per_paced_frame:.0f}",
        "" if alone else added + mark,
        "" if alone else added_p99 + mark,
        "" if of.memory_mib is None else f"{of.memory_mib:.0f}",
    ]
    return f"| {' | '.join(cells)} |"


def _spread(figures: Sequence[float]) -> str:
    return f"{median(figures):,.0f} ({min(figures):,.0f}–{max(figures):,.0f})"


def _bars(rows: Mapping[str, Figures]) -> str:
    """The bars, with what was reached of each."""
    ours = rows.get("hedgerow")
    if ours is None:
        return ""
    lines = ["", "| bar | | |", "|---|---|---|"]
    for name, least in BARS:
        if name in rows:
            pairs = zip(ours.requests_per_s, rows[name].requests_per_s, strict=True)
            ratio = median(mine / max(theirs, 0.1) for mine, theirs in pairs)
            lines.append(f"| requests/s against {name} | × {ratio:.1f} | ≥ × {least:.0f}: {_met(ratio >= least)} |")
    frames = 0.0 if ours.frames_per_s is None else median(ours.frames_per_s)
    added_ms = median(ours.added_us) / 1000
    lines.append(f"| frames/s on one core | {frames:,.0f} | ≥ {FRAMES_BAR:,}: {_met(frames >= FRAMES_BAR)} |")
    lines.append(f"| added p50 at 100/s, ms | {added_ms:.2f} | ≤ {ADDED_BAR_MS}: {_met(added_ms <= ADDED_BAR_MS)} |")
    return "\n".join(lines) + "\n"


def _met(met: bool) -> str:
    return "met" if met else "**missed**"
