"""Writes the reference pages from the code, so that they cannot drift: `make docs`; a test compares.

python docs/generate.py [--check]
"""

import inspect
import sys
from pathlib import Path

import hedgerow

HERE = Path(__file__).parent / "reference"
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


PAGES = {"policy.md": policy_page, "api.md": api_page}


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
