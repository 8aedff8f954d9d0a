"""From a client's address to a target's: never another host, never above the base URL, the rest as it came."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from hedgerow.gateway.addresses import Address, BadAddress
from hedgerow.gateway.apis import APIS
from hedgerow.values.request import StreamedRequest

OPENAI, GOOGLE = URL("https://api.example/v1"), URL("https://google.example")


@pytest.mark.parametrize(
    ("path", "query", "expected"),
    [
        (b"/v1/chat/completions", b"", "https://api.example/v1/chat/completions"),
        (b"/chat/completions", b"", "https://api.example/v1/chat/completions"),
        (b"/v1/files/a%2Fb", b"limit=2&after=x%20y", "https://api.example/v1/files/a%2Fb?limit=2&after=x%20y"),
        (b"/v1beta/models", b"", "https://api.example/v1/v1beta/models"),
    ],
)
def test_openais_version_stands_once(path: bytes, query: bytes, expected: str) -> None:
    assert str(Address(path, query).at(OPENAI, APIS["openai"])) == expected


def test_a_key_in_the_query_is_taken_out_and_only_put_back_for_a_target_that_gets_it() -> None:
    address = Address(b"/v1beta/models/m:streamGenerateContent", b"alt=sse&key=s%2Bcret&x=1")
    assert address.key == "s+cret"
    assert str(address.at(GOOGLE, APIS["gemini"])).endswith(":streamGenerateContent?alt=sse&x=1")
    assert str(address.with_key.at(GOOGLE, APIS["gemini"])).endswith("?alt=sse&x=1&key=s%2Bcret")
    assert "cret" not in str(address.at(GOOGLE, APIS["gemini"]))


def test_another_model_stands_where_googles_addresses_have_it() -> None:
    address = Address(b"/v1beta/models/gemini-a:generateContent", b"")
    assert str(address.at(GOOGLE, APIS["gemini"], model="gemini-b")).endswith("/v1beta/models/gemini-b:generateContent")


def test_a_stream_is_asked_for_at_its_own_address() -> None:
    asked = StreamedRequest(body=b"{}", ending=("generateContent", "streamGenerateContent"), query=(("alt", "sse"),))
    url = Address(b"/v1beta/models/g:generateContent", b"alt=json&x=1").at(GOOGLE, APIS["gemini"], as_stream=asked)
    assert str(url) == "https://google.example/v1beta/models/g:streamGenerateContent?x=1&alt=sse"


CLIMBING = [
    b"/v1/../admin",
    b"/v1/%2e%2e/admin",
    b"/v1/..%2fadmin",
    b"/..",
    b"/v1/./x",
    b"/v1\\..\\x",
    b"/v1/%5c..%5cx",
]
FOREIGN = [
    b"//evil.example/v1",
    b"http://evil.example/",
    b"",
    b"v1",
    b"/v1/\x00",
    b"/v1/%00",
    b"/v1/a b",
    b"/v1/#x",
    b"*",
]


@pytest.mark.parametrize("path", CLIMBING + FOREIGN)
def test_no_path_leads_elsewhere(path: bytes) -> None:
    with pytest.raises(BadAddress):
        Address(path, b"")


@given(st.binary(max_size=60), st.binary(max_size=40))
def test_whatever_a_client_writes_the_host_stays_and_the_path_stays_below(path: bytes, query: bytes) -> None:
    for front in (b"", b"/", b"/v1/"):
        try:
            url = Address(front + path, query).at(OPENAI, APIS["openai"])
        except BadAddress:
            continue
        assert (url.scheme, url.host, url.port) == ("https", "api.example", 443)
        assert url.raw_path.startswith("/v1")
        assert ".." not in url.parts
