"""The bars of this house: who may import whom, how long things may be. Read from the source with `ast`, never by running it.

The tables come first; each rule is one function from modules to complaints. At the end a made-up bad tree shows that every
rule can fail.
"""

import ast
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
PACKAGE = "hedgerow"
MAX_FILE_LINES, MAX_FUNCTION_LINES, MAX_PARAMETERS = 400, 60, 8
BANNED_NAMES = {"utils", "helpers", "common", "manager", "misc"}

# Beside the command line: what processes say that are started by it.
SPEAKING = {"gateway.__main__", "sandbox.__main__", "sandbox.serving"}

# Nothing that decides may wait, ask the time, roll dice or talk.
IMPURE = frozenset({"asyncio", "logging", "random", "socket", "threading", "time"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Area:
    """What a part of the package may import: layers below `layer` down from `ceiling`, itself, and `also`."""

    layer: int
    third_parties: frozenset[str] = frozenset()
    also: tuple[str, ...] = ()
    ceiling: int = 99
    impure: frozenset[str] = frozenset()
    never: tuple[str, ...] = ()


def edge(*third_parties: str, also: tuple[str, ...] = ()) -> Area:
    return Area(layer=4, third_parties=frozenset(third_parties), also=also)


NOUNS = Area(
    layer=0,
    also=(
        "call_context",
        "clock",
        "errors",
        "hours",
        "retry_ledger",
        "setting_kinds",
        "settings",
        "shown",
        "toml_file",
        "units",
        "values",
    ),
)
MECHANISM = Area(layer=1, third_parties=frozenset({"orjson"}), impure=IMPURE)
DECISION = Area(layer=2, also=("policy", "race.machine", "race.signals"), impure=IMPURE)
ENGINE = Area(layer=3, also=("engine", "race", "record", "sync_hedger", "umpire"))
SHELL = Area(layer=5, also=("", "cli", "dashboard", "replay"))

# The longest matching prefix counts; "" is the package itself, with the names everybody imports.
AREAS: dict[str, Area] = {
    "": Area(layer=5, never=("analysis", "cli", "gateway")),
    "analysis": Area(layer=4, ceiling=3, third_parties=frozenset({"duckdb", "numpy", "orjson"})),
    "budget": MECHANISM,
    "callables": edge(),
    "cli": replace(SHELL, third_parties=frozenset({"openai", "orjson", "rich", "tomli_w", "typer"})),
    "clock": NOUNS,
    "call_context": NOUNS,
    "hours": NOUNS,
    "read_only": NOUNS,
    "retry_ledger": NOUNS,
    "setting_kinds": NOUNS,
    "cost": replace(MECHANISM, third_parties=frozenset({"genai_prices", "orjson"})),
    "dashboard": replace(SHELL, third_parties=frozenset({"orjson", "plotly"})),
    "dialects": MECHANISM,
    "umpire": ENGINE,
    "engine": ENGINE,
    "errors": NOUNS,
    "fanout": edge(),
    "gateway": edge(
        "aiohappyeyeballs",
        "httptools",
        "httpx2",
        "orjson",
        "pydantic",
        "pydantic_core",
        "uvicorn",
        also=("transports", "shared_state"),
    ),
    "policy": DECISION,
    "prefetch": edge(),
    "race": ENGINE,
    "race.machine": DECISION,
    "race.signals": DECISION,
    "record": replace(ENGINE, third_parties=frozenset({"orjson", "psycopg"})),
    "replay": replace(SHELL, third_parties=frozenset({"httpx2", "numpy", "orjson"})),
    "sandbox": edge("cryptography", "orjson"),
    "settings": replace(NOUNS, third_parties=frozenset({"pydantic"})),
    "shared_state": edge("redis"),
    "statistics": MECHANISM,
    "sync_hedger": ENGINE,
    "telemetry": edge("opentelemetry", "prometheus_client"),
    "testing": edge("orjson", "pytest", also=("sandbox",)),
    "transports": edge("anthropic", "google", "httpcore", "httpcore2", "httpx", "httpx2", "openai", "orjson"),
    "short_text": NOUNS,
    "shown": NOUNS,
    "toml_file": NOUNS,
    "units": NOUNS,
    "values": NOUNS,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """One file. `name` is dotted, without the package; None outside the package (tests, benchmarks)."""

    path: str
    name: str | None
    source: str
    tree: ast.Module


@cache  # parsing takes longer than all rules together
def read(root: Path, *folders: str) -> list[Module]:
    modules: list[Module] = []
    for path in sorted(path for folder in folders for path in (root / folder).rglob("*.py")):
        inside = path.relative_to(root)
        dotted = ".".join(inside.with_suffix("").parts).removesuffix(".__init__")
        name = dotted.removeprefix(f"src.{PACKAGE}").removeprefix(".") if dotted.startswith(f"src.{PACKAGE}") else None
        source = path.read_text("utf-8")
        modules.append(Module(path=str(inside), name=name, source=source, tree=ast.parse(source)))
    return modules


def packaged(modules: list[Module]) -> Iterator[tuple[str, Module]]:
    return ((module.name, module) for module in modules if module.name is not None)


def area_name(module: str) -> str | None:
    """The longest prefix in the table; None if it is not there. Only the package itself is ""."""
    parts = module.split(".")
    prefixes = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((prefix for prefix in prefixes if prefix in AREAS), None)


def imports(module: Module, known: set[str]) -> Iterator[str]:
    """Every absolute name imported anywhere in the file: at the top, in functions, for type checking, by import_module."""
    package = (
        (module.name or "").split(".") if module.path.endswith("__init__.py") else (module.name or "").split(".")[:-1]
    )
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = [part for part in package if part][: len(package) - node.level + 1]
                base = ".".join((PACKAGE, *above, *([base] if base else [])))
            for alias in node.names:
                submodule = f"{base}.{alias.name}"
                yield submodule if submodule in known else base
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__")):
            yield from (
                each.value for each in node.args[:1] if isinstance(each, ast.Constant) and isinstance(each.value, str)
            )


def all_imports(modules: list[Module]) -> Iterator[tuple[str, str, str]]:
    """(area, importing file, imported name) of the whole package."""
    known = {f"{PACKAGE}.{name}" for name, _ in packaged(modules)}
    for name, module in packaged(modules):
        if (area := area_name(name)) is not None:
            yield from ((area, module.path, imported) for imported in imports(module, known))


def every_module_has_its_place(modules: list[Module]) -> list[str]:
    return [
        f"{module.path}: not in the table of layers" for name, module in packaged(modules) if area_name(name) is None
    ]


def layers_are_kept(modules: list[Module]) -> list[str]:
    complaints: list[str] = []
    for here, path, imported in all_imports(modules):
        top, _, inner = imported.partition(".")
        there = area_name(inner)
        if top != PACKAGE or there is None or there == here:
            continue
        mine, other = AREAS[here], AREAS[there]
        below = other.layer < min(mine.layer, mine.ceiling)
        if there in mine.never or not (below or there in mine.also):
            complaints.append(f"{path}: {here or PACKAGE} may not import {there or PACKAGE}")
    return complaints


def third_parties_stay_in_their_area(modules: list[Module]) -> list[str]:
    return [
        f"{path}: {here or PACKAGE} may not use {top}"
        for here, path, imported in all_imports(modules)
        if (top := imported.partition(".")[0]) != PACKAGE
        and top not in sys.stdlib_module_names
        and top not in AREAS[here].third_parties
    ]


def what_decides_is_pure(modules: list[Module]) -> list[str]:
    complaints = [
        f"{path}: {here} is pure and may not use {imported}"
        for here, path, imported in all_imports(modules)
        if imported.partition(".")[0] in AREAS[here].impure
    ]
    for name, module in packaged(modules):
        if (area := area_name(name)) is not None and AREAS[area].impure:
            waits = [node for node in ast.walk(module.tree) if isinstance(node, ast.AsyncFunctionDef | ast.Await)]
            complaints += [f"{module.path}:{node.lineno}: what is pure does not wait" for node in waits]
    return complaints


def functions(module: Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(module.tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def files_are_short(modules: list[Module]) -> list[str]:
    lengths = ((module.path, len(module.source.splitlines())) for module in modules)
    return [f"{path}: {lines} lines, at most {MAX_FILE_LINES}" for path, lines in lengths if lines > MAX_FILE_LINES]


def functions_are_short(modules: list[Module]) -> list[str]:
    return [
        f"{module.path}:{node.lineno}: {node.name} has {lines} lines, at most {MAX_FUNCTION_LINES}"
        for module in modules
        for node in functions(module)
        if (lines := (node.end_lineno or node.lineno) - node.lineno + 1) > MAX_FUNCTION_LINES
    ]


def parameters_are_few(modules: list[Module]) -> list[str]:
    complaints: list[str] = []
    for module in modules:
        for node in functions(module):
            asked = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg]
            names = [argument.arg for argument in asked if argument is not None and argument.arg not in {"self", "cls"}]
            if len(names) > MAX_PARAMETERS:
                complaints.append(
                    f"{module.path}:{node.lineno}: {node.name} has {len(names)}, at most {MAX_PARAMETERS}"
                )
    return complaints


def modules_say_what_they_own(modules: list[Module]) -> list[str]:
    docstrings = ((module.path, ast.get_docstring(module.tree) or "") for _, module in packaged(modules))
    return [f"{path}: no docstring" for path, text in docstrings if not text.strip()]


def files_are_named_for_what_they_hold(modules: list[Module]) -> list[str]:
    return [
        f"{module.path}: says nothing"
        for module in modules
        if BANNED_NAMES & set(Path(module.path).with_suffix("").parts)
    ]


def public_names_are_sorted(modules: list[Module]) -> list[str]:
    """CONSTANTS, Classes, functions: each group by name."""
    complaints: list[str] = []
    for module in modules:
        for node in module.tree.body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                names: list[str] = ast.literal_eval(node.value)
                if names != sorted(
                    names, key=lambda name: (0 if name.isupper() else 1 if name[0].isupper() else 2, name)
                ):
                    complaints.append(f"{module.path}: __all__ is not sorted")
    return complaints


def only_shells_print(modules: list[Module]) -> list[str]:
    return [
        f"{module.path}:{node.lineno}: print"
        for name, module in packaged(modules)
        if area_name(name) != "cli" and name not in SPEAKING
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]


RULES: dict[str, Callable[[list[Module]], list[str]]] = {
    rule.__name__: rule
    for rule in (
        every_module_has_its_place,
        layers_are_kept,
        third_parties_stay_in_their_area,
        what_decides_is_pure,
        files_are_short,
        functions_are_short,
        parameters_are_few,
        modules_say_what_they_own,
        files_are_named_for_what_they_hold,
        public_names_are_sorted,
        only_shells_print,
    )
}

GOOD_TREE = {
    "__init__.py": '"""."""\nfrom hedgerow.engine import Hedger\nfrom hedgerow.transports import hedged\n',
    "errors.py": '"""."""\n',
    "dialects/__init__.py": '"""."""\n',
    "dialects/chat.py": '"""."""\nimport json\nimport orjson\nfrom hedgerow import errors\n',
    "policy/__init__.py": '"""."""\n',
    "policy/plan.py": '"""."""\nfrom hedgerow.dialects.chat import x\n',
    "race/__init__.py": '"""."""\n',
    "race/machine.py": '"""."""\nfrom hedgerow.policy import plan\nfrom hedgerow.race.signals import y\n',
    "race/signals.py": '"""."""\n',
    "race/driver.py": '"""."""\nimport asyncio\nfrom .machine import z\n',
    "engine.py": '"""."""\nimport time\nfrom hedgerow.race.driver import Race\n',
    "sandbox/__main__.py": '"""."""\nprint("listening")\n',
    "testing/__init__.py": '"""."""\nfrom hedgerow.sandbox import server\n',
    "transports/__init__.py": '"""."""\nimport httpx2\nfrom hedgerow.engine import Hedger\n',
    "gateway/__init__.py": '"""."""\nfrom hedgerow.transports import hedged\n',
    "analysis/__init__.py": '"""."""\nimport numpy\nfrom hedgerow.policy.plan import x\n',
    "cli/__init__.py": '"""."""\nimport hedgerow\nimport hedgerow.analysis\nprint(1)\n',
}

BAD_FILES = [
    ("every_module_has_its_place", "novelty.py", ""),
    ("layers_are_kept", "values.py", "from hedgerow.dialects import chat"),
    ("layers_are_kept", "values.py", "def f():\n    import hedgerow.engine"),
    ("layers_are_kept", "values.py", "if TYPE_CHECKING:\n    from hedgerow.policy.plan import Plan"),
    ("layers_are_kept", "values.py", "import importlib\nimportlib.import_module('hedgerow.engine')"),
    ("layers_are_kept", "values.py", "import hedgerow"),
    ("layers_are_kept", "dialects/x.py", "from ..engine import Hedger"),
    ("layers_are_kept", "dialects/x.py", "from .. import engine"),
    ("layers_are_kept", "dialects/x.py", "from hedgerow.statistics.ring import Ring"),
    ("layers_are_kept", "dialects/__init__.py", "from ..policy import plan"),
    ("layers_are_kept", "race/machine.py", "from hedgerow.race.driver import Race"),
    ("layers_are_kept", "race/signals.py", "from .driver import Race"),
    ("layers_are_kept", "policy/x.py", "from hedgerow.engine import Hedger"),
    ("layers_are_kept", "engine.py", "from hedgerow.transports import hedged"),
    ("layers_are_kept", "sandbox/x.py", "from hedgerow.transports import hedged"),
    ("layers_are_kept", "transports/x.py", "from hedgerow.gateway import app"),
    ("layers_are_kept", "callables.py", "from hedgerow.fanout import gather"),
    ("layers_are_kept", "analysis/x.py", "from hedgerow.engine import Hedger"),
    ("layers_are_kept", "analysis/x.py", "from hedgerow.race.driver import Race"),
    ("layers_are_kept", "__init__.py", "from hedgerow.gateway import app"),
    ("layers_are_kept", "__init__.py", "from hedgerow import analysis"),
    ("third_parties_stay_in_their_area", "errors.py", "import orjson"),
    ("third_parties_stay_in_their_area", "dialects/x.py", "import genai_prices"),
    ("third_parties_stay_in_their_area", "policy/x.py", "import orjson"),
    ("third_parties_stay_in_their_area", "race/driver.py", "def f():\n    import httpx2"),
    ("what_decides_is_pure", "policy/x.py", "import time"),
    ("what_decides_is_pure", "policy/x.py", "from random import random"),
    ("what_decides_is_pure", "race/machine.py", "async def advance(): ..."),
    ("what_decides_is_pure", "race/signals.py", "import asyncio.events"),
    ("what_decides_is_pure", "dialects/x.py", "import logging"),
    ("files_are_short", "errors.py", "x = 1\n" * (MAX_FILE_LINES + 1)),
    ("functions_are_short", "errors.py", "def f():\n" + "    x = 1\n" * MAX_FUNCTION_LINES),
    ("parameters_are_few", "errors.py", "def f(a, b, /, c, d, *e, f, g, h, **i): ..."),
    ("modules_say_what_they_own", "errors.py", None),
    ("files_are_named_for_what_they_hold", "policy/helpers.py", ""),
    ("files_are_named_for_what_they_hold", "policy/utils/x.py", ""),
    ("public_names_are_sorted", "errors.py", "__all__ = ['b', 'a']"),
    ("public_names_are_sorted", "errors.py", "__all__ = ['a', 'B']"),
    ("only_shells_print", "engine.py", "print('here')"),
    ("only_shells_print", "sandbox/x.py", "def f():\n    print('here')"),
]


def write_tree(root: Path, files: dict[str, str]) -> list[Module]:
    for name, source in files.items():
        path = root / "src" / PACKAGE / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source, "utf-8")
    return read(root, "src")


@pytest.mark.parametrize("rule", RULES)
def test_the_house_keeps_its_rule(rule):
    assert RULES[rule](read(REPOSITORY, "src", "tests", "benchmarks")) == []


@pytest.mark.parametrize("rule", RULES)
def test_a_good_tree_has_no_complaints(rule, tmp_path):
    assert RULES[rule](write_tree(tmp_path, GOOD_TREE)) == []


@pytest.mark.parametrize(("rule", "name", "source"), BAD_FILES)
def test_every_rule_can_fail(rule, name, source, tmp_path):
    bad = "" if source is None else f'"""."""\n{source}\n'
    complaints = RULES[rule](write_tree(tmp_path, {**GOOD_TREE, name: bad}))
    assert len(complaints) == 1
    assert name in complaints[0]


def test_every_rule_is_shown_to_fail():
    assert {rule for rule, _, _ in BAD_FILES} == set(RULES)
