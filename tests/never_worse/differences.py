"""The differences from the bare client that are meant: two tables. docs/reference/differences.md is written from them.

An entry of DIFFERENCES that neither the corpus nor a draw of a soak run has used is stale, and fails that run. UNPLAYED holds
what no scenario can show: there the bare client of the scenarios is another than the one meant, or the outcome is the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.never_worse.scenario import Answer, Scenario

if TYPE_CHECKING:
    from tests.never_worse.play import Outcome

__all__ = ["DIFFERENCES", "UNPLAYED", "Difference", "Unplayed"]


@dataclass(frozen=True, kw_only=True)
class Difference:
    """when: in words; holds: scenario, way, bare and our outcome → is this the difference seen here?"""

    name: str
    when: str
    bare: str
    ours: str
    reason: str
    holds: Callable[[Scenario, str, Outcome, Outcome], bool]


@dataclass(frozen=True, kw_only=True)
class Unplayed:
    """A difference that no scenario can show, in words."""

    when: str
    bare: str
    ours: str
    reason: str


def _any(scenario: Scenario, test: Callable[[Answer], bool]) -> bool:
    return any(test(answer) for answer in scenario.answers)


def _broken_off(answer: Answer) -> bool:
    return (
        answer.cut != "whole"
        or answer.after in ("rst", "fin")
        or answer.end == "no_mark"
        or answer.finish == "none"
        or answer.time == "silence"
        or answer.body in ("error_frame", "odd_event", "empty", "text", "other_json", "html")
    )


DIFFERENCES = (
    Difference(
        name="told-of-cut",
        when="a stream that ends before its end, behind the gateway",
        bare="the SDK ends its loop as if all had come, or raises a connection error",
        ours="the SDK raises an error of the API's own",
        reason="A gateway cannot pass a cut connection on to clients behind proxies; an error frame is seen by all of them.",
        holds=lambda scenario, way, bare, ours: (
            way == "gateway"
            and scenario.stream
            and (_is_of_an_sdk(ours.error) or _ends_in_error(ours.content))
            and _any(scenario, _broken_off)
            and _is_beginning(ours.content, bare.content)
        ),
    ),
    Difference(
        name="winner-breaks-off",
        when="a stream whose backup won, and then broke off, or holds what the SDK cannot read (comments, for Google's)",
        bare="the late answer, whole",
        ours="what came of the winner, and its error",
        reason="After the commit a stream is never switched: the caller would see two beginnings.",
        holds=lambda scenario, _way, _bare, ours: (
            scenario.stream
            and scenario.mode in ("race", "warm")
            and ours.attempts > 1
            and _any(
                scenario,
                lambda answer: _broken_off(answer) or (scenario.dialect == "gemini" and answer.time == "pings"),
            )
        ),
    ),
    Difference(
        name="asked-to-stream",
        when="upstream_stream is on, and the stream breaks where the plain call would have been answered; the call that replaces "
        "it fails as well, or the budget has nothing left for it",
        bare="the answer",
        ours="an error of the SDK's own class",
        reason="That a stream will break is not known before it does. The call that replaces it is sent without streaming, but "
        "it can fail for reasons of its own. upstream_stream is off unless it is asked for.",
        holds=lambda scenario, _way, bare, ours: (
            scenario.mode == "upstream_stream"
            and not scenario.stream
            and bare.whole
            and _is_of_an_sdk(ours.error)
            and ours.attempts > 1
            and _any(scenario, _broken_off)
        ),
    ),
    Difference(
        name="whole-at-its-mark",
        when="upstream_stream is on, and a connection breaks behind the end mark of the stream",
        bare="the plain answer was not whole yet, so the SDK asks again: the next answer",
        ours="the first answer, which had said its end, with fewer attempts",
        reason="A stream says where its answer ends; a plain answer is whole only when its connection has told so.",
        holds=lambda scenario, _way, bare, ours: (
            scenario.mode == "upstream_stream"
            and not scenario.stream
            and bare.whole
            and ours.whole
            and ours.attempts < bare.attempts
            and _any(scenario, lambda answer: answer.after in ("rst", "fin"))
        ),
    ),
    Difference(
        name="uncounted-tries",
        when="an SDK that retries without saying so in a header (Google's with retry_options), behind the gateway",
        bare="one attempt for each of its tries",
        ours="each of its tries may be backed up or replaced, as the budget allows",
        reason="Nothing in the request tells the gateway that it is a further try, so it cannot count the tries together.",
        holds=lambda scenario, way, bare, ours: (
            way == "gateway"
            and scenario.dialect == "gemini"
            and scenario.max_retries > 0
            and ours.attempts <= 3 * (1 + scenario.max_retries)
            and (ours.error == bare.error or ours.whole or not bare.whole)
        ),
    ),
)

UNPLAYED = (
    Unplayed(
        when="a connection that breaks under the async half of Google's SDK, with aiohttp installed",
        bare="the SDK sends through aiohttp: the caller gets that package's errors; with retry_options the SDK repeats a "
        "disconnect, without them it repeats it once after 1 to 10 s",
        ours="the call goes through httpx2: the caller gets its errors; the SDK repeats none but time-outs and refused "
        "connections, and hedgerow replaces a disconnect itself, after half a second, as budget and max_backups allow",
        reason="Hedged calls go through one HTTP client, whose connections a loser's end closes. Without aiohttp the bare SDK "
        "takes httpx2 as well, and never repeats a disconnect.",
    ),
    Unplayed(
        when="events that come more than 0.1 s behind `message_stop` or `response.completed`",
        bare="OpenAI's SDK and Anthropic's hand them on for as long as the connection stays open",
        ours="they are dropped; those that come sooner are handed on",
        reason="The answer is whole at its end mark. Waiting longer would keep a caller, and a connection, on servers that leave "
        "it open.",
    ),
    Unplayed(
        when='`response.extensions["network_stream"]`, read by a hook of a synchronous client, or of either half of Google\'s',
        bare="the socket under the answer",
        ours="it is not there",
        reason="Such a call runs on a loop of our own: its socket is that loop's, and is not to be used from another thread.",
    ),
)


def _is_of_an_sdk(error: str | None) -> bool:
    return (error or "").startswith(("anthropic.", "google.", "httpx", "openai."))


def _ends_in_error(content: object) -> bool:
    """The SDK hands an error of the responses API out as an event."""
    return (
        isinstance(content, list)
        and bool(content)
        and isinstance(content[-1], dict)
        and content[-1].get("type") == "error"
    )


def _is_beginning(ours: object, bare: object) -> bool:
    """Are these events the first of those?"""
    if not isinstance(ours, list):
        return ours is None
    said = ours[:-1] if _ends_in_error(ours) else ours
    return not isinstance(bare, list) or bare[: len(said)] == said or said[: len(bare)] == bare
