"""Which SDK clients can be hedged, and what hedging needs to know of them."""

import copy
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from inspect import getattr_static
from typing import Any, cast

import httpx2

from hedgerow.errors import UnsupportedError
from hedgerow.transports.httpx2_private import AnyHttpClient, http_client_of, is_classic, is_http_client
from hedgerow.transports.sdk_requests import announcing
from hedgerow.transports.targets import Home

__all__ = ["SdkClient", "described", "name_of"]

# SDK → the classes of its clients; their subclasses (Azure's) count as well.
CLIENTS = {
    "openai": ("AsyncOpenAI", "OpenAI"),
    "anthropic": ("AsyncAnthropic", "Anthropic", "AsyncAnthropicVertex", "AnthropicVertex"),
}
REQUEST_TIMEOUT = 408
SUPPORTED = (
    "OpenAI and AsyncOpenAI, Anthropic, AsyncAnthropic and their Vertex kind, genai.Client, and their subclasses; a client of "
    "httpx2 or httpx of your own takes one of hedgerow's transports"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SdkClient:
    """A client of a known SDK. home: where it sends; rebuilt: the same client over another HTTP client; deadline: makes the
    SDK's own time-out error, which it does not retry: no further try reaches the provider after our deadline. None where it
    would retry also that (openai 1, anthropic 0): it gets an ordinary time-out, and its further tries are refused at once."""

    http_client: AnyHttpClient
    home: Home
    host: str
    rebuilt: Callable[[object], Any]
    deadline: Callable[[str, Any], Exception] | None


def described(client: object) -> SdkClient:
    """What hedging needs to know. Raises UnsupportedError for anything else, with the reason."""
    sdk_name = next((name for name in CLIENTS if _is_of(client, name)), None)
    if sdk_name is None:
        raise UnsupportedError(f"{name_of(client)} cannot be hedged by this version: supported is {SUPPORTED}")
    http_client = http_client_of(client)
    if not is_http_client(http_client):
        kind = "AsyncClient" if "Async" in type(client).__name__ else "Client"
        raise UnsupportedError(
            f"its http_client is a {name_of(http_client)}: give the SDK an httpx2.{kind} ({sdk_name}.Default"
            f"{'Async' if kind == 'AsyncClient' else ''}HttpxClient)"
        )
    sdk: Any = client
    return SdkClient(
        http_client=http_client,
        home=Home(str(sdk.base_url), getattr(sdk, "api_key", None) or getattr(sdk, "auth_token", None)),
        host=sdk.base_url.host,
        rebuilt=partial(_over, sdk),
        deadline=None if is_classic(http_client) and not _lets_through(sdk) else partial(_time_out, sdk_name),
    )


def _over(sdk: Any, http_client: object) -> Any:
    """The same client over another HTTP client, all of its settings and what a subclass has added kept."""
    kind = cast(type[Any], type(sdk))
    if _makes_resources_when_asked(kind):
        copied = copy.copy(sdk)
        for name in list(cast("dict[str, object]", vars(copied))):
            if isinstance(getattr_static(kind, name, None), cached_property):
                delattr(copied, name)  # made for the client it was copied from
        copied._client = http_client
        return announcing(copied)
    try:
        copied = sdk.copy(http_client=http_client)
    except TypeError as error:
        raise UnsupportedError(
            f"a {name_of(sdk)} cannot be copied by its own copy() ({error}): give its class a copy() that passes its own "
            "arguments on, or hand the transport to the client: http_client=httpx2.Client(transport=hedgerow.Transport(…))"
        ) from error
    copied._strict_response_validation = sdk._strict_response_validation
    return announcing(copied)


def _makes_resources_when_asked(kind: type[Any]) -> bool:
    """Are `.chat` and `.messages` made on first use? Older SDKs make them with the client, and tie them to it."""
    made = [getattr_static(kind, name, None) for name in ("chat", "messages")]
    return any(isinstance(each, cached_property) for each in made)


def name_of(value: object) -> str:
    """A class as people call it: `openai.OpenAI`."""
    return f"{type(value).__module__.partition('.')[0]}.{type(value).__name__}"


def _is_of(client: object, sdk_name: str) -> bool:
    sdk = sys.modules.get(sdk_name)  # whoever has such a client has imported it
    classes = tuple(each for name in CLIENTS[sdk_name] if (each := getattr(sdk, name, None)) is not None)
    return isinstance(client, classes)


def _lets_through(sdk: object) -> bool:
    """Does the SDK raise its own errors as they are, when its HTTP client raises them? Versions with classic httpx differ, by no
    number that is written down: openai's that do name the class in their loop of tries; anthropic's, all old, do not."""
    codes = [getattr(vars(each).get("request"), "__code__", None) for each in type(sdk).__mro__]
    return any("OpenAIError" in code.co_names for code in codes if code is not None)


def _time_out(sdk_name: str, message: str, request: httpx2.Request) -> Exception:
    sdk = sys.modules[sdk_name]
    error = _last_time_out(sdk, request) if sdk_name == "anthropic" else sdk.APITimeoutError(request=request)
    error.add_note(f"hedgerow: {message}")
    return error


def _last_time_out(anthropic: Any, request: httpx2.Request) -> Exception:
    """anthropic tries again after an APITimeoutError, unless the error is an answer as well, and one that says not to."""
    answer = httpx2.Response(REQUEST_TIMEOUT, headers={"x-should-retry": "false"}, request=request)

    def say(self: Exception) -> None:
        anthropic.APIStatusError.__init__(self, "Request timed out.", response=answer, body=None)

    both = (anthropic.APITimeoutError, anthropic.APIStatusError)
    return type("APITimeoutError", both, {"__init__": say, "__module__": "anthropic"})()
