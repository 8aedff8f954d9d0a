"""The measuring tools of ../shared/bench: compiled for one run, pinned to a core of their own, their one line of results read."""

import json
import os
import re
import socket
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

__all__ = ["CLIENT_KEY", "Driver", "Load", "Started", "free_port"]

CLIENT_KEY = "sk-test"  # what lg.c sends as its bearer token
START_S, END_S = 120.0, 10.0
FIGURE = re.compile(r"(\w+)=([\d.]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """One kind of load. words: what lg takes between path and body; asks: what the upstream reads out of the message:
    chunks, µs between them, ms before the first."""

    mode: str
    words: tuple[str, ...]
    asks: str
    stream: bool = False

    def body(self, model: str) -> bytes:
        """The request of a chat completion. The upstream looks for what it is asked in the whole body, so any model will do."""
        said = f"{self.asks} How many hedges make a hedgerow, and who has counted them?"
        asked = {"model": model, "messages": [{"role": "user", "content": said}], "max_tokens": 500}
        return json.dumps({**asked, "stream": True} if self.stream else asked, separators=(",", ":")).encode()


class Started:
    """A process with its children, pinned to one core; ended when the block is left. log: where its words go."""

    def __init__(self, command: list[str], *, core: int, folder: Path, log: Path, env: Mapping[str, str]) -> None:
        self.log = log
        with log.open("wb") as words:
            self._process = subprocess.Popen(
                ["taskset", "-c", str(core), *command],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=words,
                stderr=subprocess.STDOUT,
                env=os.environ | dict(env),
                start_new_session=True,
            )

    def await_port(self, port: int) -> None:
        """Raises RuntimeError with its last words if nothing listens there in time."""
        until_s = time.monotonic() + START_S
        while time.monotonic() < until_s and self._process.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return
            time.sleep(0.1)
        raise RuntimeError(f"it did not start:\n{self.log.read_text(errors='replace')[-2000:]}")

    def cpu_s(self) -> float:
        """Processor seconds so far, children included."""
        return sum(times.user + times.system for times in (each.cpu_times() for each in self._all()))

    def resident_mib(self) -> float:
        """Memory now, children included."""
        return sum(each.memory_info().rss for each in self._all()) / 2**20

    def _all(self) -> list[psutil.Process]:
        mine = psutil.Process(self._process.pid)
        return [mine, *mine.children(recursive=True)]

    def __enter__(self) -> "Started":
        return self

    def __exit__(self, *_: object) -> None:
        family = self._all() if self._process.poll() is None else []
        for each in family:
            each.terminate()
        _, stubborn = psutil.wait_procs(family, END_S)
        for each in stubborn:
            each.kill()
        self._process.wait()


class Driver:
    """Load generator and upstream. bench: the folder with their sources; folder: where they are compiled to."""

    def __init__(self, bench: Path, folder: Path, core: int) -> None:
        self._folder, self._core = folder, core
        for name in ("up", "lg"):
            subprocess.run(
                ["cc", "-O2", "-w", "-o", str(folder / name), str(bench / f"{name}.c")], check=True, capture_output=True
            )

    def upstream(self, port: int) -> Started:
        """The fake provider."""
        command = [str(self._folder / "up"), str(port)]
        return Started(command, core=self._core, folder=self._folder, log=self._folder / "up.log", env={})

    def run(self, load: Load, port: int, path: str, model: str, header: str) -> dict[str, float]:
        """What lg prints, by name: rps and cps, bad and errs, lat_p50 in µs…"""
        body = self._folder / "body.json"
        body.write_bytes(load.body(model))
        command = ["taskset", "-c", str(self._core), str(self._folder / "lg"), load.mode, str(port), path, *load.words]
        told = subprocess.run([*command, str(body), header], capture_output=True, text=True, check=True, timeout=120)
        return {name: float(figure) for name, figure in FIGURE.findall(told.stdout)}


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
