"""`hedgerow serve` as a process: starting, reloading, draining, and several workers of which one dies."""

import asyncio
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import openai
import psutil
import pytest
import tomli_w
from tests.gateway.running import GatewayProcess, config_of
from tests.sdk.racing import QUICK, eventually, outcomes, scripted

from hedgerow.testing.process import SandboxProcess

Launch = Callable[..., GatewayProcess]

CHAT = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
posix = pytest.mark.skipif(sys.platform == "win32", reason="signals and shared sockets are POSIX's")


def call(gateway: GatewayProcess, case: str, *attempts: dict[str, Any], timeout_s: float = 30.0) -> httpx2.Response:
    headers = scripted(case, *attempts)
    return httpx2.post(f"{gateway.url}/v1/chat/completions", json=CHAT, headers=headers, timeout=timeout_s)


class InThread:
    """One call that is under way; `response` once it is over."""

    def __init__(self, gateway: GatewayProcess, case: str, *attempts: dict[str, Any]) -> None:
        self.response: httpx2.Response | None = None
        self.error: Exception | None = None
        self._thread = threading.Thread(target=self._run, args=(gateway, case, attempts), daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Wait for the answer, or the error."""
        self._thread.join(30.0)

    def wait(self) -> httpx2.Response:
        """Its answer."""
        self.end()
        assert self.response is not None, self.error
        return self.response

    def _run(self, gateway: GatewayProcess, case: str, attempts: tuple[dict[str, Any], ...]) -> None:
        try:
            self.response = call(gateway, case, *attempts)
        except Exception as error:
            self.error = error


def test_it_says_where_it_listens_answers_and_ends_well(launch: Launch) -> None:
    gateway = launch()
    assert gateway.url.startswith("http://127.0.0.1:")
    assert gateway.get("/healthz").json() == {"status": "ok"}
    assert gateway.get("/readyz").json() == {"status": "ready"}
    assert call(gateway, "l", QUICK).status_code == 200
    assert gateway.close() == 0
    assert not [line for line in gateway.log if "Traceback" in line or "ERROR" in line]


def test_a_file_that_cannot_be_used_is_said_and_exits_2(hedgerow_sandbox: SandboxProcess, tmp_path: Path) -> None:
    config = config_of(hedgerow_sandbox, {"bugdet": 0.1})
    with pytest.raises(AssertionError, match=r"hedgerow\.toml:\d+: bugdet"):
        GatewayProcess(tmp_path, config)


@posix
@pytest.mark.parametrize("workers", [1, 2])
def test_events_that_cannot_be_written_are_said_at_the_start(
    hedgerow_sandbox: SandboxProcess, tmp_path: Path, workers: int
) -> None:
    events = f"sqlite:///{tmp_path}/no/such/folder/events.db"
    config = config_of(hedgerow_sandbox, gateway={"listen": "127.0.0.1:0", "events": events, "workers": workers})
    with pytest.raises(AssertionError, match="no/such/folder"):
        GatewayProcess(tmp_path, config)


@posix
def test_calls_under_way_are_answered_before_it_ends(launch: Launch, hedgerow_sandbox: SandboxProcess) -> None:
    gateway = launch({"trigger": "off"})
    running = InThread(gateway, "drain", {"first_token_s": 1.5, "text": "answered"})
    _until(lambda: hedgerow_sandbox.stats()["in_flight"] == 1)
    gateway.process.send_signal(signal.SIGTERM)
    assert "answered" in running.wait().text
    assert gateway.close() == 0


@posix
@pytest.mark.parametrize("how", ["by itself", "SIGHUP"])
def test_a_changed_file_comes_into_force_without_dropping_a_call(
    launch: Launch, hedgerow_sandbox: SandboxProcess, how: str
) -> None:
    gateway = launch({"trigger": "off"})
    running = InThread(gateway, "reload/old", {"first_token_s": 2.5, "text": "old"}, QUICK)
    _until(lambda: hedgerow_sandbox.stats()["in_flight"] == 1)
    gateway.file.write_text(tomli_w.dumps(config_of(hedgerow_sandbox, {"delay": 0.05})))
    if how == "SIGHUP":
        gateway.process.send_signal(signal.SIGHUP)
    _until(lambda: any("was reloaded" in line for line in gateway.log), gateway)
    assert "new" in call(gateway, "reload/new", {"first_token_s": 5.0}, {**QUICK, "text": "new"}).text
    assert "old" in running.wait().text
    assert [len(outcomes(hedgerow_sandbox, f"reload/{case}")) for case in ("old", "new")] == [1, 2]


@posix
def test_a_bad_file_is_refused_and_the_old_one_stays(launch: Launch, hedgerow_sandbox: SandboxProcess) -> None:
    gateway = launch()
    gateway.file.write_text("[[target]]\nname = 1\n")
    _until(lambda: any("not reloaded" in line and "hedgerow.toml:2" in line for line in gateway.log), gateway)
    assert call(gateway, "bad", QUICK).status_code == 200
    gateway.file.write_text(tomli_w.dumps(config_of(hedgerow_sandbox, client_key=[{"name": "a", "sha256": "0" * 64}])))
    _until(lambda: call(gateway, "bad", QUICK).status_code == 401, gateway)


@posix
def test_a_reload_tells_of_a_mistake_and_of_open_doors_and_shows_no_key(
    launch: Launch, hedgerow_sandbox: SandboxProcess
) -> None:
    gateway = launch()
    config = config_of(hedgerow_sandbox)
    wrong: list[Any] = ["sk-SECRETSECRET", ["sk-SECRETSECRET"], {"SECRETSECRET": 1}, b"\xff"]
    for number, value in enumerate(wrong):
        if isinstance(value, bytes):
            gateway.file.write_bytes(b'api_key = "SECRETSECRET' + value)
        else:
            gateway.file.write_text(tomli_w.dumps({**config, "gateway": {"admin_kye": value}}))
        _until(lambda number=number: sum("not reloaded" in line for line in gateway.log) == number + 1, gateway)  # type: ignore[misc]
    target = {"name": "openai", "dialect": "openai", "base_url": "http://other.example/v1", "api_key": "SECRETSECRET"}
    gateway.file.write_text(tomli_w.dumps({**config, "target": [target, *config["target"][1:]]}))
    _until(lambda: any("was reloaded" in line for line in gateway.log), gateway)
    assert any("plain text" in line for line in gateway.log)
    assert "SECRETSECRET" not in "\n".join(gateway.log)
    assert not any("Traceback" in line for line in gateway.log)


@posix
def test_of_several_workers_one_that_is_killed_loses_only_its_calls(
    launch: Launch, hedgerow_sandbox: SandboxProcess
) -> None:
    gateway = launch({"trigger": "off"}, gateway={"listen": "127.0.0.1:0", "workers": 2})
    master = psutil.Process(gateway.process.pid)
    _until(lambda: len(workers := master.children()) == 2 and all(each.is_running() for each in workers))
    slow = {"first_token_s": 2.0, "text": "lived"}
    running = [InThread(gateway, f"kill/{number}", slow) for number in range(12)]
    _until(lambda: hedgerow_sandbox.stats()["in_flight"] == 12)
    victim = max(master.children(), key=lambda child: len(child.net_connections()))
    victim.send_signal(signal.SIGKILL)
    for each in running:
        each.end()
    answered = [each for each in running if each.response is not None and "lived" in each.response.text]
    assert len(answered) < 12
    assert all(each.response is not None or each.error is not None for each in running)
    _until(lambda: len([each for each in master.children() if each.is_running()]) == 2)
    assert {call(gateway, f"after/{number}", QUICK).status_code for number in range(8)} == {200}
    assert gateway.close() == 0
    assert not psutil.pid_exists(victim.pid) or not psutil.Process(victim.pid).is_running()


@posix
def test_workers_end_when_their_supervisor_is_gone(launch: Launch) -> None:
    gateway = launch(gateway={"listen": "127.0.0.1:0", "workers": 2})
    workers = psutil.Process(gateway.process.pid).children()
    _until(lambda: {gateway.get("/admin/stats").json()["worker"] for _ in range(10)} == {0, 1})
    gateway.process.kill()
    _until(lambda: not any(worker.is_running() and worker.status() != psutil.STATUS_ZOMBIE for worker in workers))


@posix
def test_the_budgets_start_is_shared_out_among_workers(launch: Launch) -> None:
    gateway = launch({"budget": 0.05}, gateway={"listen": "127.0.0.1:0", "workers": 2})
    seen = {}
    for _ in range(40):
        stats = gateway.get("/admin/stats").json()
        seen[stats["worker"]] = stats["policies"]["soon"]["budget"]["bucket"]
        if len(seen) == 2:
            break
    assert set(seen.values()) == {1.0}


def test_what_was_learnt_is_kept_over_a_restart(launch: Launch, tmp_path: Path) -> None:
    tables = {"gateway": {"listen": "127.0.0.1:0", "state": str(tmp_path / "state"), "events": "sqlite:///events.db"}}
    first = launch({"budget": 0.05}, **tables)
    for number in range(25):
        assert call(first, f"state/{number}", QUICK).status_code == 200
    assert first.close() == 0
    second = launch({"budget": 0.05}, **tables)
    stats = second.get("/admin/stats").json()["policies"]["soon"]
    assert stats["budget"]["requests"] == 25
    assert (tmp_path / "events.db").exists()
    assert call(second, "state/late", {"first_token_s": 5.0}, {**QUICK, "text": "warm"}).json()["choices"][0][
        "message"
    ]["content"] == ("warm")


def test_an_sdk_needs_nothing_but_another_address(launch: Launch) -> None:
    with openai.OpenAI(base_url=f"{launch().url}/v1", api_key="k") as client:
        assert client.models.list().data


def _until(condition: Callable[[], bool], gateway: GatewayProcess | None = None) -> None:
    try:
        asyncio.run(eventually(condition))
    except AssertionError as error:
        raise AssertionError("\n".join([str(error), *(gateway.log if gateway else [])])) from None
