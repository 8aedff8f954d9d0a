"""Rewrites a request for a backup target: its URL, its key, and what the target lays over the body."""

import re
from dataclasses import dataclass, field
from hashlib import sha256

import httpx2
import orjson

from hedgerow.dialects.gemini_paths import with_model
from hedgerow.dialects.headers import CREDENTIALS
from hedgerow.dialects.request_body import laid_over
from hedgerow.policy.gate import Place
from hedgerow.settings import Target

__all__ = ["Home", "home_place", "place_of", "request_for"]

# What follows the base URL of Google's SDK, which has no version.
GEMINI = re.compile(
    r"(?:/v[0-9][^/]*)?/(?:projects/.+/)?(?:publishers/[^/]+/)?(?:models|tunedModels|endpoints)/[^/:]+:[A-Za-z]+$"
)
AZURE_HOSTS = (".openai.azure.com", ".openai.azure.us", ".cognitiveservices.azure.com", ".services.ai.azure.com")
AZURE_PATH, AZURE_VERSION = "/openai/deployments/", "api-version"
KEY_HEADERS = 4  # the first of CREDENTIALS: where keys stand
KEY_PARAMETER = "key"  # Gemini takes the key in the address as well
# What follows the base URL an SDK takes.
ENDPOINTS = (
    "/chat/completions",
    "/embeddings",
    "/responses",
    "/responses/input_tokens",
    "/v1/messages",
    "/v1/messages/count_tokens",
)


@dataclass(frozen=True, slots=True)
class Home:
    """Where the client itself sends: its base URL and key, as far as they are known."""

    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)

    def account_of(self, base_url: str | None, api_key: str | None) -> str:
        """The same text for the same base URL and key, which it does not tell."""
        url, key = (base_url or self.base_url or "").rstrip("/"), api_key or self.api_key or ""
        return sha256(f"{url}\n{key}".encode()).hexdigest()


def home_place(home: Home, name: str) -> Place:
    """The client's own endpoint as a place."""
    return Place(name=name, account=home.account_of(None, None))


def place_of(target: Target, number: int, home: Home) -> Place:
    """How the gate and the events see a target."""
    origin = None if target.base_url is None else httpx2.URL(target.base_url).netloc.decode("ascii")
    name = target.name or origin or f"backup-{number}"
    model = target.set.get("model")
    account = home.account_of(target.base_url, target.api_key)
    return Place(name=name, account=account, model=model if isinstance(model, str) else None)


def request_for(target: Target, request: httpx2.Request, body: bytes) -> httpx2.Request:
    """The request as it goes to the target. A key is never sent to a foreign origin: without an `api_key` of its own such a
    target gets none."""
    url, over = _url_for(target, request.url), dict(target.set)
    key_headers = _key_headers(request, url)
    headers = request.headers.copy()
    if (path := with_model(url.path, over.get("model"))) is not None:
        over.pop("model")
        url = url.copy_with(path=path)
    in_address = KEY_PARAMETER in url.params
    if in_address and target.api_key is not None:
        url = url.copy_set_param(KEY_PARAMETER, target.api_key)
    elif in_address and _origin(url) != _origin(request.url):
        url = url.copy_remove_param(KEY_PARAMETER)
    if _origin(url) != _origin(request.url):
        headers["host"] = url.netloc.decode("ascii")
        for name in CREDENTIALS:
            headers.pop(name, None)
    if target.api_key is not None:
        for name in CREDENTIALS[:KEY_HEADERS]:
            headers.pop(name, None)
        for name in key_headers:
            headers[name] = f"Bearer {target.api_key}" if name == "authorization" else target.api_key
    if over:
        body = orjson.dumps(laid_over(orjson.loads(body), over))
        headers["content-length"] = str(len(body))
    return httpx2.Request(request.method, url, headers=headers, content=body, extensions=dict(request.extensions))


def _url_for(target: Target, url: httpx2.URL) -> httpx2.URL:
    if target.base_url is None:
        return url
    base = httpx2.URL(target.base_url)
    of_gemini = GEMINI.search(url.path)
    endpoint = of_gemini[0] if of_gemini else next((end for end in ENDPOINTS if url.path.endswith(end)), url.path)
    made = base.copy_with(path=_joined(base.path.rstrip("/"), endpoint), query=url.query or None)
    if is_azure(url) and not is_azure(base):
        made = made.copy_remove_param(AZURE_VERSION)
    return made.copy_merge_params(base.params) if base.query else made


def _joined(base: str, endpoint: str) -> str:
    """The two paths after each other; a version that both have stands once, since some SDKs take it and others do not."""
    version = base.rpartition("/")[2]
    return base.removesuffix(f"/{version}") + endpoint if endpoint.startswith(f"/{version}/") else base + endpoint


def is_azure(url: httpx2.URL) -> bool:
    """Does Azure's own API of OpenAI's models answer there, whose keys stand in `api-key`?"""
    return url.host.endswith(AZURE_HOSTS) or AZURE_PATH in url.path or AZURE_VERSION in url.params


def _key_headers(request: httpx2.Request, to: httpx2.URL) -> list[str]:
    """Where a target looks for its key. It is where the client put its own: Anthropic's in `x-api-key` or as a bearer token,
    Google's in `x-goog-api-key`, none if only the address has it. But Azure and others of OpenAI's kind differ: there the
    target's address says which of them it is."""
    headers = request.headers
    found = [name for name in ("api-key", "x-api-key", "x-goog-api-key", "authorization") if name in headers][:1]
    if not found:
        return [] if KEY_PARAMETER in to.params else ["authorization"]
    if found[0] == "authorization" and is_azure(to) and not is_azure(request.url):
        return ["api-key"]
    if found[0] == "api-key" and is_azure(request.url) and not is_azure(to):
        return ["authorization"]
    return found


def _origin(url: httpx2.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port
