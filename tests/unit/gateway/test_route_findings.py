"""What `check` says of routes that do nothing."""

from pathlib import Path

import pytest
import tomli_w

from hedgerow.gateway.config import load
from hedgerow.gateway.recognition import may_have
from hedgerow.gateway.route_findings import CALLS, route_mistakes, unnamed_calls
from hedgerow.gateway.sections import RouteSection

APIS = {"o": "openai", "a": "anthropic", "g": "gemini"}


def routes(*said: tuple[str, str, str]) -> list[RouteSection]:
    return [RouteSection(path=path, model=model, targets=[target]) for path, model, target in said]


@pytest.mark.parametrize(
    ("said", "number", "word"),
    [
        ([("/v1/messages", "*", "o")], 0, "never fit"),
        ([("/v1/chat/completions", "*", "a")], 0, "never fit"),
        ([("/v1beta/*", "*", "a")], 0, "never fit"),
        ([("/v1/messages*", "*", "g")], 0, "never fit"),
        ([("/v1/chat/*", "*", "g")], 0, "never fit"),
        ([("/v1/*", "*", "o"), ("/v1/chat/completions", "gpt-*", "o")], 1, "hidden"),
        ([("*", "gpt-*", "o"), ("/v1/chat/*", "gpt-4*", "o")], 1, "hidden"),
        ([("/v1/models*", "*", "a"), ("/v1/models", "*", "a")], 1, "hidden"),
    ],
)
def test_a_route_that_does_nothing_is_named(said: list[tuple[str, str, str]], number: int, word: str) -> None:
    ((found, why),) = route_mistakes(routes(*said), APIS)
    assert found == number
    assert word in why


@pytest.mark.parametrize(
    "said",
    [
        [("/v1/models*", "*", "o"), ("/v1/models*", "*", "a"), ("/v1/models*", "*", "g")],  # each for its own API
        [("/v1/chat/completions", "gpt-*", "o"), ("/v1/*", "*", "o")],
        [("/v1/chat/completions", "gpt-*", "o"), ("/v1/chat/completions", "o*", "o")],
        [("/v1/rerank", "*", "o")],  # what servers add to OpenAI's API
        [("/openai/deployments/*", "*", "o")],
        [("/chat/completions", "*", "o")],
        [("*", "*", "o")],
    ],
)
def test_a_route_that_does_something_is_left_alone(said: list[tuple[str, str, str]]) -> None:
    assert not list(route_mistakes(routes(*said), APIS))


def test_what_no_route_names_is_told_for_each_api_that_there_is_a_target_for() -> None:
    found = unnamed_calls(
        routes(("/v1/chat/*", "*", "o"), ("/v1/messages*", "*", "a")), {"o": "openai", "a": "anthropic"}
    )
    assert set(found) == {"openai", "anthropic"}
    assert "/v1/chat/completions" not in found["openai"]
    assert "/v1/embeddings" in found["openai"]
    assert "/v1/messages/batches" not in found["anthropic"]


def test_the_calls_are_those_of_their_api() -> None:
    for api, paths in CALLS.items():
        for path in paths:
            assert api in may_have(path, "POST"), path


def test_a_file_is_warned_of_at_its_line(tmp_path: Path) -> None:
    file = tmp_path / "hedgerow.toml"
    target = {"name": "o", "dialect": "openai", "base_url": "http://127.0.0.1:1/v1"}
    file.write_text(tomli_w.dumps({"target": [target], "route": [{"path": "/v1/messages", "targets": ["o"]}]}))
    (warning,) = load(file).warnings
    assert warning.startswith(f"{file}:5: path = '/v1/messages' can never fit")
