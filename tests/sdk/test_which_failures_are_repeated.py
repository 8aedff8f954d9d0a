"""After which failures the SDKs send a request again, as we have it: an upgrade that changes their lists fails here."""

import inspect
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from google.genai import _api_client, errors, types

from hedgerow.transports import genai_client
from hedgerow.values.failure import Failure, FailureKind, Repeats

CLIENTS = [openai.OpenAI(api_key="k"), anthropic.Anthropic(api_key="k")]
ERRORS = [httpx2.ConnectError, httpx2.ReadError, httpx2.RemoteProtocolError, httpx2.WriteError]
STATUSES = range(400, 600)


def failed(status: int | None = None, error: str = "", **more: bool) -> Failure:
    return Failure(kind=FailureKind.TRANSIENT, status=status, error=error, **more)


@pytest.mark.parametrize("client", CLIENTS, ids=["openai", "anthropic"])
def test_statuses_that_openai_and_anthropic_repeat(client: Any) -> None:
    theirs = {status for status in STATUSES if client._should_retry(httpx2.Response(status))}
    assert theirs == {status for status in STATUSES if Repeats().after(failed(status))}


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("client", CLIENTS, ids=["openai", "anthropic"])
def test_openai_and_anthropic_repeat_every_error_of_the_connection(client: Any, error: type[Exception]) -> None:
    tries = list[str]()

    def fails(request: httpx2.Request) -> httpx2.Response:
        tries.append(request.url.path)
        raise error("broken")

    with httpx2.Client(transport=httpx2.MockTransport(fails)) as http:
        impatient = client.with_options(http_client=http, max_retries=1)
        with pytest.raises((openai.APIConnectionError, anthropic.APIConnectionError)):
            impatient.post("/anything", cast_to=object, body={})
    assert len(tries) == 2
    assert Repeats().after(failed(error=error.__name__))


def test_statuses_and_errors_that_google_repeats_over_httpx2() -> None:
    repeated: Any = _api_client.retry_args(types.HttpRetryOptions(attempts=3))["retry"]
    raised = {name for name in httpx2.__all__ if _is_of_transport(name)} - {"TimeoutException"}  # a base
    ours = Repeats(statuses=genai_client.DEFAULT_STATUSES, errors=genai_client.REPEATED_ERRORS)
    for name in raised:
        assert repeated.predicate(getattr(httpx2, name)("")) is ours.after(failed(error=name)), name
    for status in STATUSES:
        assert repeated.predicate(errors.APIError(status, {})) is ours.after(failed(status)), status


def test_nobody_repeats_what_came_in_an_answer() -> None:
    assert not Repeats().after(failed(500, in_answer=True))


def _is_of_transport(name: str) -> bool:
    kind = getattr(httpx2, name)
    return inspect.isclass(kind) and issubclass(kind, httpx2.TransportError)
