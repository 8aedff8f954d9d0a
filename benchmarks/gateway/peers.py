"""What is measured beside one another: how each gateway is installed into a folder, set up for one model, and started.

What cannot be installed raises, and is reported as missing.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from loopback import CLIENT_KEY, free_port

__all__ = ["PEERS", "Peer", "Ready"]

MODEL = "gpt-4o"
CHAT = "/v1/chat/completions"
INSTALL_S = 1200
HEDGEROW = """
[gateway]
listen = "127.0.0.1:{port}"
events = "sqlite:///events.db"
state = "state"

[[target]]
name = "upstream"
dialect = "openai"
base_url = "http://127.0.0.1:{upstream}/v1"
api_key = "provider-key"

[[route]]
path = "/v1/embeddings"
targets = ["upstream"]

[[route]]
path = "/v1/chat/*"
model = "claude-*"
targets = ["upstream"]

[[route]]
path = "/v1/chat/*"
model = "gpt-4*"
targets = ["upstream"]

[[price]]
model = "gpt-4o"
input = 2.5
output = 10.0

[[client_key]]
name = "other"
sha256 = "{other}"

[[client_key]]
name = "bench"
sha256 = "{key}"
segment = "free"
requests_per_minute = 100000000
usd_per_day = 1000000000.0
"""
TENSORZERO = """
[gateway]
observability.enabled = false

[models."gpt-4o"]
routing = ["upstream"]

[models."gpt-4o".providers.upstream]
type = "openai"
model_name = "gpt-4o"
api_base = "http://127.0.0.1:{upstream}/v1/"
api_key_location = "env::OPENAI_API_KEY"
"""
TENSORZERO_PROGRAM = """
import sys, time
from types import SimpleNamespace
from tensorzero import patch_openai_client
client = patch_openai_client(SimpleNamespace(base_url=None), config_file=sys.argv[1], async_setup=False)
print("base_url", client.base_url, flush=True)
time.sleep(1e6)
"""

# It would rather not start without a strong master key; this spares it the work of checking one.
LITELLM_WITHOUT_KEYS = """
general_settings:
  dangerously_permit_weak_or_unset_master_key: true
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """How to start it, and how to ask it. port: None = the log tells it."""

    command: list[str]
    port: int | None
    path: str = CHAT
    model: str = MODEL
    header: str = ""
    env: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """One of those compared. install: into its own folder, once; prepare: for one run, from its folder, one of the run's own, the
    upstream's port and the folder of the shared tools."""

    name: str
    install: Callable[[Path], None]
    prepare: Callable[[Path, Path, int, Path], Ready]


def port_in(log: Path) -> int:
    """The port of the address in a log, waited for."""
    until_s = time.monotonic() + 60.0
    while time.monotonic() < until_s:
        if found := re.search(r"base_url \S+:(\d+)", log.read_text(errors="replace")):
            return int(found[1])
        time.sleep(0.1)
    raise RuntimeError(f"it did not say where it listens:\n{log.read_text(errors='replace')[-2000:]}")


def _run(*command: object, folder: Path) -> None:
    subprocess.run(
        [str(word) for word in command], cwd=folder, check=True, capture_output=True, timeout=INSTALL_S, text=True
    )


def _python_packages(*packages: str) -> Callable[[Path], None]:
    def install(folder: Path) -> None:
        _run(sys.executable, "-m", "venv", "venv", folder=folder)
        _run("venv/bin/python", "-m", "pip", "install", "--quiet", *packages, folder=folder)

    return install


def _install_nginx(folder: Path) -> None:
    """The one that is there, else Debian's, unpacked here and not installed."""
    if found := shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin"):
        (folder / "usr/sbin").mkdir(parents=True)
        (folder / "usr/sbin/nginx").symlink_to(found)
        return
    _run("apt-get", "download", "nginx", folder=folder)
    _run("dpkg", "-x", next(folder.glob("nginx_*.deb")), folder, folder=folder)


def _install_portkey(folder: Path) -> None:
    _run("npm", "install", "--no-audit", "--no-fund", "--prefix", folder, "@portkey-ai/gateway", folder=folder)


def _nothing(_: Path) -> None:
    """It is here already."""


def _nginx(home: Path, folder: Path, upstream: int, bench: Path) -> Ready:
    port = free_port()
    text = (bench / "nginx.conf").read_text().replace(":9000", f":{upstream}").replace(":9201", f":{port}")
    (folder / "nginx.conf").write_text(text)
    return Ready(
        command=[str(home / "usr/sbin/nginx"), "-p", str(folder), "-e", "nginx.err", "-c", "nginx.conf"], port=port
    )


def _hedgerow(_: Path, folder: Path, upstream: int, bench: Path) -> Ready:  # noqa: ARG001
    port = free_port()
    key, other = (sha256(text.encode()).hexdigest() for text in (CLIENT_KEY, "sk-other"))
    (folder / "hedgerow.toml").write_text(HEDGEROW.format(port=port, upstream=upstream, key=key, other=other))
    program = "from hedgerow.cli import main; main()"
    return Ready(command=[sys.executable, "-c", program, "serve", "hedgerow.toml"], port=port)


def _tensorzero(home: Path, folder: Path, upstream: int, bench: Path) -> Ready:  # noqa: ARG001
    (folder / "tensorzero.toml").write_text(TENSORZERO.format(upstream=upstream))
    return Ready(
        command=[str(home / "venv/bin/python"), "-c", TENSORZERO_PROGRAM, "tensorzero.toml"],
        port=None,
        path="/openai/v1/chat/completions",
        model=f"tensorzero::model_name::{MODEL}",
        env={"OPENAI_API_KEY": "provider-key"},
    )


def _portkey(home: Path, folder: Path, upstream: int, bench: Path) -> Ready:  # noqa: ARG001
    port = free_port()
    server = home / "node_modules/@portkey-ai/gateway/build/start-server.js"
    header = f"x-portkey-provider: openai\r\nx-portkey-custom-host: http://127.0.0.1:{upstream}/v1"
    return Ready(
        command=["node", str(server), f"--port={port}", "--headless"],
        port=port,
        header=header,
        env={"NODE_ENV": "production", "TRUSTED_CUSTOM_HOSTS": "127.0.0.1,localhost"},
    )


def _litellm(home: Path, folder: Path, upstream: int, bench: Path) -> Ready:
    port = free_port()
    text = (bench / "litellm2.yaml").read_text().replace(":9000", f":{upstream}")
    (folder / "litellm.yaml").write_text(f"{text}\n{LITELLM_WITHOUT_KEYS}")
    command = [str(home / "venv/bin/litellm"), "--config", "litellm.yaml", "--host", "127.0.0.1", "--port", str(port)]
    return Ready(command=command, port=port, env={"LITELLM_MODE": "PRODUCTION", "LITELLM_LOCAL_MODEL_COST_MAP": "True"})


PEERS = (
    Peer(name="hedgerow", install=_nothing, prepare=_hedgerow),
    Peer(name="nginx", install=_install_nginx, prepare=_nginx),
    Peer(name="TensorZero, embedded", install=_python_packages("tensorzero", "openai"), prepare=_tensorzero),
    Peer(name="Portkey", install=_install_portkey, prepare=_portkey),
    Peer(name="LiteLLM", install=_python_packages("litellm[proxy]"), prepare=_litellm),
)
