"""Rewrites a request for a backup target: its URL, its key, and what the target lays over the body."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, cast

import httpx2
import orjson

from hedgerow.cost.ledger import TargetBilling
from hedgerow.policy.gate import Place
from hedgerow.settings import Target

__all__ = ["Home", "billing_of", "home_place", "place_of", "request_for"]

CREDENTIAL_HEADERS = (
    "authorization",
    "api-key",
    "x-api-key",
    "x-goog-api-key",
    "proxy-authorization",
    "cookie",
    "anthropic-user-profile-id",
    "anthropic-workspace-id",
    "openai-organization",
    "openai-project",
)
ENDPOINTS = ("/chat/completions", "/embeddings", "/responses", "/v1/messages")  # what follows the base URL an SDK takes


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
    return Place(name=name, account=home.account_of(target.base_url, target.api_key))


def billing_of(target: Target, home: Home) -> TargetBilling:
    """How a target bills, for the cost in events."""
    model, tier = target.set.get("model"), target.set.get("service_tier")
    return TargetBilling(
        provider_url=target.base_url or home.base_url,
        model=model if isinstance(model, str) else None,
        service_tier=tier if isinstance(tier, str) else None,
        cancel_billing=target.cancel_billing,
    )


def request_for(target: Target, request: httpx2.Request, body: bytes) -> httpx2.Request:
    """The request as it goes to the target. A key is never sent to a foreign origin: without an `api_key` of its own such a
    target gets none."""
    url = _url_for(target, request.url)
    headers = request.headers.copy()
    if _origin(url) != _origin(request.url):
        headers["host"] = url.netloc.decode("ascii")
        for name in CREDENTIAL_HEADERS:
            if not (target.api_key is not None and name in _key_headers(request.headers)):
                headers.pop(name, None)
    if target.api_key is not None:
        for name in _key_headers(request.headers):
            headers[name] = f"Bearer {target.api_key}" if name == "authorization" else target.api_key
    if target.set:
        body = orjson.dumps(_laid_over(orjson.loads(body), target.set))
        headers["content-length"] = str(len(body))
    return httpx2.Request(request.method, url, headers=headers, content=body, extensions=dict(request.extensions))


def _url_for(target: Target, url: httpx2.URL) -> httpx2.URL:
    if target.base_url is None:
        return url
    base = httpx2.URL(target.base_url)
    endpoint = next((end for end in ENDPOINTS if url.path.endswith(end)), url.path)
    return base.copy_with(path=base.path.rstrip("/") + endpoint, query=url.query or None)


def _key_headers(headers: httpx2.Headers) -> list[str]:
    """Where the client put its key: Azure's clients in `api-key`, Anthropic's in `x-api-key` or as a bearer token."""
    return [name for name in ("api-key", "x-api-key", "authorization") if name in headers][:1] or ["authorization"]


def _origin(url: httpx2.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


def _laid_over(body: Any, over: Mapping[str, Any]) -> Any:
    """`over` wins; objects are merged key by key, everything else is replaced."""
    if not isinstance(body, dict):
        return dict(over)
    merged: dict[str, Any] = dict(cast("dict[str, Any]", body))
    for name, value in over.items():
        merged[name] = _laid_over(merged.get(name), cast("dict[str, Any]", value)) if isinstance(value, dict) else value
    return merged
