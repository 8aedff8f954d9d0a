"""Statistics are kept of keys whose calls are answered: names that callers invent push nobody out."""

import gc

from hedgerow.statistics.registry import MOST_KEYS, Registry
from hedgerow.units import parse_window
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
