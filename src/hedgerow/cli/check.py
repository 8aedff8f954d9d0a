"""`hedgerow check`: what a gateway's file comes to."""

import json
import sys
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from hedgerow.cli.extras import needing
from hedgerow.errors import HedgerowError
from hedgerow.settings import Policy, Prior
from hedgerow.shown import Unshown, looks_like_a_key, shown_address, shown_value

if TYPE_CHECKING:
    from hedgerow.gateway.config import Config

__all__ = ["check"]

HIDDEN = "(hidden)"
WORDS = ("effort", "model", "reasoning_effort", "serviceTier", "service_tier", "speed", "verbosity")


def check(
    config: Annotated[Path, typer.Argument(help="hedgerow.toml")] = Path("hedgerow.toml"),
    as_json: Annotated[bool, typer.Option("--json", help="as JSON")] = False,
) -> None:
    """Reads the gateway's file, says what is wrong with it (exit 2) or prints what it comes to, with keys hidden; warnings go to
    stderr."""
    with needing("check", "gateway"):
        import tomli_w

        from hedgerow.gateway.config import load
        from hedgerow.gateway.route_findings import unnamed_calls
    try:
        read = load(config)
    except (HedgerowError, OSError) as error:
        print(f"hedgerow check: {error}", file=sys.stderr)
        raise typer.Exit(2) from None
    resolved = resolved_of(read)
    print(json.dumps(resolved, indent=2) if as_json else tomli_w.dumps(_known(resolved)).rstrip())
    for warning in read.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    for api, paths in unnamed_calls(
        read.routes, {name: target.dialect for name, target in read.targets.items()}
    ).items():
        print(f"note: no route to a target of {api} names these, so they are 404: {' '.join(paths)}", file=sys.stderr)


def resolved_of(config: "Config") -> dict[str, Any]:
    """The configuration, JSON-ready, without any secret: of `set`, what is known to be none; elsewhere nothing that looks like a
    key that came to the wrong place."""
    return cast("dict[str, Any]", _veiled(_resolved(config)))


def _resolved(config: "Config") -> dict[str, Any]:
    return {
        "gateway": {**config.gateway.model_dump(), "admin_key": config.admin_key and HIDDEN},
        "target": [
            {
                "name": target.name,
                "dialect": target.dialect,
                "base_url": shown_address(str(target.base_url)),
                "api_key": "client" if target.passes_keys_through else target.api_key and HIDDEN,
                "cancel_billing": target.cancel_billing,
                "prefill": target.prefill,
                "set": {name: _harmless(name, value) for name, value in target.set.items()},
            }
            for target in config.targets.values()
        ],
        "route": [route.model_dump() for route in config.routes],
        "policy": {name: _said(policy) for name, policy in config.policies.items()},
        "slo": {name: slo.model_dump(exclude_none=True) for name, slo in config.slos.items()},
        "price": [{each.name: getattr(price, each.name) for each in fields(price)} for price in config.prices],
        "client_key": [
            {**key.model_dump(exclude_none=True), **({"segment_secret": HIDDEN} if key.segment_secret else {})}
            for key in config.client_keys
        ],
    }


def _harmless(name: str, value: object) -> object:
    """What a target lays over a body may be a key, too: numbers, truths and some well-known words are shown."""
    if isinstance(value, dict):
        return {each: _harmless(each, inner) for each, inner in cast("dict[str, object]", value).items()}
    if name in WORDS or isinstance(value, bool | int | float):
        return shown if not isinstance(shown := shown_value(value), Unshown) else HIDDEN
    return HIDDEN


def _veiled(value: Any) -> Any:
    """Without texts and names that look like a key; a SHA-256, which looks so, is none."""
    if isinstance(value, dict):
        given = cast("dict[str, Any]", value)
        return {
            HIDDEN if looks_like_a_key(key) else key: each if key == "sha256" else _veiled(each)
            for key, each in given.items()
        }
    if isinstance(value, list | tuple):
        return [_veiled(each) for each in cast("list[Any]", value)]
    if isinstance(value, str):
        return HIDDEN if looks_like_a_key(value) else value
    return HIDDEN if isinstance(shown_value(value), Unshown) else value


def _said(policy: Policy) -> dict[str, Any]:
    """What differs from the defaults."""
    values = {row.name: getattr(policy, row.name) for row in Policy.table() if getattr(policy, row.name) != row.default}
    if policy.prior is not None:
        values["prior"] = asdict(cast(Prior, policy.prior))
    return values


def _known(value: Any) -> Any:
    """Without what is not set: TOML has no null."""
    if isinstance(value, dict):
        given = cast("dict[str, Any]", value)
        return {key: _known(each) for key, each in given.items() if each not in (None, {}, [])}
    if isinstance(value, list | tuple):
        return [_known(each) for each in cast("list[Any]", value)]
    return value
