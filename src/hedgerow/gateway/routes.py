"""Which targets a request may go to: the first route of its own API whose path and model fit it. No route, no way out."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import translate
from functools import lru_cache

from hedgerow.engine import Hedger
from hedgerow.gateway.config import Config, TargetConfig
from hedgerow.gateway.sections import RouteSection
from hedgerow.policy.gate import Place
from hedgerow.transports.targets import Home, home_place

__all__ = ["Route", "Routes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One route, ready to use. targets: the primary first, then where its backups go, in order."""

    name: str
    targets: tuple[TargetConfig, ...]
    own_places: tuple[Place, ...]
    hedger: Hedger
    path: re.Pattern[str]
    model: re.Pattern[str]

    @property
    def api(self) -> str:
        """What all of its targets speak."""
        return self.targets[0].dialect

    def places(self, key: str | None) -> tuple[Place, ...]:
        """Its targets as the gate sees them. key: the client's own, by whose limits its calls are held where it goes through."""
        if any(target.passes_keys_through for target in self.targets):
            return tuple(_place(target, key) for target in self.targets)
        return self.own_places

    def fits(self, path: str, models: Sequence[str]) -> bool:
        """Is it meant for this request? models: all that it may be answered by."""
        return self.path.fullmatch(path) is not None and all(
            self.model.fullmatch(model.lower()) is not None for model in models or ("",)
        )


class Routes:
    """The table of routes. Immutable."""

    def __init__(self, config: Config, hedgers: Mapping[str, Hedger]) -> None:
        self.naming = lru_cache(maxsize=256)(self._naming)
        self._routes: Sequence[Route] = [_route(section, config, hedgers) for section in config.routes]

    def find(self, api: str, path: str, models: Sequence[str]) -> Route | None:
        """The first of an API's routes that fits."""
        return next((route for route in self._routes if route.api == api and route.fits(path, models)), None)

    def _naming(self, path: str) -> frozenset[str]:
        """The APIs whose routes name this path, for whatever model."""
        return frozenset(route.api for route in self._routes if route.path.fullmatch(path) is not None)


def _route(section: RouteSection, config: Config, hedgers: Mapping[str, Hedger]) -> Route:
    targets = tuple(config.targets[name] for name in section.targets)
    return Route(
        name=section.path if section.model == "*" else f"{section.path} {section.model}",
        targets=targets,
        own_places=tuple(_place(target, None) for target in targets),
        hedger=hedgers[section.policy or ""],
        path=re.compile(translate(section.path)),
        model=re.compile(translate(section.model.lower())),
    )


def _place(target: TargetConfig, key: str | None) -> Place:
    return home_place(Home(str(target.base_url), key if target.passes_keys_through else target.api_key), target.name)
