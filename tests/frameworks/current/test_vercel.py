"""The Vercel AI SDK through the gateway: whole, streamed, both turns of a tool call, a declared object."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.frameworks.conftest import ANSWERS, SAID, Way
from tests.frameworks.page import ADDRESS, block
from tests.gateway.running import GatewayProcess

NAME = "Vercel AI SDK"
JS = Path(__file__).parents[1] / "js"
PATIENCE_S = 100.0
QUICK = {"first_token_s": 0.01}
FITS = {"city": "city", "days": [1]}

pytestmark = pytest.mark.skipif(
    shutil.which("node") is None or not (JS / "node_modules" / "ai").is_dir(),
    reason="there is no node, or no npm packages",
)
each_block = pytest.mark.parametrize("made_by", ["gateway", "gateway-anthropic"])


def call(folder: Path, gateway: GatewayProcess, made_by: str, way: str) -> dict[str, Any]:
    """A copy of the script beside the page's block, which it imports."""
    made = block(NAME, made_by)
    assert ADDRESS in made
    (folder / "block.mjs").write_text(made.replace(ADDRESS, gateway.url) + "\nexport { model };\n")
    shutil.copy(JS / "call.mjs", folder)
    (folder / "node_modules").symlink_to(JS / "node_modules")
    done = subprocess.run(
        ["node", str(folder / "call.mjs"), way], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@each_block
@pytest.mark.parametrize("way", ["whole", "streamed"])
async def test_an_answer_is_rescued(
    gateway: Way, gateway_process: GatewayProcess, tmp_path: Path, made_by: str, way: str
) -> None:
    gateway.hang_then()
    assert call(tmp_path, gateway_process, made_by, way) == {"text": SAID}
    await gateway.assert_rescued()


@each_block
async def test_both_turns_of_a_tool_call_are_rescued(
    gateway: Way, gateway_process: GatewayProcess, tmp_path: Path, made_by: str
) -> None:
    gateway.hang_then(QUICK | {"tool_calls": 1}, ANSWERS)
    assert call(tmp_path, gateway_process, made_by, "tool") == {"text": SAID, "called": [FITS]}
    await gateway.assert_rescued(2)


@each_block
async def test_a_declared_object_is_rescued(
    gateway: Way, gateway_process: GatewayProcess, tmp_path: Path, made_by: str
) -> None:
    gateway.hang_then(QUICK)
    assert call(tmp_path, gateway_process, made_by, "object") == {"object": FITS}
    await gateway.assert_rescued()
