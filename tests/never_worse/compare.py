"""Is what a caller got of ours as good as what the bare client's caller got? The order: content beats an exception, an
exception of the same class equals, a later failure is worse, and so is an attempt without need."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tests.never_worse.apis import WORDS
from tests.never_worse.differences import DIFFERENCES, Difference
from tests.never_worse.play import BARE, Outcome, Stage
from tests.never_worse.scenario import Scenario

__all__ = ["Verdict", "judged"]

BROKEN_OFF = {"abort", "error"}
MOST_BACKUPS = 2
OF_THE_CONNECTION = (
    "APIConnectionError",
    "APITimeoutError",
    "RemoteProtocolError",
    "ReadError",
    "ReadTimeout",
    "ConnectError",
)


@dataclass(frozen=True)
class Verdict:
    """worse: in what respects ours is worse, each a sentence; difference: the meant one that this is."""

    worse: list[str]
    difference: Difference | None = None

    @property
    def unexplained(self) -> list[str]:
        return [] if self.difference is not None else self.worse


async def judged(stage: Stage, scenario: Scenario, way: str, bare: Outcome, ours: Outcome) -> Verdict:
    """Compare. Where ours has come to a later answer of the provider, by a retry that the bare client could not make or a backup
    that was faster, it may be what the bare client's caller gets from that one."""
    told = [*_answer(scenario, way, bare, ours)]
    for begun in range(1, len(scenario.answers)):
        if told and ours.attempts > begun and (ours.whole or not bare.whole or _is_junk(bare)):
            later = replace(scenario, answers=scenario.answers[begun:])
            told = [*_answer(later, way, await stage.play(later, BARE), ours)] and told
    told += _course(scenario, way, bare, ours)
    if not told:
        return Verdict([])
    return Verdict(told, next((each for each in DIFFERENCES if each.holds(scenario, way, bare, ours)), None))


def _answer(scenario: Scenario, way: str, bare: Outcome, ours: Outcome) -> Iterator[str]:
    if scenario.saved and not (
        ours.whole and "".join(WORDS) in _said(ours) and not BROKEN_OFF & set(_finishes(ours.content))
    ):
        yield f"not saved: {ours.error} {ours.message} {_short(ours.content)}"
        return
    if scenario.client == "leaves_middle":
        if ours.error is not None and bare.error is None:
            yield f"a caller who left got {ours.error}: {ours.message}"
        return
    if bare.whole and ours.whole:
        other = ours.attempts > 1 and _is_an_answer(scenario, ours)  # that of another attempt
        if not _equal(bare.content, ours.content) and not other and not _is_junk(bare):
            yield f"other content: bare {_short(bare.content)}, ours {_short(ours.content)}"
    elif bare.whole:
        if not (_is_junk(bare) and not _is_python(ours)):
            yield f"bare answers {_short(bare.content)}, ours raises {ours.error}: {ours.message}"
    elif ours.whole:
        if not _is_an_answer(scenario, ours) and not _may_end(scenario, bare, ours):
            yield f"bare raises {bare.error}, ours hands out {_short(ours.content)}"
    elif not _same_error(way, bare, ours):
        yield f"bare raises {bare.error} ({bare.status}) {bare.message}, ours {ours.error} ({ours.status}) {ours.message}"


def _course(scenario: Scenario, way: str, bare: Outcome, ours: Outcome) -> Iterator[str]:
    tries = bare.attempts if bare.whole and not _is_junk(bare) else 1 + scenario.max_retries
    if ours.attempts > max(bare.attempts, tries) + MOST_BACKUPS:
        yield f"{ours.attempts} attempts, bare {bare.attempts}"
    if ours.left_open:
        yield f"{ours.left_open} calls go on at the provider"
    if scenario.mode == "observe" and ours.attempts > max(bare.attempts, tries):
        yield f"{ours.attempts} attempts though it only observes, bare {bare.attempts}"
    silent = all(answer.time == "silent_head" for answer in scenario.answers) and not bare.whole and not scenario.stream
    if silent and scenario.mode == "cold" and ours.attempts > bare.attempts:
        yield f"{ours.attempts} attempts after a time-out of the caller's own, bare {bare.attempts}"
    late = [piece for piece, seen in bare.seen_by.items() if seen and ours.seen_by.get(piece) is False]
    if late and scenario.mode != "race":
        yield f"pieces {late} were held back"
    if (
        bare.headers.get("retry-after") != ours.headers.get("retry-after")
        and bare.error == ours.error
        and way != "gateway"
    ):
        yield f"headers {ours.headers}, bare {bare.headers}"


def _equal(bare: object, ours: object) -> bool:
    return repr(bare) == repr(ours)  # NaN is no equal of itself


def _is_an_answer(scenario: Scenario, ours: Outcome) -> bool:
    """Is it one of the answers that the provider had ready, whole and valid?"""
    said = repr(ours.content)
    if scenario.stream:
        return False  # the events tell
    return any(
        answer.body in ("answer", "odd_values", "odd_event") and "".join(WORDS) in said for answer in scenario.answers
    )


def _said(ours: Outcome) -> str:
    """All the text in an answer or a stream."""
    return "".join(re.findall(r"Hedges |grow |slowly\.", repr(ours.content)))


def _finishes(content: object) -> Iterator[object]:
    """The finish reasons in an answer or a stream."""
    if isinstance(content, dict):
        for name, value in content.items():
            if name in ("finish_reason", "stop_reason", "reason"):
                yield str(getattr(value, "value", value)).lower()
            yield from _finishes(value)
    elif isinstance(content, list):
        for each in content:
            yield from _finishes(each)


def _is_junk(bare: Outcome) -> bool:
    """What the bare client hands out though it is no answer: a text, nothing at all, a stream without its end."""
    content = bare.content
    if isinstance(content, str) or content is None or content == []:
        return True
    if isinstance(content, dict):
        return not any(content.get(field) for field in ("choices", "content", "output", "candidates"))
    return False


def _is_python(ours: Outcome) -> bool:
    """Does it raise what no SDK would?"""
    return ours.error == "never over" or (ours.error or "").startswith(("builtins.", "json.", "hedgerow.", "asyncio."))


def _same_error(way: str, bare: Outcome, ours: Outcome) -> bool:
    if _class(bare) == _class(ours) and (bare.status == ours.status or way == "gateway"):
        return True
    if _is_python(bare):
        return True
    name = (bare.error or "").rpartition(".")[2]
    if way == "gateway" and name in OF_THE_CONNECTION:
        return not _is_python(ours)
    ours_name = (ours.error or "").rpartition(".")[2]
    # An answer of the provider's that the SDK refuses says more than a connection that broke.
    return name in OF_THE_CONNECTION and (ours_name in OF_THE_CONNECTION or ours_name == "APIError")


def _class(outcome: Outcome) -> str | None:
    """What was raised. Over the classic httpx it is that package's own class."""
    return (outcome.error or "").replace("httpx2.", "httpx.") or None


def _may_end(scenario: Scenario, bare: Outcome, ours: Outcome) -> bool:
    """A stream that had said its end when its connection broke: ours has all of it."""
    del scenario
    return isinstance(bare.content, list) and isinstance(ours.content, list) and len(ours.content) >= len(bare.content)


def _short(content: object) -> str:
    said = repr(content)
    return said if len(said) < 160 else f"{said[:100]}…{said[-50:]}"
