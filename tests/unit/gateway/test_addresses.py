"""From a client's address to a target's: never another host, never above the base URL, the rest as it came."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.gateway.addresses import Address, BadAddress, BaseUrl, Origin
from hedgerow.gateway.apis import APIS
from hedgerow.values.request import StreamedRequest

OPENAI, GOOGLE = BaseUrl.parse("https://api.example/v1"), BaseUrl.parse("https://google.example")


@pytest.mark.parametrize(
    ("path", "query", "expected"),
    [
        (b"/v1/chat/completions", b"", "/v1/chat/completions"),
        (b"/chat/completions", b"", "/v1/chat/completions"),
        (b"/v1/models/a%2Fb", b"limit=2&after=x%20y", "/v1/models/a%2Fb?limit=2&after=x%20y"),
        (b"/v1beta/models", b"", "/v1/v1beta/models"),
    ],
)
def test_openais_version_stands_once(path: bytes, query: bytes, expected: str) -> None:
    assert Address(path, query).at(OPENAI, APIS["openai"]) == expected


def test_a_key_in_the_query_is_taken_out_and_only_put_back_for_a_target_that_gets_it() -> None:
    address = Address(b"/v1beta/models/m:streamGenerateContent", b"alt=sse&key=s%2Bcret&x=1")
    assert address.key == "s+cret"
    assert address.at(GOOGLE, APIS["gemini"]).endswith(":streamGenerateContent?alt=sse&x=1")
    assert address.with_key.at(GOOGLE, APIS["gemini"]).endswith("?alt=sse&x=1&key=s%2Bcret")
    assert "cret" not in address.at(GOOGLE, APIS["gemini"])


def test_another_model_stands_where_googles_addresses_have_it() -> None:
    address = Address(b"/v1beta/models/gemini-a:generateContent", b"")
    assert address.at(GOOGLE, APIS["gemini"], model="gemini-b") == "/v1beta/models/gemini-b:generateContent"
    odd = address.at(GOOGLE, APIS["gemini"], model="a/b c\r\nx: y")
    assert odd == "/v1beta/models/a%2Fb%20c%0D%0Ax%3A%20y:generateContent"


def test_a_stream_is_asked_for_at_its_own_address() -> None:
    asked = StreamedRequest(body=b"{}", ending=("generateContent", "streamGenerateContent"), query=(("alt", "sse"),))
    path = Address(b"/v1beta/models/g:generateContent", b"alt=json&x=1").at(GOOGLE, APIS["gemini"], as_stream=asked)
    assert path == "/v1beta/models/g:streamGenerateContent?x=1&alt=sse"


@pytest.mark.parametrize(
    ("text", "origin", "authority", "path"),
    [
        ("https://api.example/v1/", Origin(tls=True, host="api.example", port=443), "api.example", "/v1"),
        ("http://API.example:8080", Origin(tls=False, host="api.example", port=8080), "api.example:8080", ""),
        ("http://[::1]:80/x%20y", Origin(tls=False, host="::1", port=80), "[::1]", "/x%20y"),
        ("https://bücher.example:443", Origin(tls=True, host="xn--bcher-kva.example", port=443), None, ""),
    ],
)
def test_a_base_url_is_an_origin_and_a_path(text: str, origin: Origin, authority: str | None, path: str) -> None:
    url = BaseUrl.parse(text)
    assert (url.origin, url.origin.authority, url.path) == (origin, authority or origin.host, path)
    assert BaseUrl.parse(str(url)) == url


@pytest.mark.parametrize(
    "text",
    [
        "",
        "api.example",
        "ftp://a",
        "https://",
        "https:///v1",
        "http://a b",
        "https://me:secret@a",
        "https://a:99999",
        "https://a:x",
        "https://a/v1?key=1",
        "https://a/?",
        "https://a/#",
        "unix:///a",
        "https://a\r\nb",
    ],
)
def test_what_is_no_base_url_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        BaseUrl.parse(text)


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
            asked = Address(front + path, query).at(OPENAI, APIS["openai"])
        except BadAddress:
            continue
        assert asked.partition("?")[0] == "/v1" or asked.startswith("/v1/")
        assert ".." not in asked.partition("?")[0].split("/")
