"""One course of a provider's behaviour, as data: drawn by Hypothesis, kept in scenarios/*.json, played by play.py.

Each axis is a field with its values in AXES; what a value means on the wire is said in wire.py.
"""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

__all__ = ["AXES", "CORPUS", "DIALECTS", "MODES", "Answer", "Scenario", "corpus", "counted", "scenarios"]

CORPUS = Path(__file__).parent / "scenarios"

# The first value of each axis is what a healthy provider does; a draw takes it half of the time, so that one odd thing at a
# time is as likely as several.
AXES: Mapping[str, tuple[Any, ...]] = {
    "status": (200, 201, 202, 203, 204, 206, 302, 400, 401, 404, 408, 409, 429, 500, 502, 503, 504, 529),
    "label": ("right", "missing", "text/plain", "application/json", "application/x-ndjson", "text/html"),
    "framing": ("chunked", "length", "both", "duplicate", "until_close", "lf_head", "folded", "extensions", "trailers"),
    "coding": ("identity", "gzip", "deflate", "br", "zstd"),
    "lines": ("lf", "crlf", "cr", "mixed", "bom", "tight", "comments", "ids", "several", "no_final"),
    "body": ("answer", "empty", "html", "text", "other_json", "error_object", "error_frame", "odd_values", "odd_event"),
    "finish": ("usual", "length", "filter", "unknown", "abort", "none"),
    "end": ("mark", "no_mark", "late_usage"),
    "after": ("clean", "fin", "rst", "open", "more_bytes", "more_events", "more_error"),
    "cut": ("whole", "head", "size", "event", "crlf", "between", "before_mark"),
    "time": ("at_once", "late_head", "late_content", "late_middle", "stepwise", "pings", "silence", "silent_head"),
    "retry_after": ("none", "now", "date"),
}
DIALECTS = ("chat", "responses", "messages", "gemini")
MODES = ("cold", "warm", "observe", "race", "upstream_stream")
LEAVES = ("reads_all", "leaves_middle", "raw", "reads_slowly")


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What the provider does with one request that arrives: a value of each axis."""

    status: int = 200
    label: str = "right"
    framing: str = "chunked"
    coding: str = "identity"
    lines: str = "lf"
    body: str = "answer"
    finish: str = "usual"
    end: str = "mark"
    after: str = "clean"
    cut: str = "whole"
    time: str = "at_once"
    retry_after: str = "none"


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """answers: to the requests in the order in which they arrive, the last one to all that follow. max_retries: of the SDK.
    report: the public bug report or the fault that it comes from. by_try: the answers go by the SDK's tries, not by arrival:
    what an outage looks like that is over when the SDK comes back. saved: every way of ours must get the usual answer,
    whatever bare gets.
    """

    dialect: str = "chat"
    mode: str = "cold"
    stream: bool = True
    max_retries: int = 0
    client: str = "reads_all"
    answers: tuple[Answer, ...] = (Answer(),)
    by_try: bool = False
    saved: bool = False
    report: str = field(default="", compare=False)

    def as_json(self) -> dict[str, Any]:
        """Only what is not usual."""
        return {
            **{name: value for name, value in asdict(self).items() if name != "answers" and value != DEFAULTS[name]},
            "answers": [_unusual(answer) for answer in self.answers],
        }

    @classmethod
    def of_json(cls, entry: Mapping[str, Any]) -> "Scenario":
        answers = tuple(Answer(**answer) for answer in entry.get("answers", [{}]))
        return cls(**{**entry, "answers": answers})


DEFAULTS: Mapping[str, Any] = {each.name: each.default for each in fields(Scenario)}


def _unusual(answer: Answer) -> dict[str, Any]:
    return {axis: value for axis, value in asdict(answer).items() if value != AXES[axis][0]}


def corpus() -> list[tuple[str, Scenario]]:
    """Every scenario that was ever found, by its name."""
    found: list[tuple[str, Scenario]] = []
    for path in sorted(CORPUS.glob("*.json")):
        for number, entry in enumerate(json.loads(path.read_text())):
            found.append((f"{path.stem}-{number}", Scenario.of_json(entry)))
    return found


def counted(played: list[Scenario]) -> dict[str, Counter[Any]]:
    """How often each value of each axis occurs."""
    counts: dict[str, Counter[Any]] = {axis: Counter(dict.fromkeys(values, 0)) for axis, values in AXES.items()}
    for name, values in (("dialect", DIALECTS), ("mode", MODES), ("client", LEAVES)):
        counts[name] = Counter(dict.fromkeys(values, 0))
    counts["stream"], counts["max_retries"] = Counter({True: 0, False: 0}), Counter(dict.fromkeys((0, 1, 2), 0))
    for scenario in played:
        for name in ("dialect", "mode", "client", "stream", "max_retries"):
            counts[name][getattr(scenario, name)] += 1
        for answer in scenario.answers:
            for axis in AXES:
                counts[axis][getattr(answer, axis)] += 1
    return counts


def _axis(name: str) -> st.SearchStrategy[Any]:
    usual, *odd = AXES[name]
    # What waits for a time-out of the SDK's costs a second: drawn seldom.
    rare = [value for value in odd if value not in ("silence", "silent_head", "open")]
    return st.one_of(st.just(usual), st.just(usual), st.just(usual), st.sampled_from(rare), st.sampled_from(odd))


def scenarios() -> st.SearchStrategy[Scenario]:
    """Any course."""
    answers = st.builds(Answer, **{axis: _axis(axis) for axis in AXES})
    return st.builds(
        Scenario,
        dialect=st.sampled_from(DIALECTS),
        mode=st.sampled_from(MODES),
        stream=st.booleans(),
        max_retries=st.sampled_from((0, 0, 1, 2)),
        client=st.sampled_from((LEAVES[0], LEAVES[0], LEAVES[0], *LEAVES)),
        answers=st.lists(answers, min_size=1, max_size=3).map(tuple),
    )
