"""Which API a request speaks: by its path and the headers that only one API's clients send. Never by a guess: a prompt that goes
to another provider cannot be taken back.

The lists are those of the SDKs' own paths (openai 3, anthropic 2, google-genai 3), which a test compares with them.
"""

from dataclasses import dataclass
from functools import lru_cache

from hedgerow.gateway.apis import APIS, Api, Trouble
from hedgerow.values.request import WireRequest

__all__ = ["Recognised", "may_have", "recognised"]

# What follows /v1/ in paths that only one API has.
ONLY: dict[str, str] = {
    "openai": """
        assistants audio chat chatkit classify completions containers content_provenance_checks conversations
        detokenize edits embeddings engines evals fine-tunes fine_tuning images live moderations organization pooling
        realtime rerank responses safety score threads tokenize uploads vector_stores videos webhook_endpoints
        webhook_event_types
    """,
    "anthropic": """
        complete compliance deployment_runs deployments dreams memory_stores messages organizations sessions tunnels
        user_profiles
    """,
    "gemini": """
        auth_tokens batchPredictionJobs cachedContents corpora credentials fileSearchStores interactions operations
        publishers triggers tunedModels tuningJobs voices webhooks
    """,
}
# And what two of the three have.
SHARED: dict[str, frozenset[str]] = {
    "skills": frozenset({"openai", "anthropic"}),
    "vaults": frozenset({"openai", "anthropic"}),
    "batches": frozenset({"openai", "gemini"}),
    "decisions": frozenset({"openai", "gemini"}),
    "projects": frozenset({"openai", "gemini"}),
    "environments": frozenset({"anthropic", "gemini"}),
}
OWNER: dict[str, frozenset[str]] = {
    name: frozenset({api}) for api, names in ONLY.items() for name in names.split()
} | SHARED
ALL = frozenset(APIS)
GOOGLE_VERSIONS = ("v1beta", "v1alpha")
# Headers that only this API's clients send. A key's place is no such: each of the three may be let in by one of any kind.
SIGNALS: dict[bytes, str] = {
    b"anthropic-version": "anthropic",
    b"anthropic-beta": "anthropic",
    b"x-goog-api-client": "gemini",
    b"x-goog-user-project": "gemini",
    b"openai-beta": "openai",
    b"openai-organization": "openai",
    b"openai-project": "openai",
    b"openai-version": "openai",
}
DECIDES = {
    "openai": "openai-version",
    "anthropic": "anthropic-version",
    "gemini": "x-goog-api-key",
}


@dataclass(frozen=True, slots=True)
class Recognised:
    """apis: which it can be; several, where path and headers leave that open. trouble: why it can be none."""

    apis: frozenset[str]
    trouble: Trouble | None = None

    @property
    def likeliest(self) -> Api:
        """Whose errors its client will understand."""
        return _first_of(self.apis)

    def among(self, named: frozenset[str]) -> Api | Trouble | None:
        """The one of these APIs that it speaks, those whose routes name its path; None if it is none of them. Where it could be
        several: what would decide."""
        if len(self.apis) == 1:
            return self.likeliest if self.apis <= named else None
        left = [name for name in APIS if name in self.apis and name in named]
        if len(left) > 1:
            what = ", ".join(f"{DECIDES[name]} for {name}" for name in left)
            message = f"routes of {' and '.join(left)} name this path, and nothing says which is meant: send {what}"
            return Trouble(400, message, "ambiguous_api")
        return APIS[left[0]] if left else None


def recognised(request: WireRequest, names: frozenset[bytes], *, key_in_query: bool) -> Recognised:
    """Look at path and headers; the body has not come yet. names: of the headers. key_in_query: it brings `?key=`, as Google's
    clients may."""
    by_path = may_have(request.path, request.method)
    if not names.isdisjoint(SIGNALS):
        told = sorted(names & SIGNALS.keys())
        return _by_headers(request.path, by_path, [(name.decode("ascii"), SIGNALS[name]) for name in told])
    if len(by_path) == 1:
        return _alone(by_path)
    return Recognised(by_path & _hinted(request, key_in_query) or by_path)


@lru_cache(maxsize=8)
def _alone(apis: frozenset[str]) -> Recognised:
    return Recognised(apis)


@lru_cache(maxsize=8)
def _first_of(apis: frozenset[str]) -> Api:
    return next(api for name, api in APIS.items() if name in apis)


def _by_headers(path: str, by_path: frozenset[str], told: list[tuple[str, str]]) -> Recognised:
    """told: headers and whose they are."""
    apis = frozenset(api for _, api in told)
    if len(apis) > 1:
        one, other = (next(name for name, api in told if api == each) for each in sorted(apis)[:2])
        return _contradiction(by_path, f"{one} and {other} cannot belong to one request: they are of different APIs")
    header, api = told[0]
    # Google's own copy of OpenAI's API takes Google's headers as well.
    if api not in by_path and not (api == "gemini" and "/openai/" in path):
        owner = " and ".join(sorted(by_path))
        return _contradiction(by_path, f"{header} is a header of {api}, and {path[:80]!r} is a path of {owner}")
    return Recognised(apis & by_path or by_path)


def _contradiction(by_path: frozenset[str], why: str) -> Recognised:
    return Recognised(by_path, Trouble(400, f"this request contradicts itself: {why}", "contradicting_api"))


@lru_cache(maxsize=256)
def may_have(path: str, method: str) -> frozenset[str]:
    """The APIs that may have such a path, asked for by this method."""
    parts = path.split("/")
    if "openai" in parts[1:3]:  # Azure's, and Google's copy of OpenAI's API
        return frozenset({"openai"})
    version, resource = parts[1], parts[2] if len(parts) > 2 else ""
    if version == "upload" or version.startswith(GOOGLE_VERSIONS) or (":" in parts[-1] and method == "POST"):
        return frozenset({"gemini"})  # one that is asked for may hold a colon elsewhere, too: ft:gpt-4o:us::1
    return OWNER.get(resource, ALL) if version == "v1" else ALL


def _hinted(request: WireRequest, key_in_query: bool) -> frozenset[str]:
    """What a client is by what it says in passing: enough to tell two APIs apart, too little to contradict a path."""
    agent = (request.header(b"user-agent") or "").lower()
    if key_in_query or request.header(b"x-goog-api-key") is not None:
        return frozenset({"gemini"})
    if "openai/" in agent or request.header(b"api-key") is not None:
        return frozenset({"openai"})
    if "anthropic/" in agent:
        return frozenset({"anthropic"})
    return ALL
