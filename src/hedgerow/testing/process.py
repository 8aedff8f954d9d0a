"""Runs a sandbox beside the caller, in a process of its own, so that neither's load disturbs the other's timing."""

import http.client
import json
import os
import queue
import ssl
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Literal
from urllib.parse import urlsplit

from hedgerow.errors import HedgerowError

__all__ = ["QUICK_PROFILE", "SandboxProcess"]

QUICK_PROFILE = str(Path(__file__).with_name("quick.toml"))
START_TIMEOUT_S = 60.0
ANSWER_TIMEOUT_S = 30.0
LISTENING = "listening on "


class SandboxProcess:
    """`python -m hedgerow.sandbox` with these options, started at once; a context manager that ends it.

    `profile`: a shipped name or a .toml file. `time_scale` > 0: real seconds per provider second. `bill`: what a
    disconnected request is charged. `url` has no path: an OpenAI client takes `url + "/v1"`. Raises HedgerowError with
    the process's own words if it does not start. May be shared between threads.
    """

    def __init__(
        self,
        *,
        port: int = 0,
        profile: str = "openai-like",
        replay: str | None = None,
        seed: int = 1,
        time_scale: float = 1.0,
        bill: Literal["so_far", "full", "none"] = "so_far",
        tls: bool = False,
    ) -> None:
        options = ["--port", port, "--profile", profile, "--seed", seed, "--time-scale", time_scale, "--bill", bill]
        options += ["--replay", replay] if replay is not None else []
        options += ["--tls"] if tls else []
        self.time_scale = time_scale
        self.log: deque[str] = deque(maxlen=1000)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "hedgerow.sandbox", *map(str, options)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": _search_path()},
        )
        started: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read_log, args=(started,), daemon=True)
        self._reader.start()
        self.url = self._await_start(started)

    def stats(self, case: str | None = None) -> dict[str, Any]:
        """What `GET /_sandbox/stats` answers. case: the only one to list, None = all of them."""
        return json.loads(self._ask("GET", "/_sandbox/stats", headers={} if case is None else {"x-sandbox-case": case}))

    def reset(self) -> None:
        """Forgets counters and cases and drops answers under way."""
        self._ask("POST", "/_sandbox/reset")

    def script(self, *attempts: dict[str, Any]) -> str:
        """Requests without a script of their own follow this one from now on, as one case, until the next one or a reset; for
        clients whose headers are out of reach. One object for each arrival, the last repeats. The case's name."""
        return json.loads(self._ask("POST", "/_sandbox/script", json.dumps(attempts)))["case"]

    def certificate(self) -> str:
        """With tls: the certificate to trust, as PEM."""
        return ssl.get_server_certificate(self._address(), timeout=ANSWER_TIMEOUT_S)

    def close(self) -> int:
        """Ends the process and waits for it; its exit code. Harmless when it has ended."""
        self._process.terminate()
        try:
            self._process.wait(ANSWER_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(ANSWER_TIMEOUT_S)
        if self._process.stderr is not None:
            self._process.stderr.close()
        return self._process.returncode

    def __enter__(self) -> "SandboxProcess":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _read_log(self, started: "queue.SimpleQueue[str | None]") -> None:
        for line in self._process.stderr or ():
            self.log.append(line.rstrip("\n"))
            if line.startswith(LISTENING):
                started.put(line.removeprefix(LISTENING).strip())
        started.put(None)

    def _await_start(self, started: "queue.SimpleQueue[str | None]") -> str:
        try:
            url = started.get(timeout=START_TIMEOUT_S)
        except queue.Empty:
            url = None
        if url is None:
            self.close()
            said = "\n".join(self.log) or "(nothing)"
            raise HedgerowError(f"the sandbox did not start; it said:\n{said}")
        return url

    def _address(self) -> tuple[str, int]:
        parts = urlsplit(self.url)
        return parts.hostname or "", parts.port or 0

    def _ask(self, method: str, path: str, sent: str | None = None, headers: Mapping[str, str] | None = None) -> bytes:
        host, port = self._address()
        if self.url.startswith("https:"):
            context = ssl.create_default_context(cadata=self.certificate())
            connection = http.client.HTTPSConnection(host, port, timeout=ANSWER_TIMEOUT_S, context=context)
        else:
            connection = http.client.HTTPConnection(host, port, timeout=ANSWER_TIMEOUT_S)
        try:
            connection.request(method, path, sent, headers or {})
            response = connection.getresponse()
            body = response.read()
        finally:
            connection.close()
        if response.status != 200:
            raise HedgerowError(f"the sandbox answered {method} {path} with {response.status}: {body[:200]!r}")
        return body


def _search_path() -> str:
    """The child finds the same hedgerow as its parent, installed or not."""
    here = str(Path(__file__).parents[2])
    return os.pathsep.join(filter(None, (here, os.environ.get("PYTHONPATH"))))
