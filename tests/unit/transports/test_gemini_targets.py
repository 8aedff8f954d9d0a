"""How Gemini's requests are rewritten for a backup target: base URL, key in header or address, model in the path."""

import httpx2
import orjson
import pytest

from hedgerow.cost.ledger import billing_of
from hedgerow.settings import Target
from hedgerow.transports.targets import request_for

BODY = {"contents": [{"parts": [{"text": "hi"}]}], "generationConfig": {"temperature": 1}}
HERE = "https://generativelanguage.googleapis.com/v1beta/models/gemini-x:streamGenerateContent?alt=sse"


def sent(target: Target, url: str = HERE, **headers: str) -> httpx2.Request:
    body = orjson.dumps(BODY)
    return request_for(target, httpx2.Request("POST", url, headers=headers, content=body), body)


@pytest.mark.parametrize(
    ("base_url", "url", "expected"),
    [
        ("https://eu.example", HERE, "https://eu.example/v1beta/models/gemini-x:streamGenerateContent?alt=sse"),
        ("https://gw.example/g/", HERE, "https://gw.example/g/v1beta/models/gemini-x:streamGenerateContent?alt=sse"),
        (
            "https://eu.example",
            "https://gw.example/v1/g/v1beta/models/gemini-x:generateContent",
            "https://eu.example/v1beta/models/gemini-x:generateContent",
        ),
        (
            "https://europe-west1-aiplatform.googleapis.com",
            "https://aiplatform.googleapis.com/v1beta1/projects/p/locations/l/publishers/google/models/gemini-x:countTokens",
            "https://europe-west1-aiplatform.googleapis.com/v1beta1/projects/p/locations/l/publishers/google/models/"
            "gemini-x:countTokens",
        ),
    ],
)
def test_a_targets_base_url_has_no_version(base_url: str, url: str, expected: str) -> None:
    request = sent(Target(base_url=base_url), url)
    assert str(request.url) == expected
    assert request.headers["host"] == request.url.netloc.decode()


def test_a_key_is_never_sent_to_a_foreign_origin_from_header_or_address() -> None:
    headers = {"x-goog-api-key": "mine", "authorization": "Bearer mine", "x-goog-user-project": "mine"}
    request = sent(Target(base_url="https://eu.example"), f"{HERE}&key=mine", **headers)
    assert "mine" not in f"{request.url} {request.headers.raw}"
    assert request.url.params["alt"] == "sse"


def test_a_targets_own_key_takes_the_place_of_the_clients() -> None:
    target = Target(base_url="https://eu.example", api_key="theirs")
    in_header = sent(target, **{"x-goog-api-key": "mine"})
    assert in_header.headers["x-goog-api-key"] == "theirs"
    assert "authorization" not in in_header.headers
    in_address = sent(target, f"{HERE}&key=mine")
    assert in_address.url.params["key"] == "theirs"
    assert "authorization" not in in_address.headers
    at_home = sent(Target(api_key="theirs"), f"{HERE}&key=mine")
    assert at_home.url.params["key"] == "theirs"


def test_a_key_in_the_address_stays_where_only_the_body_changes() -> None:
    request = sent(Target(set={"serviceTier": "priority"}), f"{HERE}&key=mine")
    assert request.url.params["key"] == "mine"
    assert orjson.loads(request.content) == {**BODY, "serviceTier": "priority"}


def test_another_model_goes_into_the_path_not_into_the_body() -> None:
    request = sent(Target(set={"model": "gemini-y", "generationConfig": {"topK": 2}}))
    assert request.url.path == "/v1beta/models/gemini-y:streamGenerateContent"
    assert orjson.loads(request.content) == {**BODY, "generationConfig": {"temperature": 1, "topK": 2}}


def test_a_tier_in_googles_spelling_is_known_to_the_bill() -> None:
    assert billing_of(None, {"serviceTier": "priority"}, "unknown").service_tier == "priority"
