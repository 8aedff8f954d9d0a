"""What callers and providers call things is kept short, on one line, and never a prompt."""

from collections.abc import Callable

import orjson
import pytest

from hedgerow.dialects.failures import failure_in_band, failure_of_status
from hedgerow.dialects.rate_limits import room_left
from hedgerow.dialects.registry import dialect_for
from hedgerow.short_text import MOST_OF_A_NAME, is_cut, name_of, quoted, safe_name
from hedgerow.values.answer import AnswerFacts
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


def answered(path: str, answer: dict[str, object], *headers: tuple[bytes, bytes]) -> AnswerFacts:
    wire = WireRequest(method="POST", path=path, headers=(), body=b'{"model": "m"}')
    dialect = dialect_for(wire)
    reader = dialect.reader(dialect.facts(wire), [(b"content-type", b"application/json"), *headers])
    reader.feed(orjson.dumps(answer))
    reader.finish()
    return reader.facts


GEMINI = "/v1beta/models/g:generateContent"
ANSWERS: dict[str, Callable[[str], dict[str, object]]] = {
    PATHS["openai_chat"]: lambda odd: {"model": odd, "service_tier": odd},
    PATHS["embeddings"]: lambda odd: {"model": odd},
    PATHS["openai_responses"]: lambda odd: {"model": odd, "service_tier": odd, "status": odd},
    PATHS["anthropic"]: lambda odd: {
        "type": "message",
        "model": odd,
        "usage": {"input_tokens": 1, "service_tier": odd},
    },
    GEMINI: lambda odd: {"modelVersion": odd, "usageMetadata": {"serviceTier": odd}},
}


@pytest.mark.parametrize("path", ANSWERS)
@pytest.mark.parametrize("odd", [LONG, "a\nb", "\u202ea"])
def test_so_is_what_an_answer_says(path: str, odd: str) -> None:
    facts = answered(path, ANSWERS[path](odd))
    assert facts.model == name_of(odd)
    assert len(repr(facts)) < 1_500
    assert answered(path, ANSWERS[path]("m")).model == "m"


def test_so_is_a_tier_in_a_header() -> None:
    assert answered(GEMINI, {}, (b"x-gemini-service-tier", LONG.encode())).service_tier == name_of(LONG)


@pytest.mark.parametrize("reason", [LONG, "a\nb"])
def test_any_finish_reason_ends_an_answer(reason: str) -> None:
    choice = {"index": 0, "message": {"content": "a"}, "finish_reason": reason}
    assert answered(PATHS["openai_chat"], {"choices": [choice]}).valid
    assert answered(PATHS["anthropic"], {"content": [{"type": "text", "text": "a"}], "stop_reason": reason}).valid
    candidate = {"content": {"parts": [{"text": "a"}]}, "finishReason": reason}
    assert answered(GEMINI, {"candidates": [candidate]}).valid


@pytest.mark.parametrize("field", ["code", "type", "status"])
@pytest.mark.parametrize("odd", [LONG, "no\nmodel", "\x1b[2J"])
def test_so_is_the_code_of_an_error(field: str, odd: str) -> None:
    body: dict[str, object] = {"error": {field: odd}}
    assert failure_of_status(404, body=orjson.dumps(body)).error == name_of(odd)
    assert failure_in_band(body).error == name_of(odd)


@pytest.mark.parametrize("odd", [b"inf", b"nan", b"1e300", b"9" * 5000])
def test_rate_limits_are_numbers_that_a_provider_can_have(odd: bytes) -> None:
    assert room_left([(b"x-ratelimit-remaining-requests", b"5"), (b"x-ratelimit-limit-requests", odd)]) is None
    assert room_left([(b"x-ratelimit-remaining-requests", odd), (b"x-ratelimit-limit-requests", b"10")]) is None


def test_a_model_that_draws_does_so_however_long_its_name() -> None:
    needs = getattr(facts_of(f"/v1beta/models/{'g' * 5_000}-image:generateContent", {"contents": []}), "needs", ())
    assert "images" in needs


def test_what_is_cut_is_known_to_be() -> None:
    assert is_cut(name_of("a" * (MOST_OF_A_NAME + 1)))
    assert not is_cut(name_of("a" * MOST_OF_A_NAME))
    assert not is_cut(name_of("a\n"))
    assert not is_cut(None)
    assert quoted("a\n") == "'a\\n'"
    assert len(quoted("a" * 10_000)) < 100
