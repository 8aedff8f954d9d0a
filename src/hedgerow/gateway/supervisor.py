"""Several workers on one socket: starts them, replaces one that dies, passes signals on."""

import logging
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from hedgerow.errors import UnsupportedError

__all__ = ["Supervisor"]

LOOK_S = 0.1
SHORT_LIFE_S, MOST_SHORT_LIVES = 5.0, 5  # a worker that cannot start is not started for ever
LAST_GRACE_S = 75.0  # more than a worker gives its calls

log = logging.getLogger("hedgerow")


class Supervisor:
    """Keeps `count` workers alive until it is told to end. For the main thread of a process of its own.

    Raises UnsupportedError on Windows, where a socket cannot be handed on to a child so simply.
    """

    def __init__(
        self,
        config: Path,
        count: int,
        listening: socket.socket,
        ready: Callable[[], None],
        *,
        log_requests: bool = False,
    ) -> None:
        if sys.platform == "win32":
            raise UnsupportedError(
                "several workers need Linux or macOS: use workers = 1, or several gateways on ports of their own"
            )
        self._config, self._count, self._listening, self._ready = config, count, listening, ready
        self._options = ["--log-requests"] if log_requests else []
        self._workers: dict[int, subprocess.Popen[bytes]] = {}
        self._started_s: dict[int, float] = {}
        self._short_lives, self._ending = 0, False

    def run(self) -> int:
        """Until SIGTERM or SIGINT. The exit code: 0, or 1 if workers could not be kept alive."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._end)
        signal.signal(signal.SIGHUP, self._hang_up)
        told = os.pipe()
        for number in range(self._count):
            self._start(number, told[1])
        os.close(told[1])
        listens = os.read(told[0], 1)  # a worker that listens says so; if all have ended there is nothing to read
        os.close(told[0])
        if not listens:
            self._wait()
            return 1
        self._ready()
        while not self._ending:
            time.sleep(LOOK_S)
            self._replace_the_dead()
        return self._wait()

    def _start(self, number: int, tell: int | None) -> None:
        command = [
            sys.executable,
            "-m",
            "hedgerow.gateway",
            str(self._config),
            "--worker",
            str(number),
            "--of",
            str(self._count),
        ]
        command += ["--socket", str(self._listening.fileno()), *self._options]
        handed_on = [self._listening.fileno()]
        if tell is not None:
            command += ["--tell", str(tell)]
            handed_on.append(tell)
        self._workers[number] = subprocess.Popen(command, pass_fds=handed_on)
        self._started_s[number] = time.monotonic()

    def _replace_the_dead(self) -> None:
        for number, worker in list(self._workers.items()):
            if worker.poll() is None or self._ending:
                continue
            lived_s = time.monotonic() - self._started_s[number]
            self._short_lives = self._short_lives + 1 if lived_s < SHORT_LIFE_S else 0
            log.error("worker %d ended with %s after %.0f s", number, worker.returncode, lived_s)
            if self._short_lives > MOST_SHORT_LIVES:
                log.error("workers end as soon as they start: giving up")
                self._end(signal.SIGTERM, None)
                return
            self._start(number, None)

    def _wait(self) -> int:
        until_s = time.monotonic() + LAST_GRACE_S
        for worker in self._workers.values():
            try:
                worker.wait(max(0.0, until_s - time.monotonic()))
            except subprocess.TimeoutExpired:
                worker.kill()
                worker.wait()
        return int(self._short_lives > MOST_SHORT_LIVES)

    def _end(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 a signal handler
        self._ending = True
        self._tell_all(signal.SIGTERM)

    def _hang_up(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        self._tell_all(signal.SIGHUP)

    def _tell_all(self, number: signal.Signals) -> None:
        for worker in self._workers.values():
            if worker.poll() is None:
                worker.send_signal(number)
