"""Every setting a user can make, in one place: its default, unit, range and meaning.

The fields of Policy ARE the table: code, TOML errors and the reference page read it from there (`Policy.table()`).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from hedgerow.errors import SettingError
from hedgerow.hours import Hours, parse_hours, parse_zone
from hedgerow.setting_kinds import (
    Prior,
    Setting,
    read_control,
    read_count,
    read_delay,
    read_flag,
    read_hours,
    read_limit,
    read_one_of,
    read_prior,
    read_share,
    read_share_or_off,
    read_stall,
    read_tokens,
    read_window,
    read_words,
    read_zone,
    setting,
)
from hedgerow.shown import shown_address, shown_name, shown_value, unshown
from hedgerow.toml_file import TomlFile
from hedgerow.units import Delay, Window, parse_share

__all__ = ["Policy", "Prior", "Setting", "Target", "policy_of"]

RESCUES = ("off",)
CANCEL_BILLING = ("so_far", "full", "none", "unknown")


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """When a backup is sent, and what it may cost. Immutable; safe to share between clients, tasks and threads.

    Raises SettingError for a value out of range; it names the setting, the value, the range and the fix. `Policy.table()`
    lists every setting with its unit, range, default and meaning.
    """

    mode: Literal["act", "observe"] = setting(
        "act",
        read_one_of,
        allowed="act | observe",
        meaning="observe: nothing is sent, the events say what would have been",
    )
    trigger: Literal["lag", "first_token", "response", "off"] = setting(
        "lag",
        read_one_of,
        allowed="lag | first_token | response | off",
        meaning="what makes an attempt late: behind schedule, no first content, or no complete answer",
    )
    delay: float | str | Delay = setting(
        "auto",
        read_delay,
        unit="seconds",
        allowed='"auto", seconds ≥ 0, "200ms", "p95" or "p95+200ms"',
        meaning="how late is too late: auto is steered by the budget; a quantile is that of the key's recent calls",
    )
    window: int | str | Window = setting(
        1000,
        read_window,
        unit="requests",
        allowed='requests from 20 to 100000, or a time such as "7d"',
        meaning="what a quantile delay looks back on",
    )
    on_trigger: Literal["race", "resend"] = setting(
        "race",
        read_one_of,
        allowed="race | resend",
        meaning="resend: cancel the late attempt and send again, instead of racing the two",
    )
    budget: float | str = setting(
        0.05,
        read_share_or_off,
        unit="share",
        allowed='0 to 1, "5%", or "off"',
        meaning="losing backups per request the policy may hedge; off: no bucket and no guards",
    )
    budget_requests: float | str | None = setting(
        None,
        read_share,
        unit="share",
        allowed='0 to 1, or "5%"',
        meaning="second cap: backups sent per request the policy may hedge",
    )
    max_backups: int = setting(2, read_count, unit="attempts", allowed="0 to 4", meaning="extra attempts per request")
    timeout_s: float | None = setting(
        None,
        read_limit,
        unit="seconds",
        allowed="> 0",
        meaning="the whole request, delivery of a stream included",
    )
    attempt_timeout_s: float | None = setting(
        None,
        read_limit,
        unit="seconds",
        allowed="> 0, shorter than timeout_s",
        meaning="one attempt, until it is committed to; it then fails and may be replaced",
    )
    first_token_timeout_s: float | None = setting(
        None,
        read_limit,
        unit="seconds",
        allowed="> 0",
        meaning="no first token by then fails the attempt; independent of hedging",
    )
    upstream_stream: bool = setting(
        False,
        read_flag,
        allowed="true | false",
        meaning="a call that did not ask for a stream is streamed upstream and put together, so that late can be told from long",
    )
    hours: Sequence[str] = setting(
        (), read_hours, allowed='a list such as ["22:00-24:00"]', meaning="hedge only then; empty = always"
    )
    time_zone: str = setting("UTC", read_zone, allowed="an IANA name", meaning="of hours")
    segments: Sequence[str] = setting(
        (), read_words, allowed="names", meaning="hedge only calls of these segments (hedgerow.context); empty = all"
    )
    never: Sequence[str] = setting(
        (),
        read_words,
        allowed="tools | cached_context | streams | reasoning",
        meaning="kinds of calls that are not hedged",
    )
    allow: Sequence[str] = setting(
        (),
        read_words,
        allowed="store | server_tools | n | images | audio",
        meaning="what may run twice though it costs or leaves something twice",
    )
    max_input_tokens: int | None = setting(
        None, read_tokens, unit="tokens", allowed="> 0", meaning="larger requests are not hedged"
    )
    stall_s: float | str | None = setting(
        None,
        read_stall,
        unit="seconds",
        allowed='> 0, or "auto": 20 times the key\'s 99th percentile of gaps, at least 10 s',
        meaning="mid-stream watchdog: a stream that says nothing for so long is ended; pings do not count",
    )
    control_share: float | str = setting(
        0.0,
        read_control,
        unit="share",
        allowed="0 to 0.5",
        meaning="share of calls that are never hedged, to state the gain against",
    )
    prior: Prior | Mapping[str, float] | None = setting(
        None,
        read_prior,
        allowed="{first_token_s, token_s, lag_s}",
        meaning="starting values while a key is cold",
    )

    def __post_init__(self) -> None:
        for row in self.table():
            object.__setattr__(self, row.name, row.read(getattr(self, row.name), row))
        if (
            self.timeout_s is not None
            and self.attempt_timeout_s is not None
            and self.attempt_timeout_s >= self.timeout_s
        ):
            allowed = f"less than timeout_s = {self.timeout_s:g}"
            raise SettingError("attempt_timeout_s", self.attempt_timeout_s, allowed, fix="shorten it, or leave it out")
        if self.trigger == "lag" and isinstance(self.delay, str) and self.delay.strip().startswith("p"):
            raise SettingError(
                "delay", self.delay, '"auto" or seconds with trigger = "lag"', fix='use trigger = "first_token"'
            )
        if self.budget == "off" and self.budget_requests is not None:
            raise SettingError(
                "budget_requests", self.budget_requests, "None with budget = 'off'", fix="set a budget too"
            )

    @classmethod
    def table(cls) -> tuple[Setting, ...]:
        """Every setting, in the order of the reference page."""
        return tuple(Setting(name=row.name, default=row.default, **row.metadata) for row in fields(cls))

    @classmethod
    def load(cls, path: str | Path, name: str | None = None) -> "Policy":
        """The table `[policy.NAME]` of a TOML file; without `name` the file must hold exactly one.

        Raises SettingError with file and line for unknown or impossible settings, OSError if the file cannot be read.
        """
        file = TomlFile(path, "policy")
        tables: Mapping[str, Any] = file.data.get("policy", {})
        if name is None and len(tables) == 1:
            name = next(iter(tables))
        if name is None or name not in tables:
            found = ", ".join(tables) or "none"
            raise SettingError(
                "policy", name, f"one of the [policy.NAME] tables in the file ({found})", where=str(path)
            )
        return policy_of(tables[name], lambda key: file.place(("policy", name, key)))

    @property
    def hedges(self) -> bool:
        """Can this policy ever send a second attempt?"""
        return self.max_backups > 0

    @property
    def share(self) -> float | None:
        """The budget as a share; None when it is off."""
        return None if isinstance(self.budget, str) else self.budget

    @property
    def open_hours(self) -> Hours:
        """When to hedge."""
        return Hours(parse_hours(self.hours), parse_zone(self.time_zone))

    @property
    def requests_share(self) -> float | None:
        """`budget_requests` as a share; None when it is not set."""
        return None if self.budget_requests is None else parse_share(self.budget_requests)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where backups go instead of the primary's own endpoint.

    base_url: as the SDK takes it (None: the client's own); a query (`?api-version=…`) goes along. api_key: sent instead of the
    client's (None: the client's own if the origin is the same, none otherwise: a key is never sent to a foreign origin), in the
    header where the target looks for it: at an Azure address `api-key`, at another of OpenAI's kind a bearer token. set: laid
    over the JSON body, for example {"service_tier": "priority"} or {"model": "…"}. name: how events call it (default: the origin,
    or "backup-N").
    cancel_billing: what it charges for a call that was closed (so_far, full, none, unknown), for the cost in events.
    """

    base_url: str | None = field(default=None, repr=False)  # its query may hold a key
    api_key: str | None = field(default=None, repr=False)
    set: Mapping[str, object] = field(default_factory=dict[str, object], repr=False)
    name: str | None = None
    cancel_billing: Literal["so_far", "full", "none", "unknown"] = "unknown"

    def __post_init__(self) -> None:
        if self.base_url is not None and not re.match(r"https?://[^/]", self.base_url):
            url = shown_address(self.base_url)
            raise SettingError("base_url", url, 'an http or https URL such as "https://eu.example/v1"')
        if self.base_url is not None and "#" in self.base_url:
            url = shown_address(self.base_url)
            raise SettingError("base_url", url, "a URL without a fragment (#…), which no server would see")
        if self.cancel_billing not in CANCEL_BILLING:
            raise SettingError("cancel_billing", self.cancel_billing, ", ".join(CANCEL_BILLING))
        if self.base_url is None and self.api_key is None and not self.set:
            raise SettingError(
                "Target",
                "nothing",
                "at least one of base_url, api_key and set",
                fix="leave `backup` out to hedge at the same place",
            )


def policy_of(values: Mapping[str, Any], place: Callable[[str], str]) -> Policy:
    """The policy of a table in a file. place: "FILE:LINE" of a key. Raises SettingError with the place."""
    settings, known = dict(values), {row.name: row for row in Policy.table()}
    if (rescue := settings.pop("rescue", "off")) not in RESCUES:
        fix = "mid-stream rescue is not in this version"
        raise SettingError("rescue", shown_value(rescue), ", ".join(RESCUES), fix=fix, where=place("rescue"))
    for key, value in settings.items():
        if key not in known:
            allowed, name = f"one of {', '.join(known)}", shown_name(key, known)
            raise SettingError(name, unshown(value), allowed, fix="check the spelling", where=place(key))
    try:
        return Policy(**settings)
    except SettingError as error:
        trouble = SettingError(error.name, shown_value(error.value), error.allowed, fix=error.fix)
    raise trouble.at(place(trouble.name))
