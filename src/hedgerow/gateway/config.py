"""What hedgerow.toml comes to: loaded, checked, `like` and `env:` resolved. Every complaint names file and line.

Immutable; a reload makes a new one.
"""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Literal, NoReturn

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from hedgerow.cost.prices import PriceRule
from hedgerow.errors import SettingError
from hedgerow.gateway.addresses import BaseUrl
from hedgerow.gateway.sections import ClientKeySection, File, GatewaySection, RouteSection, SloSection, TargetSection
from hedgerow.settings import Policy, policy_of
from hedgerow.toml_file import TomlFile, Where

__all__ = ["CLIENTS_KEY", "Config", "TargetConfig", "load"]

ORIGIN = re.compile(
    r"https?://[a-z0-9.-]+(?::\d{1,5})?|https?://\[[0-9a-f:]+\](?::\d{1,5})?|[a-z][a-z0-9+-]+://[a-z0-9.-]+"
)
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
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetConfig:
    """An upstream, resolved. api_key: None = none is sent; CLIENTS_KEY = the client's own goes through."""

    name: str
    dialect: Literal["openai", "anthropic", "gemini"]
    base_url: BaseUrl
    api_key: str | None = field(default=None, repr=False)
    cancel_billing: Literal["so_far", "full", "none", "unknown"] = "unknown"
    prefill: bool = False
    set: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def passes_keys_through(self) -> bool:
        """Does the client's own key go through?"""
        return self.api_key == CLIENTS_KEY


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """A gateway's configuration. `host`, `port` are those of `listen`. Keys are in it: never to be shown."""

    path: Path
    gateway: GatewaySection
    host: str
    port: int
    admin_key: str | None = field(repr=False)
    targets: Mapping[str, TargetConfig]
    routes: tuple[RouteSection, ...]
    policies: Mapping[str, Policy]
    slos: Mapping[str, SloSection]
    prices: tuple[PriceRule, ...]
    client_keys: tuple[ClientKeySection, ...]
    warnings: tuple[str, ...] = ()

    @property
    def only_here(self) -> bool:
        """Can only this machine reach it?"""
        return is_loopback(self.host)


def load(path: str | Path) -> Config:
    """Read, check and resolve a file. Raises SettingError with file and line, OSError if it cannot be read."""
    file = TomlFile(path)
    try:
        sections = File.model_validate(file.data)
    except ValidationError as error:
        _complain(file, error.errors()[0])
    return _Resolver(file, sections).config()


def is_loopback(host: str) -> bool:
    """Is it an address of this machine only? A name that merely begins like one (127.0.0.1.example.com) is not."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class _Resolver:
    """Follows references inside one file."""

    def __init__(self, file: TomlFile, sections: File) -> None:
        self._file, self._sections = file, sections
        self._warnings: list[str] = []

    def config(self) -> Config:
        gateway, sections = self._sections.gateway, self._sections
        host, port = self._listen(gateway.listen)
        if gateway.shared_state is not None:
            fix = "leave it out: budgets are per process, and [gateway] workers share theirs out"
            self._no(("gateway", "shared_state"), gateway.shared_state, "nothing in this version", fix)
        keyless = not sections.client_key
        for origin in gateway.cors_origins:
            self._check_origin(origin, keyless=keyless)
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
        self._warn_of_open_doors(host, keys, targets)
        return Config(
            path=self._file.path,
            gateway=gateway,
            host=host,
            port=port,
            admin_key=self._from_environment(("gateway", "admin_key"), gateway.admin_key),
            targets=targets,
            routes=tuple(
                route.model_copy(update={"policy": route.policy or DEFAULT_POLICY}) for route in sections.route
            ),
            policies=policies,
            slos=sections.slo,
            prices=tuple(PriceRule(**price.model_dump()) for price in sections.price),
            client_keys=keys,
            warnings=tuple(self._warnings),
        )

    def _listen(self, listen: str) -> tuple[str, int]:
        host, _, port = listen.rpartition(":")
        if not host or not port.isdecimal() or int(port) > 65_535:
            self._no(("gateway", "listen"), listen, 'HOST:PORT such as "127.0.0.1:8700"; port 0 = any free one')
        return host.strip("[]"), int(port)

    def _check_origin(self, origin: str, *, keyless: bool) -> None:
        where = ("gateway", "cors_origins")
        if origin == "*":
            if keyless:
                fix = "name the pages, or give clients keys: without them any page would spend those of the targets"
                self._no(where, origin, 'exact origins such as "https://app.example"', fix)
        elif ORIGIN.fullmatch(origin) is None:
            self._no(
                where, origin, 'an origin as browsers send it, "https://app.example", without path or slash at its end'
            )

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
            others = ", ".join(name for name in names if name != section.name)
            self._no(("target", number, "like"), section.like, f"another target ({others}), not in a circle")
        model = self._with_like(names.index(section.like), (*seen, section.name))
        given = section.model_fields_set - {"like"}
        return model.model_copy(update={name: getattr(section, name) for name in given} | {"like": None})

    def _base_url(self, where: Where, text: str) -> BaseUrl:
        try:
            return BaseUrl.parse(text)
        except ValueError:
            self._no(where, text, 'an http or https address without query such as "https://api.openai.com/v1"')

    def _check_route(
        self, number: int, route: RouteSection, targets: Mapping[str, TargetConfig], policies: Mapping[str, Policy]
    ) -> None:
        for name in route.targets:
            if name not in targets:
                self._no(("route", number, "targets"), name, f"names of targets ({', '.join(targets)})")
        if route.policy is not None and route.policy not in policies:
            found = ", ".join(policies) or "none"
            self._no(("route", number, "policy"), route.policy, f"one of the [policy.NAME] tables ({found})")
        primary, *backups = (targets[name] for name in route.targets)
        for backup in backups:
            if backup.dialect != primary.dialect:
                allowed = f"targets of one dialect: {primary.name} speaks {primary.dialect}"
                self._no(("route", number, "targets"), backup.name, allowed)
            through = primary.passes_keys_through or backup.passes_keys_through
            if through and backup.base_url != primary.base_url:
                allowed = f'targets at {primary.base_url} only: with api_key = "client" a key belongs to one provider'
                self._no(("route", number, "targets"), backup.name, allowed, "give each target a key of its own")

    def _client_key(self, number: int, key: ClientKeySection) -> ClientKeySection:
        where = ("client_key", number, "segment_secret")
        secret = self._from_environment(where, key.segment_secret)
        if key.trust_segment == "signed" and not secret:
            fix = 'trust_segment = "signed" needs the secret that the app\'s server signs with: "env:NAME"'
            self._no(where, key.segment_secret, "a secret", fix)
        return key.model_copy(update={"segment_secret": secret})

    def _api_key(self, where: Where, value: str | None) -> str | None:
        key = self._from_environment(where, value)
        if key is not None and not (key.isascii() and key.isprintable()):
            self._no(where, "a key", "printable ASCII: it goes into a header")
        return key

    def _from_environment(self, where: Where, value: str | None) -> str | None:
        """A secret: written out, or "env:NAME"."""
        if value is None or not value.startswith(ENV):
            return value
        name = value.removeprefix(ENV)
        found = os.environ.get(name, "")
        if not found.strip():
            self._no(where, value, "the name of an environment variable that is set", f"export {name}=…")
        return found.strip()

    def _unique(self, table: str, names: list[str]) -> None:
        for number, name in enumerate(names):
            if name in names[:number]:
                self._no((table, number, "name"), name, "a name that no other has")

    def _warn_of_open_doors(
        self, host: str, keys: tuple[ClientKeySection, ...], targets: Mapping[str, TargetConfig]
    ) -> None:
        pays = [target.name for target in targets.values() if target.api_key and not target.passes_keys_through]
        if not keys and pays and not is_loopback(host):
            who = f"whoever reaches {host} spends the keys of {', '.join(pays)}"
            self._warnings.append(f"{self._file.place(('gateway', 'listen'))}: there is no [[client_key]]: {who}")
        for number, target in enumerate(self._sections.target):
            if (target.api_key or "").startswith(("sk-", "AIza")):
                place = self._file.place(("target", number, "api_key"))
                self._warnings.append(f'{place}: a key is written out: "env:NAME" keeps it out of the file')

    def _places_in(self, *table: str) -> Callable[[str], str]:
        """Where the keys of a table stand."""
        return lambda key: self._file.place((*table, key))

    def _no(self, where: Where, value: object, allowed: str, fix: str | None = None) -> NoReturn:
        name = ".".join(str(part) for part in where if isinstance(part, str))
        raise SettingError(name, value, allowed, fix=fix, where=self._file.place(where))


def _complain(file: TomlFile, error: ErrorDetails) -> NoReturn:
    """Pydantic's first complaint, in our words."""
    where = [part for part in error["loc"] if part != "[key]"]
    name = ".".join(str(part) for part in where if isinstance(part, str))
    kind = error["type"]
    context = error.get("ctx", {})
    allowed = KINDS.get(kind)
    if allowed is None and kind == "string_pattern_mismatch":
        allowed = f"a text that fits {context['pattern']}"
    elif allowed is None:
        allowed = error["msg"].removeprefix("Input should be ").removeprefix("Value error, ")
    value = None if kind == "missing" else error["input"]
    fix = "check the spelling" if kind == "extra_forbidden" else None
    raise SettingError(name, value, allowed, fix=fix, where=file.place(where))
