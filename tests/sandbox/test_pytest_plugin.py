"""The pytest plugin: fixtures, and no way off the machine."""

import asyncio
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from hedgerow.testing.loopback import NonLoopbackError, is_loopback

ROOT = Path(__file__).parents[2]
ELSEWHERE = ("192.0.2.1", 9)


@pytest.fixture
def sock():
    with socket.socket() as opened:
        opened.settimeout(5)
        yield opened


def test_connecting_elsewhere_is_refused(sock):
    with pytest.raises(NonLoopbackError, match=r"192\.0\.2\.1"):
        sock.connect(ELSEWHERE)
    with pytest.raises(NonLoopbackError):
        sock.connect_ex(ELSEWHERE)
    with pytest.raises(NonLoopbackError):
        socket.create_connection(("example.com", 80), timeout=5)
    with pytest.raises(NonLoopbackError):
        socket.getaddrinfo("example.com", 80)


def test_a_datagram_to_elsewhere_is_refused():
    with socket.socket(type=socket.SOCK_DGRAM) as sock, pytest.raises(NonLoopbackError):
        sock.sendto(b"x", ELSEWHERE)


async def test_asyncio_is_refused_too():
    with pytest.raises(NonLoopbackError):
        await asyncio.open_connection(*ELSEWHERE)


@pytest.mark.parametrize(
    "host", [None, "", "localhost", "127.0.0.1", "127.9.9.9", "::1", b"localhost", "::ffff:127.0.0.1"]
)
def test_hosts_that_stay_on_the_machine(host):
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["10.0.0.1", "example.com", "::ffff:10.0.0.1", "localhost.example.com", "2001:db8::1"])
def test_hosts_that_do_not(host):
    assert not is_loopback(host)


def test_the_sandbox_is_fresh_for_each_test(hedgerow_sandbox):
    assert hedgerow_sandbox.stats()["started"] == 0


def test_the_factory_starts_sandboxes_with_options(hedgerow_sandbox_factory):
    one, other = hedgerow_sandbox_factory(), hedgerow_sandbox_factory(tls=True)
    assert one.url.startswith("http://127.0.0.1:")
    assert other.url.startswith("https://127.0.0.1:")
    assert other.stats()["started"] == 0


def test_the_plugin_loads_nothing_heavy():
    code = (
        "import sys, hedgerow.testing.plugin; "
        "print([name for name in ('httpx2', 'openai', 'pydantic', 'genai_prices') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_without_the_option_nothing_is_refused(pytester_run):
    assert pytester_run("hedgerow_loopback_only = false") == 0


def test_with_the_option_the_same_connection_is_refused(pytester_run):
    assert pytester_run("hedgerow_loopback_only = true") == 1


@pytest.fixture
def pytester_run(tmp_path):
    """Runs one test that looks at the socket class in a pytest of its own; its exit code."""
    (tmp_path / "test_one.py").write_text(
        "import socket\ndef test_untouched():\n    assert 'connect' not in vars(socket.socket)\n"
    )

    def run(option: str) -> int:
        (tmp_path / "pytest.ini").write_text(f"[pytest]\n{option}\n")
        # The suite's own conftest, so that it runs from a checkout as well as installed.
        shutil.copy(ROOT / "tests" / "conftest.py", tmp_path)
        command = [sys.executable, "-m", "pytest", "-q", str(tmp_path)]
        paths = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "src")))}
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=paths).returncode

    return run
