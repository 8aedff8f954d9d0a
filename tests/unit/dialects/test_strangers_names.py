"""What callers and providers call things is kept short, on one line, and never a prompt."""

import orjson
import pytest

from hedgerow.dialects.lenient_json import MOST_OF_A_NAME, name_of, safe_name
from hedgerow.dialects.registry import dialect_for
from hedgerow.values.request import WireRequest

PATHS = {
    "openai_chat": "/v1/chat/completions",
    "openai_responses": "/v1/responses",
    "anthropic": "/v1/messages",
    "embeddings": "/v1/embeddings",
    "counts": "/v1/messages/count_tokens",
}
LONG = "SECRET" * 50_000


def facts_of(path: str, body: dict[str, object]) -> object:
    wire = WireRequest(method="POST", path=path, headers=(), body=orjson.dumps(body))
    return dialect_for(wire).facts(wire)


@pytest.mark.parametrize("path", PATHS.values())
@pytest.mark.parametrize("name", [LONG, "m\nodel\x00", "m\u2028x"])
def test_a_models_name_is_kept_short_and_on_one_line(path: str, name: str) -> None:
    kept = getattr(facts_of(path, {"model": name, "messages": [], "max_tokens": 1}), "model", None)
    assert kept is not None
    assert len(kept) <= MOST_OF_A_NAME + 1
    assert kept.isprintable()


def test_a_name_in_geminis_path_is_too() -> None:
    path = f"/v1beta/models/{'g' * 5_000}%0A:generateContent"
    kept = getattr(facts_of(path, {"contents": []}), "model", "")
    assert len(kept) == MOST_OF_A_NAME + 1


@pytest.mark.parametrize(
    "body",
    [
        {LONG: 1},
        {"tools": [{"type": LONG}]},
        {"a prompt of somebody's, say": 1},
        {"modalities": [LONG]},
        {"service_tier": LONG},
        {"reasoning_effort": LONG},
    ],
)
@pytest.mark.parametrize("path", list(PATHS.values())[:3])
def test_no_reason_shows_what_could_be_a_prompt(path: str, body: dict[str, object]) -> None:
    facts = facts_of(path, {"model": "m", "messages": [], "max_tokens": 1, **body})
    said = repr(facts)
    assert len(said) < 1_500
    assert "somebody" not in said


def test_usual_names_stay_as_they_are() -> None:
    for name in ("gpt-4o", "org/model:free", "ft:gpt-4o:acme::a1", "模型"):
        assert name_of(name) == name
    assert name_of("") is None
    assert name_of(7) is None
    assert safe_name("web_search_20260101") == "web_search_20260101"
    assert safe_name("two words") == safe_name(7) == "?"
