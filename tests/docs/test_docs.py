"""The documentation is true: its code runs, its reference pages are those of the code, nothing public is undocumented."""

import asyncio
import dataclasses
import importlib.util
import inspect
import re
from pathlib import Path
from types import ModuleType

import pytest

import hedgerow
from hedgerow.gateway.config import load
from hedgerow.testing.process import SandboxProcess
from hedgerow.values.event import AttemptEvent, Event

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
BLOCKS = [(page, block) for page in PAGES for block in BLOCK.findall(page.read_text())]


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_reference_pages_are_those_of_the_code() -> None:
    for name, page in generator().PAGES.items():
        assert (ROOT / "docs" / "reference" / name).read_text() == page(), f"{name} is stale: run make docs"


@pytest.mark.parametrize("kind", [Event, AttemptEvent])
def test_every_field_of_the_record_is_explained(kind: type) -> None:
    page = (ROOT / "docs" / "reference" / "events.md").read_text()
    for field in dataclasses.fields(kind):
        assert f"`{field.name}`" in page, f"{kind.__name__}.{field.name} is not explained"


def test_the_gateways_example_file_and_the_tables_of_its_guide_are_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "SEGMENTS"):
        monkeypatch.setenv(name, "k")
    assert load(ROOT / "deploy" / "hedgerow.toml").warnings == ()
    guide = (ROOT / "docs" / "guides" / "gateway.md").read_text()
    tables = re.findall(r"^```toml\n(.*?)^```", guide, re.MULTILINE | re.DOTALL)
    (tmp_path / "hedgerow.toml").write_text("\n".join(tables).replace('sha256 = "…"', f'sha256 = "{"0" * 64}"'))
    config = load(tmp_path / "hedgerow.toml")
    assert (len(config.routes), len(config.client_keys)) == (1, 1)


def test_every_claim_of_the_threat_model_names_tests_that_are_there() -> None:
    page = (ROOT / "docs" / "concepts" / "threat-model.md").read_text()
    claims = [line for line in page.splitlines() if line.startswith("|") and "`tests/" in line]
    assert len(claims) > 9
    named = {name for line in claims for name in re.findall(r"`(tests/[^`]+)`", line)}
    assert not [name for name in sorted(named) if not (ROOT / name).exists()]


def test_every_public_name_has_a_docstring() -> None:
    for name in hedgerow.__all__:
        assert inspect.getdoc(getattr(hedgerow, name)), name


def test_there_is_code_to_run() -> None:
    assert len(BLOCKS) >= 3


@pytest.mark.parametrize(("page", "code"), BLOCKS, ids=[f"{p.name}-{n}" for n, (p, _) in enumerate(BLOCKS)])
def test_the_code_in_the_docs_runs(
    page: Path, code: str, hedgerow_sandbox: SandboxProcess, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Each block runs on its own, against the sandbox instead of the provider, with `client` and `messages` at hand."""
    monkeypatch.setenv("OPENAI_BASE_URL", f"{hedgerow_sandbox.url}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.chdir(tmp_path)  # what a block writes
    given = "import hedgerow\nfrom openai import AsyncOpenAI\n"
    given += 'messages = [{"role": "user", "content": "hi"}]\nKEY = "k"\n'
    if not re.search(r"^client = ", code, re.MULTILINE):
        given += "client = hedgerow.hedged(AsyncOpenAI())\n"
    body = "".join(f"    {line}\n" for line in (given + code).splitlines())
    scope: dict[str, object] = {}
    exec(compile(f"async def main():\n{body}    await client.close()\n", str(page), "exec"), scope)
    asyncio.run(scope["main"]())  # type: ignore[operator]


def test_every_link_inside_the_docs_leads_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
