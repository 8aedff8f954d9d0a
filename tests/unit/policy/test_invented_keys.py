"""Statistics are kept of keys whose calls are answered: names that callers invent push nobody out."""

import gc

import orjson
import pytest

from hedgerow.policy.gate import Place
from hedgerow.policy.pilot import Answer, Pilot
from hedgerow.policy.plan import Caller
from hedgerow.policy.snapshot import remember, snapshot_of
from hedgerow.settings import Policy
from hedgerow.statistics.registry import MOST_KEYS, Registry
from hedgerow.units import parse_window
from hedgerow.values.race import Entrant, Fate, RaceState
from hedgerow.values.request import RequestFacts


def facts(model: str) -> RequestFacts:
    return RequestFacts(dialect="openai_chat", model=model)


def test_names_that_nobody_answers_for_push_out_no_key() -> None:
    registry = Registry(parse_window("15m"))
    key, known = registry.find(facts("real"), "home", streamed=False)
    registry.keep(key, known)
    for number in range(MOST_KEYS + 100):
        registry.find(facts(f"invented-{number}"), "home", streamed=False)
    assert registry.find(facts("real"), "home", streamed=False)[1] is known
    assert [key.model for key, _ in registry] == ["real"]


def test_calls_under_way_share_what_is_known_of_a_new_key() -> None:
    registry = Registry(parse_window("15m"))
    _, first = registry.find(facts("new"), "home", streamed=False)
    key, second = registry.find(facts("new"), "home", streamed=False)
    assert first is second
    registry.keep(key, second)
    assert registry.find(facts("new"), "home", streamed=False)[1] is first


def test_an_unanswered_key_is_gone_with_its_calls() -> None:
    registry = Registry(parse_window("15m"))
    _, known = registry.find(facts("new"), "home", streamed=False)
    known.requests = 7
    del known
    gc.collect()
    assert registry.find(facts("new"), "home", streamed=False)[1].requests == 0


def answered(registry: Registry, model: str, owner: str | None) -> None:
    key, known = registry.find(facts(model), "home", streamed=False, owner=owner)
    registry.keep(key, known, owner)


@pytest.mark.parametrize(("greedy", "other"), [("a", "b"), (None, "b"), ("a", None)])
def test_names_that_are_answered_push_out_no_key_of_another(greedy: str | None, other: str | None) -> None:
    registry = Registry(parse_window("15m"))
    answered(registry, "real", other)
    for number in range(MOST_KEYS + 100):
        answered(registry, f"invented-{number}", greedy)
    assert "real" in [key.model for key, _ in registry]
    assert len(list(registry)) == MOST_KEYS


def pilot() -> Pilot:
    return Pilot(Policy(), (Place(name="home"),))


def fly(flown: Pilot, model: str, owner: str | None, *, answers: bool = True) -> None:
    asked = RequestFacts(dialect="d", model=model, stream=True, input_tokens_estimate=10, answer_known=True)
    flight = flown.prepare(asked, Caller(client_key=owner))
    flown.began(flight)
    fate = Fate.WON if answers else Fate.FAILED
    state = RaceState(flight.plan.rules, 0.0, entrants=(Entrant(0, 0, "primary", 0.0, fate),))
    first_s = 0.5 if answers else None
    flown.decided(flight, state, first_s=first_s, caller_s=first_s, now_s=0.0)
    if answers:
        flown.answered(flight, Answer(output_tokens=5.0, pace_s=0.01), caller_s=1.0, now_s=0.0)
    flown.over(flight, state, answered=answers)


def is_warm(flown: Pilot, model: str) -> bool:
    return any(key.model == model and known.warm for key, known in flown.statistics)


@pytest.mark.parametrize("answers", [True, False])
@pytest.mark.parametrize(("greedy", "other"), [("a", "b"), (None, "b"), ("a", None), ("a", "a")])
def test_a_warm_key_stays_warm_whatever_another_asks_for(greedy: str | None, other: str | None, answers: bool) -> None:
    flown = pilot()
    for _ in range(25):
        fly(flown, "real", other)
    for number in range(MOST_KEYS + 100):
        fly(flown, f"invented-{number}", greedy, answers=answers)
    assert is_warm(flown, "real") is not (answers and greedy == other)
    assert sum(1 for _ in flown.statistics) == (MOST_KEYS if answers else 1)


@pytest.mark.parametrize("clean", [True, False])
def test_so_it_does_over_a_restart_and_with_its_owners(clean: bool) -> None:
    flown, then = pilot(), pilot()
    for _ in range(25):
        fly(flown, "real", "b")
    for number in range(400):
        fly(flown, f"invented-{number}", "a")
    remember(then, orjson.loads(orjson.dumps(snapshot_of(flown, 0.0, clean=clean))), 0.0)
    assert is_warm(then, "real")
    for number in range(MOST_KEYS + 100):
        fly(then, f"invented-{number}", "a")
    assert is_warm(then, "real")


def test_a_snapshot_of_before_is_nobodys_and_a_name_in_it_that_is_too_long_is_left_behind() -> None:
    flown, then = pilot(), pilot()
    fly(flown, "real", "b")
    fly(flown, "m" * 500, "b")
    fly(flown, "two\nlines", "b")
    memory = snapshot_of(flown, 0.0, clean=True)
    for entry in memory["keys"]:
        del entry["owners"]
    remember(then, memory, 0.0)
    ((key, _, owners),) = then.statistics.latest(10)
    assert (key.model, owners) == ("real", [None])
