"""How a request is rewritten for a backup target."""

import httpx2
import orjson
import pytest

from hedgerow.settings import Target
from hedgerow.transports.targets import Home, home_place, place_of, request_for

BODY = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "metadata": {"a": "1"}}


def sent(target: Target, url: str = "https://api.openai.com/v1/chat/completions", **headers: str) -> httpx2.Request:
    body = orjson.dumps(BODY)
    request = httpx2.Request(
        "POST", url, headers={"authorization": "Bearer mine", "x-mine": "1", **headers}, content=body
    )
    return request_for(target, request, body)


@pytest.mark.parametrize(
    ("base_url", "url", "expected"),
    [
        (
            "https://eu.example/v1",
            "https://api.openai.com/v1/chat/completions",
            "https://eu.example/v1/chat/completions",
        ),
        ("https://eu.example/v1/", "https://api.openai.com/v1/embeddings", "https://eu.example/v1/embeddings"),
        (
            "https://two.azure.example/openai/deployments/d2",
            "https://one.azure.example/openai/deployments/d1/chat/completions?api-version=7",
            "https://two.azure.example/openai/deployments/d2/chat/completions?api-version=7",
        ),
        (
            "http://127.0.0.1:8080",
            "https://api.openai.com/v1/chat/completions",
            "http://127.0.0.1:8080/chat/completions",
        ),
    ],
)
def test_a_targets_base_url_is_what_the_sdk_takes(base_url: str, url: str, expected: str) -> None:
    request = sent(Target(base_url=base_url), url)
    assert str(request.url) == expected
    assert request.headers["host"] == request.url.netloc.decode()


def test_a_key_is_never_sent_to_a_foreign_origin() -> None:
    request = sent(
        Target(base_url="https://eu.example/v1"),
        cookie="c=1",
        **{"openai-organization": "org", "openai-project": "p", "api-key": "k"},
    )
    text = b" ".join(value for _, value in request.headers.raw)
    assert b"mine" not in text
    assert not {"authorization", "api-key", "cookie", "openai-organization", "openai-project"} & set(request.headers)
    assert request.headers["x-mine"] == "1"


def test_a_target_with_a_key_of_its_own_gets_that_one() -> None:
    foreign = sent(Target(base_url="https://eu.example/v1", api_key="theirs"))
    assert foreign.headers["authorization"] == "Bearer theirs"
    azure = sent(Target(api_key="theirs"), **{"api-key": "mine"})
    assert azure.headers["api-key"] == "theirs"


def test_the_same_origin_keeps_the_callers_key() -> None:
    request = sent(Target(set={"service_tier": "priority"}))
    assert request.headers["authorization"] == "Bearer mine"


def test_set_is_laid_over_the_body_key_by_key() -> None:
    request = sent(Target(set={"service_tier": "priority", "metadata": {"hedge": "1"}, "model": "other"}))
    assert orjson.loads(request.content) == {
        **BODY,
        "service_tier": "priority",
        "model": "other",
        "metadata": {"a": "1", "hedge": "1"},
    }
    assert request.headers["content-length"] == str(len(request.content))


def test_without_set_the_body_goes_as_it_is() -> None:
    assert sent(Target(base_url="https://eu.example/v1")).content == orjson.dumps(BODY)


def test_places_share_limits_if_they_share_key_and_base_url() -> None:
    home = Home("https://api.openai.com/v1/", "mine")
    here = home_place(home, "here").account
    same = [Target(set={"a": 1}), Target(api_key="mine"), Target(base_url="https://api.openai.com/v1", api_key="mine")]
    other = [
        Target(api_key="theirs"),
        Target(base_url="https://eu.example/v1"),
        Target(base_url="https://eu.example/v1", api_key="k"),
    ]
    assert {place_of(target, 1, home).account for target in same} == {here}
    assert len({here, *(place_of(target, 1, home).account for target in other)}) == 4
    assert "mine" not in repr(home) + here


def test_places_are_named_after_their_origin_unless_they_have_a_name() -> None:
    assert place_of(Target(base_url="https://eu.example/v1"), 1, Home()).name == "eu.example"
    assert place_of(Target(base_url="https://eu.example/v1", name="europe"), 1, Home()).name == "europe"
    assert place_of(Target(set={"a": 1}), 2, Home()).name == "backup-2"
