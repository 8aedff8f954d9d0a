"""Can the differential test fail? Each kind of fault that it was written for is put back, and its scenarios must then be
worse."""

import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from tests.never_worse.scenario import Answer, Scenario
from tests.never_worse.test_never_worse import play_all, stage

from hedgerow.dialects import event_reader, lenient_json
from hedgerow.dialects.openai_chat_assembly import AssemblingChatReader
from hedgerow.dialects.sse import EventBoundary
from hedgerow.race import machine
from hedgerow.race.attempt import Attempt
from hedgerow.race.driver import Race
from hedgerow.transports import httpx2_transport, httpx2_upstream

__all__ = ["stage"]

HELD_BACK_S = 0.5  # to find out that a piece is held back; only ever waited for with the fault

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"),
]


@dataclass(frozen=True)
class Fault:
    """old, new: a piece of the source of `owner`'s function `name`, and what stands there with the fault; or `value`, in place of
    all of it. also: a second place, likewise."""

    report: str
    owner: Any
    name: str
    old: str = ""
    new: str = ""
    value: Any = None
    play: tuple[Scenario, ...] = ()
    also: "Fault | None" = None


def _scenario(*answers: Answer, **more: Any) -> tuple[Scenario, ...]:
    return (Scenario(**{"stream": False, **more}, answers=answers or (Answer(),)),)


CUT = Answer(end="no_mark", finish="none")
FAULTS = (
    Fault(
        "cut_buffered",
        Attempt,
        "_rewrite",
        "return CUT",
        "return None",
        play=_scenario(CUT, CUT, mode="upstream_stream"),
    ),
    Fault(
        "odd_stream_buffered",
        AssemblingChatReader,
        "complete",
        value=property(lambda _: True),
        play=_scenario(Answer(body="odd_event"), mode="upstream_stream"),
    ),
    Fault(
        "end_mark_open",
        Attempt,
        "_read_answer",
        "if facts.end_mark:\n                break",
        "if False:\n                break",
        play=_scenario(Answer(after="open"), mode="upstream_stream", saved=True),
        also=Fault("", Attempt, "next_chunk", "and self.reader.facts.ended:", "and False:"),
    ),
    Fault(
        "stall_buffered",
        Race,
        "_on_begun",
        value=lambda *_: None,
        play=_scenario(Answer(time="silence"), Answer(), mode="upstream_stream", saved=True),
    ),
    Fault(
        "status_201",
        Attempt,
        "run",
        "not 200 <= self.response.status < 300",
        "self.response.status != 200",
        play=(
            *_scenario(Answer(status=201, time="stepwise"), stream=True),
            *_scenario(Answer(status=202), mode="upstream_stream"),
        ),
    ),
    Fault(
        "finish_abort",
        event_reader,
        "failure_of_finish",
        value=lambda _: None,
        play=_scenario(Answer(finish="abort"), Answer(), saved=True),
    ),
    Fault(
        "cr_line_ends",
        EventBoundary,
        "_last_end",
        value=lambda _, data: data.rfind(b"\n\n") + 2 if b"\n\n" in data else 0,
        play=_scenario(Answer(lines="cr", time="stepwise"), stream=True),
        also=Fault("", EventBoundary, "whole", 'b"\\r\\n\\r\\n", b"\\r\\r"', 'b"\\r\\n\\r\\n"'),
    ),
    Fault(
        "crlf_cut",
        EventBoundary,
        "whole",
        value=lambda _, data: data,
        play=_scenario(Answer(lines="crlf", cut="event", after="fin"), stream=True, dialect="messages"),
    ),
    Fault(
        "logprob_infinity",
        lenient_json,
        "_Constant",
        value=float,
        play=_scenario(Answer(body="odd_values"), mode="upstream_stream"),
    ),
    Fault(
        "read_timeout",
        httpx2_upstream.Httpx2Call,
        "failure_of",
        "FailureKind.CALLER_LIMIT",
        "FailureKind.TIMEOUT",
        play=_scenario(Answer(time="silent_head")),
    ),
    Fault(
        "retry_blip",
        machine,
        "_at_home",
        "AtHome.NEVER if _repeated_above(state) and not state.live else AtHome.LATER",
        "AtHome.NOW",
        play=_scenario(Answer(status=500), Answer(), max_retries=2, by_try=True),
        also=Fault(
            "",
            httpx2_transport,
            "_headers",
            "    return headers\n",
            "    return [*headers, (b'x-should-retry', b'false')] if len(delivery.race.attempts) > 1 else headers\n",
        ),
    ),
)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.report)
async def test_a_fault_that_is_put_back_is_found(stage: Any, fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    named = [(fault.report, scenario) for scenario in fault.play]
    told, _ = await play_all(stage, named)
    assert not told, "without the fault: " + "\n".join(told)
    for each in filter(None, (fault, fault.also)):
        monkeypatch.setattr(each.owner, each.name, each.value or _changed(each))
    stage.patience_s = HELD_BACK_S
    told, _ = await play_all(stage, named)
    assert told


def _changed(fault: Fault) -> Callable[..., Any]:
    """The function with the fault in it. Fails where its source no longer says what the fault replaces."""
    function = inspect.unwrap(getattr(fault.owner, fault.name))
    source = textwrap.dedent(inspect.getsource(function))
    old = (
        fault.old if fault.old in source else textwrap.dedent(fault.old).replace("\n                ", "\n            ")
    )
    assert source.count(old) == 1, f"{fault.name} no longer says: {fault.old}"
    space: dict[str, Any] = {}
    exec(
        compile(source.replace(old, fault.new), f"<{fault.name} with {fault.report}>", "exec"),
        function.__globals__,
        space,
    )
    return space[fault.name]
