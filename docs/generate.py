"""Writes the reference pages from the code, so that they cannot drift: `make docs`; a test compares.

python docs/generate.py [--check]
"""

import inspect
import json
import sys
from pathlib import Path
from typing import Any

import hedgerow
from hedgerow.gateway.sections import (
    ClientKeySection,
    GatewaySection,
    PriceSection,
    RouteSection,
    SloSection,
    TargetSection,
)

HERE = Path(__file__).parent / "reference"
sys.path.insert(0, str(Path(__file__).parents[1]))  # for the tests' table of differences
INTERNAL = {
    "AsyncHttpxTransport.over",
    "AsyncTransport.sharing",
    "HttpxTransport.over",
    "SettingError.at",
    "Hedger.send",
}
GENERATED = "<!-- written by docs/generate.py -->\n"


def policy_page() -> str:
    """Every setting of a policy."""
    lines = [GENERATED, "# Policy settings", "", inspect.getdoc(hedgerow.Policy) or "", ""]
    lines += ["| setting | default | allowed | unit | meaning |", "|---|---|---|---|---|"]
    for row in hedgerow.Policy.table():
        allowed = row.allowed.replace(" | ", ", ")
        lines.append(f"| `{row.name}` | `{row.default!r}` | {allowed} | {row.unit or '–'} | {row.meaning} |")
    lines += ["", "In TOML, as `Policy.load(path, name)` reads it:", "", "```toml", "[policy.interactive]"]
    lines += ["budget = 0.05", "upstream_stream = true", "timeout_s = 30.0", 'hours = ["22:00-24:00"]', "```", ""]
    return "\n".join(lines)


def api_page() -> str:
    """The public names."""
    lines = [GENERATED, "# Python API", ""]
    for name in hedgerow.__all__:
        item = getattr(hedgerow, name)
        lines += [f"## `hedgerow.{name}`", "", inspect.getdoc(item) or "", ""]
        for member in vars(item) if inspect.isclass(item) else ():
            called = callable(getattr(item, member)) and not member.startswith("_")
            if called and f"{name}.{member}" not in INTERNAL and (doc := inspect.getdoc(getattr(item, member))):
                lines += [f"**`.{member}()`** {doc}", ""]
    return "\n".join(lines)


def gateway_page() -> str:
    """Every key of the gateway's file but the policies'."""
    lines = [
        GENERATED,
        "# hedgerow.toml",
        "",
        "The gateway's file; [how it is used](../guides/gateway.md). `[policy.NAME]` takes",
    ]
    lines += ["every [policy setting](policy.md); in a gateway `control_share` is 0.02 unless you say otherwise.", ""]
    for section in (GatewaySection, TargetSection, RouteSection, SloSection, PriceSection, ClientKeySection):
        lines += [f"## {inspect.getdoc(section)}", "", "| key | default | allowed | meaning |", "|---|---|---|---|"]
        schema = section.model_json_schema()
        for name, field in section.model_fields.items():
            default = "must be given" if field.is_required() else f"`{field.get_default(call_default_factory=True)!r}`"
            allowed = _allowed(schema["properties"][name])
            lines.append(f"| `{name}` | {default} | {allowed} | {field.description} |")
        lines.append("")
    return "\n".join(lines)


def _allowed(schema: dict[str, Any]) -> str:
    """A field's JSON schema in words."""
    kinds = [kind for kind in schema.get("anyOf", [schema]) if kind.get("type") != "null"]
    kind = {**schema, **kinds[0]}
    if choices := kind.get("enum"):
        return ", ".join(f"`{json.dumps(each)}`" for each in choices)
    words = {"string": "text", "integer": "whole number", "number": "number", "boolean": "`true`, `false`"}
    text = words.get(kind.get("type", ""), kind.get("type", "").replace("array", "list").replace("object", "table"))
    bounds = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤"}
    limits = [f"{sign} {kind[name]}" for name, sign in bounds.items() if name in kind]
    pattern = [f"`{kind['pattern']}`"] if "pattern" in kind else []
    return " ".join([text, *limits, *pattern])


def differences_page() -> str:
    """What is meant to differ from the bare client."""
    from tests.never_worse.differences import DIFFERENCES, UNPLAYED

    lines = [
        GENERATED,
        "# Differences from the bare client",
        "",
        "Whatever a provider does, a caller behind hedgerow gets what the bare SDK would have got, or better. That is",
        "tested: some hundred courses of a provider's behaviour, and thousands that are drawn, are played to the bare",
        "SDK and to every way of ours, and the outcomes are compared (`tests/never_worse`, `make soak-differential`).",
        "What may differ is this, and nothing else:",
        "",
        "| when | the bare client | hedgerow | why |",
        "|---|---|---|---|",
        *(f"| {each.when} | {each.bare} | {each.ours} | {each.reason} |" for each in DIFFERENCES),
        "",
        "No such course can show these, which differ as well:",
        "",
        "| when | the bare client | hedgerow | why |",
        "|---|---|---|---|",
        *(f"| {each.when} | {each.bare} | {each.ours} | {each.reason} |" for each in UNPLAYED),
    ]
    return "\n".join(lines) + "\n"


PAGES = {
    "policy.md": policy_page,
    "api.md": api_page,
    "gateway.md": gateway_page,
    "differences.md": differences_page,
}


def main() -> int:
    """Write the pages, or with --check say which are stale."""
    stale = [name for name, page in PAGES.items() if not (HERE / name).exists() or (HERE / name).read_text() != page()]
    if "--check" in sys.argv[1:]:
        sys.stderr.writelines(f"docs/reference/{name} is stale: run make docs\n" for name in stale)
        return 1 if stale else 0
    for name in stale:
        (HERE / name).write_text(PAGES[name]())
    return 0


if __name__ == "__main__":
    sys.exit(main())
