"""A provider whose first copy of a call hangs, and what a test needs to see that a backup rescued the call.

`library` runs a block of the page with hedged() set to back a call up after 50 ms (a cold process would send none); `gateway`
runs one against a gateway with that policy. Nothing asserts elapsed time.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import hedgerow
from hedgerow.testing.process import SandboxProcess
from tests.frameworks.page import ADDRESS, block
from tests.gateway.running import GatewayProcess, config_of

PATIENCE_S = 30.0
HANGS = {"first_token_s": 3600.0}
SAID = "rescued"
ANSWERS = {"first_token_s": 0.01, "text": SAID}
KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY")


async def eventually(condition: Callable[[], object]) -> None:
    """Poll until it holds; fail after a generous while."""
    give_up_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < give_up_s, f"still not so after {PATIENCE_S:g} s"
        await asyncio.sleep(0.02)


class Way:
    """One way to call: what the block made (`made["llm"]`), and what became of the calls."""

    def __init__(
        self, sandbox: SandboxProcess, run: Callable[[str, str], dict[str, Any]], wins: Callable[[], int]
    ) -> None:
        self._sandbox, self._run, self._wins = sandbox, run, wins
        self._case = ""

    def run(self, section: str, way: str) -> dict[str, Any]:
        """The names that a block of the page has made."""
        return self._run(section, way)

    def script(self, *attempts: dict[str, Any]) -> None:
        """What becomes of the next requests."""
        self._case = self._sandbox.script(*attempts)

    def hang_then(self, *answers: dict[str, Any]) -> None:
        """The first copy of each call hangs; its backup answers so. Without answers: one, in plain text."""
        self.script(*(attempt for answer in answers or (ANSWERS,) for attempt in (HANGS, answer)))

    async def assert_rescued(self, calls: int = 1) -> None:
        """Each of so many calls was answered by its backup, and its hanging first copy was closed: by the hedger's own count and
        by the provider's."""
        await eventually(lambda: self._wins() == calls)
        wanted = ["disconnected", "completed"] * calls
        await eventually(lambda: [each["outcome"] for each in self._sandbox.stats()["cases"][self._case]] == wanted)


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in KEYS:
        monkeypatch.setenv(name, "k")
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else its import looks for prices on the internet
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def library(hedgerow_sandbox: SandboxProcess, monkeypatch: pytest.MonkeyPatch) -> Way:
    """Blocks that hedge the SDK's client in this process; the SDKs find the sandbox by their environment."""
    monkeypatch.setenv("OPENAI_BASE_URL", f"{hedgerow_sandbox.url}/v1")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", hedgerow_sandbox.url)
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", hedgerow_sandbox.url)
    hedgers: list[Any] = []
    plainly = hedgerow.hedged
    policy = hedgerow.Policy(trigger="first_token", delay=0.05, budget="off", max_backups=1)

    def hedged(client: Any, **options: Any) -> Any:
        copy = plainly(client, **{"policy": policy, **options})
        hedgers.append(hedgerow.hedger_of(copy))
        return copy

    transport = hedgerow.AsyncTransport

    def hedged_transport(inner: Any, **options: Any) -> Any:
        made = transport(inner, **{"policy": policy, **options})
        hedgers.append(hedgerow.hedger_of(made))
        return made

    monkeypatch.setattr(hedgerow, "hedged", hedged)
    monkeypatch.setattr(hedgerow, "AsyncTransport", hedged_transport)

    def run(section: str, way: str) -> dict[str, Any]:
        scope: dict[str, Any] = {"__name__": "page"}
        exec(compile(block(section, way), f"{section}, {way}", "exec"), scope)
        return scope

    return Way(hedgerow_sandbox, run, lambda: sum(hedger.stats()["backup_wins"] for hedger in hedgers))


@pytest.fixture
def gateway_process(hedgerow_sandbox: SandboxProcess, tmp_path: Path) -> Iterator[GatewayProcess]:
    """`hedgerow serve` in front of the sandbox."""
    with ExitStack() as running:
        yield running.enter_context(GatewayProcess(tmp_path, config_of(hedgerow_sandbox, {"max_backups": 1})))


@pytest.fixture
def gateway(hedgerow_sandbox: SandboxProcess, gateway_process: GatewayProcess) -> Way:
    """Blocks that change a base URL and nothing else."""

    def run(section: str, way: str) -> dict[str, Any]:
        scope: dict[str, Any] = {"__name__": "page"}
        code = block(section, way)
        assert ADDRESS in code
        exec(compile(code.replace(ADDRESS, gateway_process.url), f"{section}, {way}", "exec"), scope)
        return scope

    def wins() -> int:
        (policy,) = gateway_process.get("/admin/stats").json()["policies"].values()
        return policy["backup_wins"]

    return Way(hedgerow_sandbox, run, wins)


@pytest.fixture(params=["library", "gateway"])
def way(request: pytest.FixtureRequest) -> tuple[Way, str]:
    """Both ways, one after the other, with their names."""
    return request.getfixturevalue(request.param), request.param
