"""What hedgerow.toml comes to: loaded, checked, `like` and `env:` resolved. Every complaint names file and line, and shows a
value only where none of its kind can be a secret.

Immutable; a reload makes a new one.
"""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from hedgerow.cost.prices import PriceRule
from hedgerow.errors import SettingError
from hedgerow.gateway.addresses import BaseUrl
from hedgerow.gateway.route_findings import route_mistakes
from hedgerow.gateway.sections import (
    ANY_ORIGIN,
    ClientKeySection,
    File,
    GatewaySection,
    PriceSection,
    RouteSection,
    SloSection,
    TargetSection,
)
from hedgerow.record.store_urls import parse_address
from hedgerow.settings import Policy, policy_of
from hedgerow.shown import listed, looks_like_a_key, shown_address, shown_name, shown_value, unshown
from hedgerow.toml_file import TomlFile, Where

__all__ = ["CLIENTS_KEY", "Config", "TargetConfig", "load"]

Made = TypeVar("Made")
ENV = "env:"
CLIENTS_KEY = "client"
CONTROL_SHARE = 0.02  # a gateway serves many: an honest live comparison is worth two in a hundred calls
DEFAULT_POLICY = "default"
KINDS: Mapping[str, str] = {
    "missing": "must be given",
    "extra_forbidden": "a key that exists here",
    "string_type": "a text in quotes",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a table",
    "model_type": "a table",
    "finite_number": "a number",
}
# Pydantic's own words for these quote what is allowed, and never what was found.
TOLD = frozenset(
    {
        "greater_than",
        "greater_than_equal",
        "less_than",
        "less_than_equal",
        "literal_error",
        "too_long",
        "too_short",
        "value_error",
    }
)
SEEN = TOLD | {"string_pattern_mismatch"}  # the value is of the right type
SECTIONS = (File, GatewaySection, TargetSection, RouteSection, SloSection, PriceSection, ClientKeySection)
NAMES = frozenset(name for section in SECTIONS for name in section.model_fields)
# Of these a plain word or a number may be shown; of all other keys no value is.
SHOWN = frozenset(
    {"admin", "cancel_billing", "currency", "dialect", "like", "listen", "max_body", "model", "name", "path", "policy"}
    | {
        "prefill",
        "record_bodies",
        "requests_per_minute",
        "targets",
        "trust_segment",
        "usd_per_day",
        "usd_rate",
        "workers",
    }
    | {"cached", "extra_cost", "first_token_p99_s", "full_response_p99_s", "input", "output"}
)
HOST = re.compile(r"[A-Za-z0-9.:_%-]{1,255}|\[[0-9A-Fa-f.:%]+\]")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetConfig:
    """An upstream, resolved. api_key: None = none is sent; CLIENTS_KEY = the client's own goes through."""

    name: str
    dialect: Literal["openai", "anthropic", "gemini"]
    base_url: BaseUrl
    api_key: str | None = field(default=None, repr=False)
    cancel_billing: Literal["so_far", "full", "none", "unknown"] = "unknown"
    prefill: bool = False
    set: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)

    @property
    def passes_keys_through(self) -> bool:
        """Does the client's own key go through?"""
        return self.api_key == CLIENTS_KEY


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """A gateway's configuration. `host`, `port` are those of `listen`. Keys are in it: never to be shown, and its repr names no
    more than the file."""

    path: Path
    gateway: GatewaySection = field(repr=False)
    host: str
    port: int
    admin_key: str | None = field(repr=False)
    targets: Mapping[str, TargetConfig] = field(repr=False)
    routes: tuple[RouteSection, ...] = field(repr=False)
    policies: Mapping[str, Policy] = field(repr=False)
    slos: Mapping[str, SloSection] = field(repr=False)
    prices: tuple[PriceRule, ...] = field(repr=False)
    client_keys: tuple[ClientKeySection, ...] = field(repr=False)
    warnings: tuple[str, ...] = ()

    @property
    def only_here(self) -> bool:
        """Can only this machine reach it?"""
        return is_loopback(self.host)


def load(path: str | Path) -> Config:
    """Read, check and resolve a file. Raises SettingError with file and line, OSError if it cannot be read."""
    file = TomlFile(path)
    found = _validated(file)
    if not isinstance(found, File):
        _complain(file, found)  # here, where no error is under way that holds the file
    return _Resolver(file, found).config()


def is_loopback(host: str) -> bool:
    """Is it an address of this machine only? A name that merely begins like one (127.0.0.1.example.com) is not."""
    try:
        address = ip_address(host)
    except ValueError:
        return host == "localhost"
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback


class _Resolver:
    """Follows references inside one file."""

    def __init__(self, file: TomlFile, sections: File) -> None:
        self._file, self._sections = file, sections
        self._warnings: list[str] = []
        self._keys_inside = False

    def config(self) -> Config:
        gateway, sections = self._sections.gateway, self._sections
        host, port = self._listen(gateway.listen)
        if gateway.shared_state is not None:
            fix = "leave it out: budgets are per process, and [gateway] workers share theirs out"
            self._no(("gateway", "shared_state"), gateway.shared_state, "nothing in this version", fix)
        if ANY_ORIGIN in gateway.cors_origins and not sections.client_key:
            fix = "name the pages, or give clients keys: without them any page would spend those of the targets"
            self._no(("gateway", "cors_origins"), ANY_ORIGIN, 'exact origins such as "https://app.example"', fix)
        if gateway.events is not None:
            self._with_place(("gateway", "events"), lambda: parse_address(gateway.events or ""))
        self._unique("target", [target.name for target in sections.target])
        targets = {target.name: target for target in map(self._target, range(len(sections.target)))}
        policies = {
            name: policy_of({"control_share": CONTROL_SHARE, **values}, self._places_in("policy", name))
            for name, values in sections.policy.items()
        }
        for number, route in enumerate(sections.route):
            self._check_route(number, route, targets, policies)
        keys = tuple(self._client_key(number, key) for number, key in enumerate(sections.client_key))
        self._unique("client_key", [key.name for key in keys])
        if any(route.policy is None for route in sections.route):
            policies.setdefault(DEFAULT_POLICY, Policy(control_share=CONTROL_SHARE))
        admin_key = self._secret(("gateway", "admin_key"), gateway.admin_key)
        self._warn_of_idle_routes(targets)
        self._warn_of_open_doors(host, keys, targets)
        return Config(
            path=self._file.path,
            gateway=gateway,
            host=host,
            port=port,
            admin_key=admin_key,
            targets=targets,
            routes=tuple(
                route.model_copy(update={"policy": route.policy or DEFAULT_POLICY}) for route in sections.route
            ),
            policies=policies,
            slos=sections.slo,
            prices=tuple(self._price(number, price) for number, price in enumerate(sections.price)),
            client_keys=keys,
            warnings=tuple(self._warnings),
        )

    def _listen(self, listen: str) -> tuple[str, int]:
        host, _, port = listen.rpartition(":")
        if not HOST.fullmatch(host) or not port.isdecimal() or len(port) > 5 or int(port) > 65_535:
            self._no(("gateway", "listen"), listen, 'HOST:PORT such as "127.0.0.1:8700"; port 0 = any free one')
        return host.strip("[]"), int(port)

    def _warn_of_idle_routes(self, targets: Mapping[str, TargetConfig]) -> None:
        apis = {target.name: target.dialect for target in targets.values()}
        for number, why in route_mistakes(self._sections.route, apis):
            self._warnings.append(f"{self._file.place(('route', number))}: {why}")

    def _target(self, number: int) -> TargetConfig:
        section = self._with_like(number)
        where = ("target", number)
        if section.dialect is None:
            self._no((*where, "dialect"), None, "openai, anthropic or gemini", "name the API it speaks, or use like")
        if section.base_url is None:
            self._no((*where, "base_url"), None, "an address", "give it, or use like")
        return TargetConfig(
            name=section.name,
            dialect=section.dialect,
            base_url=self._base_url((*where, "base_url"), section.base_url),
            api_key=self._api_key((*where, "api_key"), section.api_key),
            cancel_billing=section.cancel_billing,
            prefill=section.prefill,
            set=section.set,
        )

    def _with_like(self, number: int, seen: tuple[str, ...] = ()) -> TargetSection:
        """The section with what it leaves out taken from the one it is `like`."""
        section = self._sections.target[number]
        if section.like is None:
            return section
        names = [target.name for target in self._sections.target]
        if section.like not in names or section.like in (section.name, *seen):
            others = listed(name for name in names if name != section.name)
            self._no(("target", number, "like"), section.like, f"another target ({others}), not in a circle")
        model = self._with_like(names.index(section.like), (*seen, section.name))
        given = section.model_fields_set - {"like"}
        return model.model_copy(update={name: getattr(section, name) for name in given} | {"like": None})

    def _base_url(self, where: Where, text: str) -> BaseUrl:
        url, trouble = _parsed(text)
        if url is None:
            self._no(where, text, 'an http or https address without query such as "https://api.openai.com/v1"', trouble)
        return url

    def _check_route(
        self, number: int, route: RouteSection, targets: Mapping[str, TargetConfig], policies: Mapping[str, Policy]
    ) -> None:
        for name in route.targets:
            if name not in targets:
                self._no(("route", number, "targets"), name, f"names of targets ({listed(targets)})")
        if route.policy is not None and route.policy not in policies:
            found = listed(policies) or "none"
            self._no(("route", number, "policy"), route.policy, f"one of the [policy.NAME] tables ({found})")
        primary, *backups = (targets[name] for name in route.targets)
        for backup in backups:
            if backup.dialect != primary.dialect:
                allowed = f"targets of one dialect: {listed([primary.name])} speaks {primary.dialect}"
                self._no(("route", number, "targets"), backup.name, allowed)
            through = primary.passes_keys_through or backup.passes_keys_through
            if through and backup.base_url != primary.base_url:
                home = shown_address(str(primary.base_url))
                allowed = f'targets at {home} only: with api_key = "client" a key belongs to one provider'
                self._no(("route", number, "targets"), backup.name, allowed, "give each target a key of its own")

    def _client_key(self, number: int, key: ClientKeySection) -> ClientKeySection:
        where = ("client_key", number, "segment_secret")
        secret = self._secret(where, key.segment_secret)
        if key.trust_segment == "signed" and not secret:
            fix = 'trust_segment = "signed" needs the secret that the app\'s server signs with: "env:NAME"'
            self._no(where, key.segment_secret, "a secret", fix)
        return key.model_copy(update={"segment_secret": secret})

    def _api_key(self, where: Where, value: str | None) -> str | None:
        key = self._secret(where, value)
        if key is not None and not (key.isascii() and key.isprintable()):
            self._no(where, "a key", "printable ASCII: it goes into a header")
        return key

    def _secret(self, where: Where, value: str | None) -> str | None:
        """A secret: written out, or "env:NAME". An empty one is none, and would open what it is to close."""
        if value is None:
            return None
        if not value.strip():
            fix = "leave it out where a local server needs none" if where[-1] == "api_key" else "or leave it out"
            self._no(where, value, 'a key, or "env:NAME"', fix)
        if not value.startswith(ENV):
            self._keys_inside |= value != CLIENTS_KEY
            return value
        name = value.removeprefix(ENV)
        if not VARIABLE.fullmatch(name) or looks_like_a_key(name):
            self._no(where, value, '"env:NAME" with the name of an environment variable', "is it the key itself?")
        found = os.environ.get(name, "").strip()
        if not found:
            allowed = f"the name of an environment variable that is set: {name} is not, or is empty"
            self._no(where, value, allowed, f"export {name}=…")
        return found

    def _price(self, number: int, price: PriceSection) -> PriceRule:
        return self._with_place(("price", number), lambda: PriceRule(**price.model_dump()))

    def _with_place(self, where: Where, make: Callable[[], Made]) -> Made:
        """What is made of a key, or its error with the place."""
        try:
            return make()
        except SettingError as error:
            trouble = SettingError(error.name, shown_value(error.value), error.allowed, fix=error.fix)
        raise trouble.at(self._file.place(where))

    def _unique(self, table: str, names: list[str]) -> None:
        for number, name in enumerate(names):
            if name in names[:number]:
                self._no((table, number, "name"), name, "a name that no other has")

    def _warn_of_open_doors(
        self, host: str, keys: tuple[ClientKeySection, ...], targets: Mapping[str, TargetConfig]
    ) -> None:
        pays = [target.name for target in targets.values() if target.api_key and not target.passes_keys_through]
        if not keys and pays and not is_loopback(host):
            who = f"whoever reaches {host} spends the keys of {listed(pays)}"
            self._warnings.append(f"{self._file.place(('gateway', 'listen'))}: there is no [[client_key]]: {who}")
        for number, target in enumerate(self._sections.target):
            place = self._file.place(("target", number, "api_key"))
            if (target.api_key or "").startswith(("sk-", "AIza")):
                self._warnings.append(f'{place}: a key is written out: "env:NAME" keeps it out of the file')
            resolved = targets[target.name]
            origin = resolved.base_url.origin
            if resolved.api_key is not None and not origin.tls and not is_loopback(origin.host):
                place = self._file.place(("target", number, "base_url"))
                said = f"the key of {listed([target.name])} goes over the network in plain text, for all on the way to read"
                self._warnings.append(f"{place}: {said}: use https")
        if self._keys_inside and _is_for_all(self._file.path):
            path = self._file.path
            said = "every user of this machine can read the keys that are written in it"
            self._warnings.append(f"{path}: {said}: chmod 600 {path.name}")

    def _places_in(self, *table: str) -> Callable[[str], str]:
        """Where the keys of a table stand."""
        return lambda key: self._file.place((*table, key))

    def _no(self, where: Where, value: object, allowed: str, fix: str | None = None) -> NoReturn:
        name = ".".join(str(part) for part in where if isinstance(part, str))
        raise SettingError(name, _shown(where[-1], value), allowed, fix=fix, where=self._file.place(where)) from None


def _validated(file: TomlFile) -> File | ErrorDetails:
    try:
        return File.model_validate(file.data)
    except ValidationError as error:
        return error.errors()[0]


def _complain(file: TomlFile, error: ErrorDetails) -> NoReturn:
    """Pydantic's first complaint, in our words."""
    where = [part for part in error["loc"] if part != "[key]"]
    kind, context = error["type"], error.get("ctx", {})
    if kind == "string_pattern_mismatch":
        allowed = f"a text that fits {context['pattern']}"
    elif kind in TOLD:
        allowed = error["msg"].removeprefix("Input should be ").removeprefix("Value error, ")
    else:
        allowed = KINDS.get(kind, "what docs/reference/gateway.md says of it")
    field = next((part for part in reversed(where) if isinstance(part, str)), "")
    name = ".".join(shown_name(part, NAMES) for part in where if isinstance(part, str))
    value = None if kind == "missing" else _shown(field, error["input"]) if kind in SEEN else unshown(error["input"])
    fix = "check the spelling" if kind == "extra_forbidden" else None
    raise SettingError(name, value, allowed, fix=fix, where=file.place(where))


def _shown(field: str | int, value: object) -> object:
    """What a message may show of a key's value."""
    return value if value is None else shown_value(value) if field in SHOWN else unshown(value)


def _parsed(text: str) -> tuple[BaseUrl | None, str | None]:
    """A base URL, or the kind of what is wrong with it."""
    try:
        return BaseUrl.parse(text), None
    except ValueError:
        pass
    if not text.startswith(("http://", "https://")):
        return None, "it begins with neither http:// nor https://"
    for mark, part in (("#", "a fragment"), ("?", "a query"), ("@", "a user")):
        if mark in text:
            return None, f"it has {part}, where a key would be seen by others: keys go into api_key"
    return None, "it names no host, or no possible port"


def _is_for_all(path: Path) -> bool:
    """May every user of the machine read it?"""
    return os.name == "posix" and bool(path.stat().st_mode & 0o004)
