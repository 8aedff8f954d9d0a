"""gunicorn with `--preload` and Celery's prefork pool: a hedged client that was made and used before they forked rescues the
calls of every worker, and its events are kept when they stop."""

import http.client
import json
import os
import re
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
import pytest
from tests.prefork.rescuing import SANDBOX, STORE
from tests.sdk.racing import outcomes

import hedgerow
from hedgerow.testing.process import SandboxProcess

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system"),
    pytest.mark.timeout(240),  # a server that loads on a busy machine takes its time; it ends before this in any case
]

PATIENCE_S = 60.0
REPOSITORY, SOURCE = Path(__file__).parents[2], Path(hedgerow.__file__).parents[1]
WORKERS = 2


class Server:
    """A process that forks workers, and what it writes down."""

    def __init__(self, command: list[str], folder: Path, environment: dict[str, str]) -> None:
        self._log = folder / "server.log"
        path = os.pathsep.join(map(str, (SOURCE, REPOSITORY)))
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", *command],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd=folder,
                env=os.environ | {"PYTHONPATH": path} | environment,
                start_new_session=True,
            )
        self.pid = self._process.pid

    def said(self, pattern: str) -> str:
        """What its log says, once it does."""
        found: list[str] = []

        def look() -> bool:
            found[:] = re.findall(pattern, self._log.read_text("utf-8", "replace"))
            assert self._process.poll() is None, self._log.read_text("utf-8", "replace")
            return bool(found)

        eventually(look)
        return found[0]

    def stop(self) -> int:
        """Ask it to stop, as an operator does; its exit code, when it and all its workers are gone."""
        workers = psutil.Process(self.pid).children(recursive=True)
        self._process.terminate()
        code = self._process.wait(PATIENCE_S)
        assert psutil.wait_procs(workers, PATIENCE_S)[1] == []
        return code

    def end(self) -> None:
        """Whatever is left of it is killed: by itself when its input ends."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()


@contextmanager
def started(command: list[str], folder: Path, sandbox: SandboxProcess, **environment: str) -> Iterator[Server]:
    """A server whose hedged client calls the sandbox and keeps its events in `folder`."""
    store = f"sqlite:///{folder / 'events.db'}"
    server = Server(command, folder, {SANDBOX: sandbox.url, STORE: store, **environment})
    try:
        yield server
    finally:
        server.end()


def eventually(condition: Callable[[], bool]) -> None:
    give_up_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < give_up_s, f"still not so after {PATIENCE_S} s"
        time.sleep(0.02)


def asked_of_all_workers(ask: Callable[[str], dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """case → answer: two calls at a time, until every worker has answered twice."""
    answers: dict[str, dict[str, Any]] = {}

    def all_have_answered() -> bool:
        cases = [f"/{len(answers) + number}" for number in range(WORKERS)]
        with ThreadPoolExecutor(WORKERS) as callers:
            answers.update(zip(cases, callers.map(ask, cases), strict=True))
        by_worker = Counter(answer["pid"] for answer in answers.values())
        return len(by_worker) == WORKERS and min(by_worker.values()) >= 2

    eventually(all_have_answered)
    return answers


def expect_rescued(answers: dict[str, dict[str, Any]], server: Server, sandbox: SandboxProcess) -> None:
    """Each by its backup, its loser closed, and counted by the worker that made the call, not by the one it was forked from."""
    assert {answer["text"] for answer in answers.values()} == {"rescued"}
    assert {answer["loaded_in"] for answer in answers.values()} == {server.pid}
    by_worker = Counter(answer["pid"] for answer in answers.values())
    assert server.pid not in by_worker
    for pid, calls in by_worker.items():
        counted = [answer for answer in answers.values() if answer["pid"] == pid]
        for what in ("requests", "backups", "backup_wins"):
            assert sorted(answer[what] for answer in counted) == list(range(1, calls + 1)), what
    for case in ("before the fork", *answers):
        eventually(lambda case=case: outcomes(sandbox, case) == ["disconnected", "completed"])  # type: ignore[misc]


def events_in(folder: Path) -> int:
    with closing(sqlite3.connect(folder / "events.db")) as store:
        return store.execute("select count(*) from requests").fetchone()[0]


def test_gunicorns_preloaded_workers_rescue_their_calls(hedgerow_sandbox: SandboxProcess, tmp_path: Path) -> None:
    pytest.importorskip("gunicorn")
    options = [
        "--preload",
        "--workers",
        str(WORKERS),
        "--bind",
        "127.0.0.1:0",
        "--timeout",
        "120",
        "--no-control-socket",
    ]
    with started(["gunicorn", *options, "tests.prefork.gunicorn_app"], tmp_path, hedgerow_sandbox) as server:
        address = urlsplit(server.said(r"Listening at: (http://\S+)"))

        def ask(case: str) -> dict[str, Any]:
            connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=PATIENCE_S)
            with closing(connection):
                connection.request("GET", case)
                return json.loads(connection.getresponse().read())

        answers = asked_of_all_workers(ask)
        expect_rescued(answers, server, hedgerow_sandbox)
        assert server.stop() == 0
    assert events_in(tmp_path) == 1 + len(answers)


def test_celerys_forked_pool_rescues_its_calls(hedgerow_sandbox: SandboxProcess, tmp_path: Path) -> None:
    pytest.importorskip("celery")
    from tests.prefork.file_broker import FOLDER, Asker

    options = ["--pool", "prefork", "--concurrency", str(WORKERS), "--loglevel", "INFO"]
    options += ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    command = ["celery", "--app", "tests.prefork.celery_app", "worker", *options]
    with (
        started(command, tmp_path, hedgerow_sandbox, **{FOLDER: str(tmp_path / "queue")}) as server,
        Asker(tmp_path / "queue") as asker,
    ):
        server.said(r"(ready)\.")
        answers = asked_of_all_workers(lambda case: asker.ask(case, PATIENCE_S))
        expect_rescued(answers, server, hedgerow_sandbox)
        # The pool's processes end without running what was registered for their end: only what is written before is kept.
        eventually(lambda: events_in(tmp_path) == 1 + len(answers))
        assert server.stop() == 0
