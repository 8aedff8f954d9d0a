"""httpcore 943 and 1098 (tried with httpcore2 2.16): cancelling over HTTP/2 tells the server nothing. 100 cancels made no
reset, and then "max outbound streams".

Right: attempts use HTTP/1.1, where closing the connection ends the call; a client with `http2=True` is refused with the reason.
"""

from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from openai import AsyncOpenAI, DefaultAsyncHttpxClient, DefaultHttpxClient, OpenAI
from tests.cases.support import MESSAGES, NEVER_S, Hedge, all_closed
from tests.sdk.racing import QUICK, outcomes, scripted

import hedgerow
from hedgerow.testing.process import SandboxProcess

each_manner = pytest.mark.parametrize("sync", [False, True], ids=["async", "sync"])
DEFAULT: Any = (DefaultAsyncHttpxClient, DefaultHttpxClient)  # [sync]
PLAIN: Any = (httpx2.AsyncClient, httpx2.Client)


def switched_on(sync: bool) -> httpx2.AsyncHTTPTransport | httpx2.HTTPTransport:
    """Needs no h2: that is imported when a server agrees to HTTP/2."""
    return (httpx2.HTTPTransport if sync else httpx2.AsyncHTTPTransport)(http2=True)


def own_transport(sync: bool) -> Any:
    return over(DEFAULT[sync](transport=switched_on(sync)))


def plain_httpx2_client(sync: bool) -> Any:
    return over(PLAIN[sync](transport=switched_on(sync)))


def mounted(sync: bool) -> Any:
    return over(DEFAULT[sync](mounts={"https://eu.example": switched_on(sync)}))


def by_the_switch(sync: bool) -> Any:
    pytest.importorskip("h2")
    return over(DEFAULT[sync](http2=True))


def by_the_switch_through_a_proxy(sync: bool) -> Any:
    pytest.importorskip("h2")
    return over(DEFAULT[sync](http2=True, proxy="http://127.0.0.1:9"))


def over(http_client: Any) -> Any:
    return (OpenAI if isinstance(http_client, httpx2.Client) else AsyncOpenAI)(api_key="k", http_client=http_client)


@each_manner
@pytest.mark.parametrize(
    "make", [own_transport, plain_httpx2_client, mounted, by_the_switch, by_the_switch_through_a_proxy]
)
async def test_a_client_with_http2_is_refused_with_the_reason(make: Callable[[bool], Any], sync: bool) -> None:
    client = make(sync)
    with pytest.raises(hedgerow.UnsupportedError, match=r"http2=True.*would run on.*http2=False"):
        hedgerow.hedged(client)
    if sync:
        client.close()
    else:
        await client.close()


@each_manner
async def test_a_transport_with_http2_is_refused_with_the_reason(sync: bool) -> None:
    inner: Any = switched_on(sync)
    with pytest.raises(hedgerow.UnsupportedError, match="http2=True"):
        (hedgerow.Transport if sync else hedgerow.AsyncTransport)(inner)
    if sync:
        inner.close()
    else:
        await inner.aclose()


async def test_attempts_speak_http_1_1_and_a_hundred_cancelled_ones_are_seen_by_the_server(
    hedge: Hedge, hedgerow_sandbox: SandboxProcess
) -> None:
    client = hedge(delay=0.0, max_backups=1)
    for number in range(100):
        answer = await client.chat.completions.with_raw_response.create(
            model="m",
            messages=MESSAGES,
            extra_headers=scripted(f"8/{number}", {"first_token_s": NEVER_S}, QUICK),
        )
        assert answer.http_response.http_version == "HTTP/1.1"
    await all_closed(client, hedgerow_sandbox)
    for number in range(100):
        # Both start together, so either may arrive first.
        assert sorted(outcomes(hedgerow_sandbox, f"8/{number}")) == ["completed", "disconnected"]
