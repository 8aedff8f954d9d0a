"""What a table of routes comes to that its author may not have meant: routes that never fit, routes behind others, paths that
none names."""

import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import translate

from hedgerow.gateway.recognition import may_have
from hedgerow.gateway.sections import RouteSection

__all__ = ["CALLS", "route_mistakes", "unnamed_calls"]

# What each API's clients ask for, one path of each kind.
CALLS: Mapping[str, tuple[str, ...]] = {
    "openai": (
        "/v1/chat/completions",
        "/v1/responses",
        "/v1/responses/ID",
        "/v1/responses/input_tokens",
        "/v1/embeddings",
        "/v1/completions",
        "/v1/moderations",
        "/v1/models",
        "/v1/models/ID",
        "/v1/files",
        "/v1/files/ID",
        "/v1/batches",
        "/v1/batches/ID",
        "/v1/uploads",
        "/v1/images/generations",
        "/v1/images/edits",
        "/v1/audio/speech",
        "/v1/audio/transcriptions",
        "/v1/videos",
        "/v1/fine_tuning/jobs",
        "/v1/vector_stores",
        "/v1/assistants",
        "/v1/threads",
        "/v1/conversations",
        "/v1/containers",
        "/v1/realtime/client_secrets",
    ),
    "anthropic": (
        "/v1/messages",
        "/v1/messages/count_tokens",
        "/v1/messages/batches",
        "/v1/messages/batches/ID",
        "/v1/models",
        "/v1/models/ID",
        "/v1/files",
        "/v1/files/ID",
        "/v1/skills",
        "/v1/complete",
    ),
    "gemini": tuple(
        path
        for version in ("v1beta", "v1")
        for path in (
            *(
                f"/{version}/models/ID:{method}"
                for method in ("generateContent", "streamGenerateContent", "countTokens")
            ),
            *(f"/{version}/models/ID:embedContent", f"/{version}/models", f"/{version}/models/ID", f"/{version}/files"),
            *(f"/{version}/cachedContents", f"/{version}/batches", f"/upload/{version}/files"),
        )
    ),
}
WILD = re.compile(r"[*?\[]")


def route_mistakes(routes: Sequence[RouteSection], api_of: Mapping[str, str]) -> Iterator[tuple[int, str]]:
    """The number of each route that cannot do anything, and why. api_of: of each target."""
    for number, route in enumerate(routes):
        api = api_of[route.targets[0]]
        others = [name for name in CALLS if name != api and _any_fits(route.path, CALLS[name])]
        if not _may_fit(route.path, api) or (others and not _any_fits(route.path, CALLS[api]) and _closed(route.path)):
            yield number, f"path = {route.path!r} can never fit: its targets speak {api}, which has no such path"
            continue
        for before, earlier in enumerate(routes[:number]):
            alike = api_of[earlier.targets[0]] == api
            if alike and _covers(earlier.path, route.path) and _covers(earlier.model.lower(), route.model.lower()):
                yield number, f"it is hidden: route {before + 1} ({earlier.path}) takes all that it would take"
                break


def unnamed_calls(routes: Sequence[RouteSection], api_of: Mapping[str, str]) -> dict[str, list[str]]:
    """Usual calls of each API that there is a target for, but which no route to such a target names: they are 404."""
    found: dict[str, list[str]] = {}
    for api in CALLS:
        if api in api_of.values():
            named = [route.path for route in routes if api_of[route.targets[0]] == api]
            missing = [path for path in CALLS[api] if not any(_fits(pattern, path) for pattern in named)]
            if missing:
                found[api] = missing
    return found


def _fits(pattern: str, path: str) -> bool:
    return re.fullmatch(translate(pattern), path) is not None


def _any_fits(pattern: str, paths: Sequence[str]) -> bool:
    return any(_fits(pattern, path) for path in paths)


def _may_fit(pattern: str, api: str) -> bool:
    """False for a path without wildcards that this API does not have."""
    return WILD.search(pattern) is not None or any(api in may_have(pattern, method) for method in ("GET", "POST"))


def _closed(pattern: str) -> bool:
    """Does it name a resource, or a version that is one API's? `/v1/*` may be meant for paths that are not in our list."""
    return WILD.split(pattern)[0] not in ("", "/", "/v1/")


def _covers(wide: str, narrow: str) -> bool:
    """Does all that fits the narrow pattern fit the wide one? For patterns with * alone; others only if they are the same."""
    if "?" in wide or "[" in wide:
        return wide == narrow
    return _fits(wide, narrow)
